"""Cloud Run v2: the executions of jobs and their tasks: read, cancel, delete."""

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json, timestamp, without_zeros
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.paging import newest_first
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.cloud_run import resources
from bezel_localcloud.services.cloud_run.jobs_api import JOB, NAME, forget
from bezel_localcloud.services.cloud_run.status import short, typed_message

api = Api("run.googleapis.com", "Cloud Run Admin API", locations=regions())
_ONE = JOB + "/executions/{execution:id}"
_EXECUTION = NAME + "/executions/{execution}"
_TASK = _EXECUTION + "/tasks/{task}"
_DELETE_SECONDS = 2.0  # of the platform's time


@api.route("GET", JOB + "/executions", needs="run.executions.list", on=NAME, query="pageSize pageToken")
def list_executions(call: Call) -> Json:
    """Executions of a job, newest first."""
    rows = call.cloud.store.rows("execution", f"{call.name(NAME)}/executions/")
    return call.page_in_order([without_zeros(body) for body in newest_first(rows)], "executions")


@api.route("GET", _ONE, needs="run.executions.get", on=_EXECUTION)
def get(call: Call) -> Json:
    """One execution."""
    return without_zeros(_execution(call))


@api.route("POST", _ONE + ":cancel", needs="run.executions.cancel", on=_EXECUTION)
def cancel(call: Call) -> Json:
    """End an execution's tasks; the operation ends after them.

    Raises:
        ApiError: FAILED_PRECONDITION for one that has ended.
    """
    cloud = call.cloud
    with cloud.store.transaction():
        execution = _execution(call)
        resources.check_etag(execution, call.body.get("etag", ""))
        name = execution["name"]
        metadata = typed_message("Execution", execution)
        pending = cloud.store.get("jobRun", name)
        if pending is None:
            raise ApiError("FAILED_PRECONDITION", f"Execution {short(name)} has completed: it cannot be cancelled.")
        if call.body.get("validateOnly"):
            return resources.validation_response(call, metadata, metadata)
        operation = cloud.operations.begin(call.name(resources.PARENT), metadata)
        cloud.store.put("jobRun", name, {"operations": [*pending["operations"], operation], "cancelled": True})
    cloud.jobs.cancel(name)
    return cloud.operations.get(operation)


@api.route("DELETE", _ONE, needs="run.executions.delete", on=_EXECUTION, query="etag validateOnly")
def delete(call: Call) -> Json:
    """Delete an execution with its tasks, and end those that run."""
    cloud = call.cloud
    with cloud.store.transaction():
        execution = _execution(call)
        resources.check_etag(execution, call.query("etag"))
        name = execution["name"]
        metadata = typed_message("Execution", execution)
        response = metadata | {"deleteTime": timestamp(cloud.pace.now())}
        if call.flag("validateOnly"):
            return resources.validation_response(call, metadata, response)
        forget(cloud, name)
        return cloud.operations.begin_timed(call.name(resources.PARENT), metadata, response, _DELETE_SECONDS)


@api.route("GET", _ONE + "/tasks", needs="run.tasks.list", on=_EXECUTION, query="pageSize pageToken")
def list_tasks(call: Call) -> Json:
    """Tasks of an execution, in order of their indices."""
    rows = call.cloud.store.rows("task", f"{_execution(call)['name']}/tasks/")
    by_index = sorted((body for _, body in rows), key=lambda body: int(body["index"]))
    return call.page_in_order([without_zeros(body) for body in by_index], "tasks")


@api.route("GET", _ONE + "/tasks/{task:id}", needs="run.tasks.get", on=_TASK)
def get_task(call: Call) -> Json:
    """One task."""
    return without_zeros(resources.row_of(call, "task", _TASK))


def _execution(call: Call) -> Json:
    return resources.row_of(call, "execution", _EXECUTION)
