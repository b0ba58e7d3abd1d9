"""Cloud Run v2: jobs: create, read, run, delete. Leaves out their executions: see runtime/jobs.py."""

import copy
import uuid

from bezel.localcloud.core.errors import ApiError, invalid, permission_denied
from bezel.localcloud.core.json_types import Json, timestamp
from bezel.localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, PROJECT
from bezel.localcloud.core.regions import regions
from bezel.localcloud.routing.context import Context
from bezel.localcloud.routing.router import Api, Call
from bezel.localcloud.services.cloud_run import job_status
from bezel.localcloud.services.cloud_run.egress import egress_violations
from bezel.localcloud.services.cloud_run.failures import RevisionFailureError
from bezel.localcloud.services.cloud_run.job_checks import UNSERVED, execution_violations, job_violations
from bezel.localcloud.services.cloud_run.references import check_image, resolve_environment
from bezel.localcloud.services.cloud_run.spec import revision_spec
from bezel.localcloud.services.cloud_run.status import short

api = Api("run.googleapis.com", "Cloud Run Admin API", locations=regions())
PARENT = "projects/{project}/locations/{location}"
JOBS = "/run/v2/projects/{project:id}/locations/{location:id}/jobs"
JOB = JOBS + "/{job:id}"
NAME = PARENT + "/jobs/{job}"
CHANGE_SECONDS = 2.0  # of the platform's time, to create or to delete a job
# Fields that a caller may set; the platform sets all others.
SETTABLE = frozenset(
    {"annotations", "binaryAuthorization", "client", "clientVersion", "functionalType", "labels", "launchStage",
     "template"}
)  # fmt: skip


@api.route("POST", JOBS, needs="run.jobs.create", query="jobId validateOnly", body="job")
def create(call: Call) -> Json:
    """Create a job; if its image or a secret is not available, the operation fails and the job exists nevertheless."""
    cloud, body, name = call.cloud, call.body, f"{call.name(PARENT)}/jobs/{call.query('jobId')}"
    _check(call, body)
    now = cloud.pace.now()
    job = {
        "name": name,
        "uid": str(uuid.uuid4()),
        "generation": "1",
        "observedGeneration": "1",
        "createTime": timestamp(now),
        "updateTime": timestamp(now),
        "creator": call.caller,
        "lastModifier": call.caller,
        "launchStage": "GA",
        "satisfiesPzs": True,
        "etag": job_status.etag(),
    } | {key: value for key, value in body.items() if key in SETTABLE and value not in (None, [])}
    failure = _failure(cloud, job)
    job |= job_status.failed_job(failure, now) if failure else job_status.ready_job(now)
    with cloud.store.transaction():
        if cloud.store.get("job", name):
            raise ApiError("ALREADY_EXISTS", f"Resource '{short(name)}' already exists.")
        if call.flag("validateOnly"):
            return validated(call, _metadata(name), {"@type": job_status.JOB_TYPE} | cloud.shown(job))
        cloud.store.put("job", name, job)
        if failure is None:
            response = {"@type": job_status.JOB_TYPE} | cloud.shown(job)
            return cloud.operations.timed(call.name(PARENT), _metadata(name), response, CHANGE_SECONDS)
        operation = cloud.operations.begin(call.name(PARENT), _metadata(name))
        cloud.operations.finish(operation, error=ApiError(failure.code, failure.text))
        return cloud.operations.get(operation)


@api.route("GET", JOBS, needs="run.jobs.list", query="pageSize pageToken")
def list_jobs(call: Call) -> Json:
    """Jobs of a location."""
    if call.param("location") == "-":
        raise invalid("Location must be a region, and cannot be the '-' wildcard.", ("parent", "names no region"))
    rows = call.cloud.store.rows("job", f"{call.name(PARENT)}/jobs/")
    return call.page([(name, call.cloud.shown(job)) for name, job in rows], "jobs")


@api.route("GET", JOB, needs="run.jobs.get", on=NAME)
def get(call: Call) -> Json:
    """One job."""
    return call.cloud.shown(found_job(call))


@api.route("DELETE", JOB, needs="run.jobs.delete", on=NAME, query="etag validateOnly")
def delete(call: Call) -> Json:
    """Delete a job with its executions; their tasks end, their log remains."""
    cloud = call.cloud
    with cloud.store.transaction():
        job = found_job(call)
        check_etag(job, call.query("etag"))
        name = job["name"]
        shown = cloud.shown(job | {"deleteTime": timestamp(cloud.pace.now())})
        response = {"@type": job_status.JOB_TYPE} | shown
        if call.flag("validateOnly"):
            return validated(call, _metadata(name), response)
        forget(cloud, f"{name}/executions/")
        cloud.store.delete("job", name)
        return cloud.operations.timed(call.name(PARENT), _metadata(name), response, CHANGE_SECONDS)


@api.route("POST", JOB + ":run", needs="run.jobs.run", on=NAME)
def run(call: Call) -> Json:
    """Create an execution and start it; the operation ends with it, whatever its outcome."""
    cloud, overrides = call.cloud, call.body.get("overrides") or {}
    if overrides and not cloud.access.allows(call.caller, "run.jobs.runWithOverrides", call.name(NAME)):
        raise permission_denied("run.jobs.runWithOverrides", call.name(NAME))
    with cloud.store.transaction():
        job = found_job(call)
        check_etag(job, call.body.get("etag", ""))
        terminal = job["terminalCondition"]
        if terminal["state"] != "CONDITION_SUCCEEDED":
            raise ApiError("FAILED_PRECONDITION", f"Job {short(job['name'])} is not ready: {terminal.get('message')}")
        template = _overridden(job["template"], overrides)
        if found := list(execution_violations(template, "overrides")):
            raise invalid("\n".join(f"Violation in RunJobRequest.{field}: {text}" for field, text in found), *found)
        now = cloud.pace.now()
        execution = job_status.new_execution(job, template, call.caller, now)
        metadata = {"@type": job_status.EXECUTION_TYPE} | cloud.shown(execution)
        if call.body.get("validateOnly"):
            return validated(call, metadata, metadata)
        operation = cloud.operations.begin(call.name(PARENT), metadata)
        name = execution["name"]
        cloud.store.put("execution", name, execution)
        cloud.store.put("jobRun", name, {"operations": [operation]})
        for index in range(execution["taskCount"]):
            task = job_status.new_task(execution, index, now)
            cloud.store.put("task", task["name"], task)
        count = job.get("executionCount", 0) + 1
        latest = {"executionCount": count, "latestCreatedExecution": job_status.reference(execution)}
        cloud.store.put("job", job["name"], job | latest)
    cloud.jobs.start(name)
    return cloud.operations.get(operation)


def found_job(call: Call) -> Json:
    """Return the job of the path.

    Raises:
        ApiError: NOT_FOUND.
    """
    found = call.cloud.store.get("job", call.name(NAME))
    if found is None:
        raise missing("JOB", call.param("job"), call.param("location"))
    return found


def missing(kind: str, name: str, location: str) -> ApiError:
    """404 for a missing resource of a location."""
    text = f"Resource '{name}' of kind '{kind}' in region '{location}' in project '{PROJECT}' does not exist."
    return ApiError("NOT_FOUND", text)


def check_etag(row: Json, given: str) -> None:
    """Compare a given etag with the current one.

    Raises:
        ApiError: ABORTED.
    """
    if given not in {"", row["etag"]}:
        text = f"Conflict for resource '{short(row['name'])}': the etag given is not the current one."
        raise ApiError("ABORTED", text)


def validated(call: Call, metadata: Json, response: Json) -> Json:
    """Response to validateOnly: the result of the call, without storing it or its operation."""
    name = f"{call.name(PARENT)}/operations/{uuid.uuid4()}"
    return {"name": name, "done": True, "response": response, "metadata": metadata}


def forget(cloud: Context, prefix: str) -> None:
    """End and remove the executions with a name prefix, with their tasks; operations waiting for them abort."""
    cloud.jobs.removed(prefix)
    for name, pending in cloud.store.rows("jobRun", prefix):
        for operation in pending["operations"]:
            cloud.operations.finish(operation, error=ApiError("ABORTED", f"Execution {short(name)} was deleted."))
    for kind in ("task", "execution", "jobRun"):
        for name, _ in cloud.store.rows(kind, prefix):
            cloud.store.delete(kind, name)


def _metadata(name: str) -> Json:
    return {"@type": job_status.JOB_TYPE, "name": name}


def _check(call: Call, body: Json) -> None:
    region, template = call.param("location"), (body.get("template") or {}).get("template") or {}
    for field in UNSERVED:
        if body.get(field):
            raise ApiError("UNIMPLEMENTED", f"localcloud does not serve '{field}' of a job: run it with jobs.run.")
    found = job_violations(body, call.query("jobId"), region)
    found += [
        (field.replace("service.template", "job.template.template", 1), text)
        for field, text in egress_violations(call.cloud.store, template, region)
    ]
    if found:
        raise invalid("\n".join(f"Violation in CreateJobRequest.{field}: {text}" for field, text in found), *found)
    account = template.get("serviceAccount") or DEFAULT_COMPUTE_ACCOUNT
    name = f"projects/{PROJECT}/serviceAccounts/{account}"
    exists = call.cloud.store.get("account", account) is not None
    if not exists or not call.cloud.access.allows(call.caller, "iam.serviceAccounts.actAs", name):
        raise permission_denied("iam.serviceaccounts.actAs", f"service account {account}")


def _failure(cloud: Context, job: Json) -> RevisionFailureError | None:
    """The failure that keeps a job from running, None if it can run."""
    spec = revision_spec(job["template"]["template"], {})
    try:
        check_image(cloud, spec.image)
        resolve_environment(cloud, spec)
    except RevisionFailureError as failure:
        return failure
    return None


def _overridden(template: Json, overrides: Json) -> Json:
    """Apply the overrides of one execution to its ExecutionTemplate.

    Raises:
        ApiError: UNIMPLEMENTED for an execution that may start later.
    """
    if overrides.get("delayExecution"):
        raise ApiError("UNIMPLEMENTED", "localcloud does not serve 'delayExecution': it starts an execution at once.")
    found: Json = copy.deepcopy(template)
    if overrides.get("taskCount"):
        found["taskCount"] = overrides["taskCount"]
        found["parallelism"] = min(found.get("parallelism") or 0, overrides["taskCount"])
    if overrides.get("timeout"):
        found["template"]["timeout"] = overrides["timeout"]
    for override in overrides.get("containerOverrides") or []:
        container = found["template"]["containers"][0]
        if override.get("args") or override.get("clearArgs"):
            container["args"] = override.get("args") or []
        named = {entry["name"]: entry for entry in container.get("env") or []}
        named |= {entry["name"]: entry for entry in override.get("env") or []}
        container["env"] = list(named.values())
    return found
