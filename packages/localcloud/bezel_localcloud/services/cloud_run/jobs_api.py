"""Cloud Run v2: jobs and their policies. Leaves out the executions that a job starts: see runtime/jobs.py."""

import copy

from bezel_localcloud.core.errors import ApiError, unserved_error
from bezel_localcloud.core.json_types import Json, timestamp, without_zeros
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.cloud_run import job_status, resources
from bezel_localcloud.services.cloud_run.egress import egress_violations
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.job_checks import UNSERVED, execution_violations, job_violations, of_task
from bezel_localcloud.services.cloud_run.references import check_image, resolve_environment, resolve_secret_mounts
from bezel_localcloud.services.cloud_run.spec import revision_spec
from bezel_localcloud.services.cloud_run.status import new_etag, new_resource, short, typed_message

api = Api("run.googleapis.com", "Cloud Run Admin API", locations=regions())
JOBS = resources.LOCATION + "/jobs"
JOB = JOBS + "/{job:id}"
NAME = resources.PARENT + "/jobs/{job}"
_MESSAGE = "run.GoogleCloudRunV2Job"
CHANGE_SECONDS = 2.0  # of the platform's time, to create or to delete a job


@api.route("POST", JOBS, needs="run.jobs.create", query="jobId validateOnly", body="job")
def create(call: Call) -> Json:
    """Create a job; if its image or a secret is not available, the operation fails and the job exists nevertheless."""
    return _create(call, call.query("jobId"))


def _create(call: Call, job_id: str) -> Json:
    name = f"{call.name(resources.PARENT)}/jobs/{job_id}"
    _check(call, call.body, job_id, "CreateJobRequest")
    fields = {"creator": call.caller, "lastModifier": call.caller, "satisfiesPzs": True}
    job = new_resource(name, call.cloud.pace.now(), observedGeneration="1", launchStage="GA", **fields)
    with call.cloud.store.transaction():
        resources.check_absent(call, "job", name)
        return _store(call, job)


def _store(call: Call, job: Json) -> Json:
    """Store a job with the body's fields and return the operation."""
    cloud, now, name = call.cloud, call.cloud.pace.now(), job["name"]
    job |= resources.settable(call.body, _MESSAGE)
    failure, metadata = _failure(cloud, job), typed_message("Job", {"name": name})
    job |= job_status.failed_job(failure, now) if failure else job_status.ready_job(now)
    if call.flag("validateOnly"):
        return resources.validation_response(call, metadata, typed_message("Job", job))
    cloud.store.put("job", name, job)
    if failure is None:
        return cloud.operations.begin_timed(
            call.name(resources.PARENT), metadata, typed_message("Job", job), CHANGE_SECONDS
        )
    operation = cloud.operations.begin(call.name(resources.PARENT), metadata)
    cloud.operations.finish(operation, error=ApiError(failure.code, failure.text))
    return cloud.operations.get(operation)


@api.route("GET", JOBS, needs="run.jobs.list", query="pageSize pageToken")
def list_jobs(call: Call) -> Json:
    """Jobs of a location."""
    rows = call.cloud.store.rows("job", f"{resources.location_name(call)}/jobs/")
    return call.page([(name, without_zeros(job)) for name, job in rows], "jobs")


@api.route("GET", JOB, needs="run.jobs.get", on=NAME)
def get(call: Call) -> Json:
    """One job."""
    return without_zeros(resources.row_of(call, "job", NAME))


@api.route("PATCH", JOB, needs="run.jobs.update", on=NAME, query="validateOnly allowMissing", body="job")
def patch(call: Call) -> Json:
    """Replace the settable fields; executions that run keep their own template."""
    if call.flag("allowMissing") and call.cloud.store.get("job", call.name(NAME)) is None:
        call.require("run.jobs.create", call.name("projects/{project}"))
        return _create(call, call.param("job"))
    with call.cloud.store.transaction():
        old = resources.row_of(call, "job", NAME)
        resources.check_etag(old, call.body.get("etag", ""))
        _check(call, call.body, call.param("job"), "UpdateJobRequest")
        job = {key: value for key, value in old.items() if key not in settable_fields(_MESSAGE)}
        generation, now = str(int(old["generation"]) + 1), call.cloud.pace.now()
        job |= {"launchStage": "GA", "generation": generation, "observedGeneration": generation, "etag": new_etag()}
        job |= {"updateTime": timestamp(now), "lastModifier": call.caller}
        return _store(call, job)


@api.route("DELETE", JOB, needs="run.jobs.delete", on=NAME, query="etag validateOnly")
def delete(call: Call) -> Json:
    """Delete a job with its executions; their tasks end, their log remains."""
    cloud = call.cloud
    with cloud.store.transaction():
        job = resources.row_of(call, "job", NAME)
        resources.check_etag(job, call.query("etag"))
        name, metadata = job["name"], typed_message("Job", {"name": job["name"]})
        response = typed_message("Job", job | {"deleteTime": timestamp(cloud.pace.now())})
        if call.flag("validateOnly"):
            return resources.validation_response(call, metadata, response)
        forget(cloud, f"{name}/executions/")
        cloud.store.delete("job", name)
        cloud.store.delete_policy(name)
        return cloud.operations.begin_timed(call.name(resources.PARENT), metadata, response, CHANGE_SECONDS)


@api.route("POST", JOB + ":run", needs="run.jobs.run", on=NAME)
def run(call: Call) -> Json:
    """Create an execution and start it; the operation ends with it, whatever its outcome."""
    cloud, overrides = call.cloud, call.body.get("overrides") or {}
    if overrides:
        call.require("run.jobs.runWithOverrides", call.name(NAME))
    with cloud.store.transaction():
        job = resources.row_of(call, "job", NAME)
        resources.check_etag(job, call.body.get("etag", ""))
        terminal = job["terminalCondition"]
        if terminal["state"] != "CONDITION_SUCCEEDED":
            raise ApiError("FAILED_PRECONDITION", f"Job {short(job['name'])} is not ready: {terminal.get('message')}")
        template = _overridden(job["template"], overrides)
        resources.check_violations("RunJobRequest", list(execution_violations(template, "overrides")))
        now = cloud.pace.now()
        execution = job_status.new_execution(job, template, call.caller, now)
        metadata = typed_message("Execution", execution)
        if call.body.get("validateOnly"):
            return resources.validation_response(call, metadata, metadata)
        operation = cloud.operations.begin(call.name(resources.PARENT), metadata)
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


serve_policy(api, JOB, NAME, "run.jobs", lambda call: str(resources.row_of(call, "job", NAME)["name"]))


def forget(cloud: Context, prefix: str) -> None:
    """End and remove the executions with a name prefix, with their tasks; operations waiting for them abort."""
    cloud.jobs.remove(prefix)
    for name, pending in cloud.store.rows("jobRun", prefix):
        for operation in pending["operations"]:
            cloud.operations.finish(operation, error=ApiError("ABORTED", f"Execution {short(name)} was deleted."))
    for kind in ("task", "execution", "jobRun"):
        for name, _ in cloud.store.rows(kind, prefix):
            cloud.store.delete(kind, name)


def _check(call: Call, body: Json, job_id: str, message: str) -> None:
    region, template = call.param("location"), (body.get("template") or {}).get("template") or {}
    for field in UNSERVED:
        if body.get(field):
            raise unserved_error(f"'{field}' of a job", "run it with jobs.run")
    egress = of_task(egress_violations(call.cloud.store, template, region))
    resources.check_violations(message, [*job_violations(body, job_id, region), *egress])
    resources.check_account(call, template)


def _failure(cloud: Context, job: Json) -> RevisionFailureError | None:
    """The failure that keeps a job from running, None if it can run."""
    spec = revision_spec(job["template"]["template"], {})
    try:
        check_image(cloud, spec.image)
        resolve_environment(cloud, spec)
        resolve_secret_mounts(cloud, spec)
    except RevisionFailureError as failure:
        return failure
    return None


def _overridden(template: Json, overrides: Json) -> Json:
    """Apply the overrides of one execution to its ExecutionTemplate.

    Raises:
        NotServedError: For an execution that may start later.
    """
    if overrides.get("delayExecution"):
        raise unserved_error("'delayExecution'", "it starts an execution at once")
    result: Json = copy.deepcopy(template)
    if overrides.get("taskCount"):
        result["taskCount"] = overrides["taskCount"]
        result["parallelism"] = min(result.get("parallelism") or 0, overrides["taskCount"])
    if overrides.get("timeout"):
        result["template"]["timeout"] = overrides["timeout"]
    for override in overrides.get("containerOverrides") or []:
        container = result["template"]["containers"][0]
        if override.get("args") or override.get("clearArgs"):
            container["args"] = override.get("args") or []
        named = {entry["name"]: entry for entry in container.get("env") or []}
        named |= {entry["name"]: entry for entry in override.get("env") or []}
        container["env"] = list(named.values())
    return result
