"""States of jobs, executions and tasks in run v2's JSON: created, counted, ended. Pure."""

import random
import string
from collections.abc import Sequence

from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, PROJECT
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.job_checks import RETRIES, TASK_SECONDS
from bezel_localcloud.services.cloud_run.status import condition, conditions, new_etag, new_resource, short

# Outcomes of a task, named as the counts of its execution.
SUCCEEDED, FAILED, CANCELLED = "succeededCount", "failedCount", "cancelledCount"
_OF_JOB = ("ContainerReady", "ResourcesAvailable")
_OF_TASK = (
    "containers", "volumes", "maxRetries", "timeout", "serviceAccount", "executionEnvironment", "encryptionKey",
    "vpcAccess", "nodeSelector", "gpuZonalRedundancyDisabled",
)  # fmt: skip


def ready_job(now: float) -> Json:
    """The status of a job that is ready to run."""
    return {
        "terminalCondition": condition("Ready", "CONDITION_SUCCEEDED", now),
        "conditions": conditions(_OF_JOB, "CONDITION_SUCCEEDED", now),
    }


def failed_job(failure: RevisionFailureError, now: float) -> Json:
    """The status of a job whose image or secrets are not available."""
    ready, container = (
        condition(kind, "CONDITION_FAILED", now, failure.text, failure.reason) for kind in ("Ready", "ContainerReady")
    )
    return {"terminalCondition": ready, "conditions": [container]}


def new_execution(job: Json, template: Json, creator: str, now: float) -> Json:
    """A new execution of a job, not started.

    Args:
        job: Row of the job.
        template: Its ExecutionTemplate with the overrides in it.
        creator: E-mail of the account that runs it.
        now: Unix seconds.
    """
    letters = random.choices(string.ascii_lowercase + string.digits, k=5)  # noqa: S311 - a name, not a secret
    name = f"{job['name']}/executions/{short(job['name'])}-{''.join(letters)}"
    count = template.get("taskCount") or 1
    task = {"maxRetries": RETRIES, "timeout": f"{TASK_SECONDS:g}s", "serviceAccount": DEFAULT_COMPUTE_ACCOUNT}
    url = f"https://console.cloud.google.com/logs/viewer?project={PROJECT}&resource=cloud_run_job/job_name/"
    filtered = f"&advancedFilter=labels.%22run.googleapis.com/execution_name%22%3D%22{short(name)}%22"
    return new_resource(
        name,
        now,
        creator=creator,
        launchStage=job["launchStage"],
        job=short(job["name"]),
        labels=(job.get("labels") or {}) | (template.get("labels") or {}),
        annotations=template.get("annotations") or {},
        parallelism=template.get("parallelism") or count,
        taskCount=count,
        template=task | (template.get("template") or {}),
        reconciling=True,
        observedGeneration="1",
        conditions=[condition("Completed", "CONDITION_RECONCILING", now)],
        logUri=url + short(job["name"]) + filtered,
    )


def new_task(execution: Json, index: int, now: float) -> Json:
    """A new task, waiting to start."""
    template = execution["template"]
    return new_resource(
        f"{execution['name']}/tasks/{short(execution['name'])}-task{index}",
        now,
        labels=execution["labels"],
        job=execution["job"],
        execution=short(execution["name"]),
        index=index,
        reconciling=True,
        observedGeneration="1",
        conditions=[condition("Completed", "CONDITION_PENDING", now)],
        logUri=execution["logUri"],
    ) | {key: template[key] for key in _OF_TASK if key in template}


def start(row: Json, now: float) -> Json:
    """Mark an execution or a task as running; its other fields are unchanged."""
    began = dict.fromkeys(("scheduledTime", "startTime") if "index" in row else ("startTime",), timestamp(now))
    states = {"Completed": "CONDITION_RECONCILING", "Started": "CONDITION_SUCCEEDED"}
    conditions = [condition(kind, state, now) for kind, state in states.items()]
    return began | row | {"conditions": conditions} | _change_fields(now)


def retried_task(task: Json, now: float, result: Json) -> Json:
    """Record the result of an attempt (a TaskAttemptResult) of a task that runs once more."""
    more = {"retried": task.get("retried", 0) + 1, "lastAttemptResult": result}
    return task | more | _change_fields(now)


def ended_task(task: Json, now: float, outcome: str, result: Json) -> Json:
    """Mark a task as ended.

    Args:
        task: Row of the task.
        now: Unix seconds.
        outcome: One of `SUCCEEDED`, `FAILED`, `CANCELLED`.
        result: Its last TaskAttemptResult, {} for none.
    """
    message = str((result.get("status") or {}).get("message") or "")
    return _end(task, outcome, message, now) | ({"lastAttemptResult": result} if result else {})


def ended_execution(execution: Json, tasks: Sequence[Json], *, cancelled: bool, now: float) -> Json:
    """Mark an execution as ended, when none of its tasks will run again."""
    failed = next((task for task in tasks if outcome_of(task) == FAILED), None)
    if cancelled:
        outcome, message = CANCELLED, "The execution was cancelled."
    elif failed:
        reason = failed["conditions"][0].get("message", "")
        outcome, message = FAILED, f"Task {short(failed['name'])} failed with message: {reason}"
    else:
        outcome, message = SUCCEEDED, ""
    return _end(execution, outcome, message, now) | counts(tasks)


def counts(tasks: Sequence[Json]) -> dict[str, int]:
    """The counts of an execution, from its tasks."""
    outcomes = [outcome_of(task) for task in tasks]
    running = sum("startTime" in task and not outcome for task, outcome in zip(tasks, outcomes, strict=True))
    ended = {outcome: outcomes.count(outcome) for outcome in (SUCCEEDED, FAILED, CANCELLED)}
    return ended | {"runningCount": running, "retriedCount": sum(bool(task.get("retried")) for task in tasks)}


def outcome_of(row: Json) -> str:
    """Outcome of an execution or a task, "" before its end."""
    if "completionTime" not in row:
        return ""
    completed = row["conditions"][0]
    if completed["state"] == "CONDITION_SUCCEEDED":
        return SUCCEEDED
    return CANCELLED if completed.get("executionReason") == "CANCELLED" else FAILED


def reference(execution: Json) -> Json:
    """Reference to an execution in its job."""
    states = {SUCCEEDED: "EXECUTION_SUCCEEDED", FAILED: "EXECUTION_FAILED", CANCELLED: "EXECUTION_CANCELLED"}
    running = "EXECUTION_RUNNING" if "startTime" in execution else "EXECUTION_PENDING"
    times = {key: execution[key] for key in ("createTime", "completionTime") if key in execution}
    return {"name": short(execution["name"]), "completionStatus": states.get(outcome_of(execution), running)} | times


def attempt_result(code: int | None, *, timed_out: float = 0.0) -> Json:
    """Return the TaskAttemptResult of one attempt of a task.

    Args:
        code: The process's exit status, minus the signal's number; None where it never started.
        timed_out: The timeout in seconds that it exceeded, 0 if it ended by itself.
    """
    if timed_out:
        status = {"code": 4, "message": f"The configured timeout of {timed_out:g}s was reached."}
        return {"status": status, "termSignal": 15}
    if code == 0:
        return {"status": {}}
    if code is None:
        return {"status": {"code": 13, "message": "The container could not be started."}}
    if code < 0:
        return {"status": {"code": 2, "message": "The container was ended by a signal."}, "termSignal": -code}
    return {"status": {"code": 2, "message": "The container exited with an error."}, "exitCode": code}


def _end(row: Json, outcome: str, message: str, now: float) -> Json:
    state = "CONDITION_SUCCEEDED" if outcome == SUCCEEDED else "CONDITION_FAILED"
    reasons = {FAILED: {"executionReason": "NON_ZERO_EXIT_CODE"}, CANCELLED: {"executionReason": "CANCELLED"}}
    completed = condition("Completed", state, now, message, reasons.get(outcome))
    conditions = [completed, *(other for other in row["conditions"] if other["type"] != "Completed")]
    return (
        row | {"reconciling": False, "completionTime": timestamp(now), "conditions": conditions} | _change_fields(now)
    )


def _change_fields(now: float) -> Json:
    return {"updateTime": timestamp(now), "etag": new_etag()}
