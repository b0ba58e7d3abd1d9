"""Client for Cloud Run jobs over REST: create, run, read, delete.

Owns the requests and the waits for their operations. Leaves out what a job is for (`bezel.cli.bench.job`).
"""

import time
from collections.abc import Callable
from typing import Any

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.errors import UserError

Json = dict[str, Any]
_MIN_PAUSE, _MAX_PAUSE = 0.2, 2.0  # seconds between two requests for an operation's state
_OPERATION_SECONDS = 180.0
_SHOW_SECONDS = 10.0
_LOG_SECONDS = 5.0
_LOG_LINES = 8


class CloudRunJobs:
    """The jobs of a region.

    Args:
        google: Sends the requests.
        project: Google Cloud project.
        region: Region of the jobs.
        show: Takes progress messages.
    """

    def __init__(self, google: GoogleClient, project: str, region: str, show: Callable[[str], None]) -> None:
        self._google = google
        self._base = endpoint("CLOUD_RUN_V2")
        self._project = f"projects/{project}"
        self._jobs = f"{self._base}{self._project}/locations/{region}/jobs"
        self._show = show

    def find(self, name: str) -> Json | None:
        """The job of that name, None if there is none.

        Raises:
            RestError: Cloud Run could not be read.
        """
        return unless_missing(lambda: self._google.get(f"{self._jobs}/{name}"))

    def create(self, name: str, body: Json) -> None:
        """Create a job, and wait until it is ready. An existing one of the same name and labels counts as created.

        Raises:
            UserError: The job does not become ready.
            RestError: Cloud Run refuses it.
        """
        try:
            begun = self._google.post(self._jobs, json=body, params={"jobId": name}, idempotent=True)
        except ApiError as error:
            # The first response was lost: that request had created the job, and this is its retry.
            existing = self.find(name) if error.status == 409 else None
            if existing is None or existing.get("labels") != body["labels"]:
                raise
            job = self._until(lambda: _settled_job(self.find(name) or {}), f"the creation of job {name}")
            condition = job.get("terminalCondition", {})
            failure = condition if condition.get("state") == "CONDITION_FAILED" else None
        else:
            failure = self._await_operation(begun, f"the creation of job {name}").get("error")
        if failure is not None:
            raise UserError(f"job {name} cannot be run: {_message(failure)}")

    def run(self, name: str) -> str:
        """Start a job; return the full name of the execution.

        Raises:
            RestError: Cloud Run refuses it.
        """
        # Not retried when the outcome is unknown: two executions at once would send twice the load.
        begun = self._google.post(f"{self._jobs}/{name}:run", json={})
        return str(begun["metadata"]["name"])

    def execution(self, name: str) -> Json:
        """An execution by its full name.

        Raises:
            RestError: Cloud Run could not be read.
        """
        return self._google.get(f"{self._base}{name}")

    def tasks(self, execution: str) -> list[Json]:
        """The tasks of an execution, by its full name.

        Raises:
            RestError: Cloud Run could not be read.
        """
        return list(self._google.pages(f"{self._base}{execution}/tasks", "tasks"))

    def last_lines(self, execution: str, task: int) -> str:
        """The last lines of a task's standard error; "" where the log has none, or may not be read."""
        terms = (
            'resource.type="cloud_run_job"',
            f'labels."run.googleapis.com/execution_name"="{execution.rpartition("/")[2]}"',
            f'labels."run.googleapis.com/task_index"="{task}"',
            'logName:"run.googleapis.com%2Fstderr"',
        )
        query = {"resourceNames": [self._project], "filter": " AND ".join(terms)}
        body = query | {"orderBy": "timestamp desc", "pageSize": _LOG_LINES}
        end = time.monotonic() + _LOG_SECONDS
        try:
            # Log entries arrive after the task's end.
            while not (entries := self._google.post(f"{endpoint('LOGGING')}entries:list", json=body).get("entries")):
                if time.monotonic() > end:
                    return ""
                time.sleep(_MIN_PAUSE)
        except RestError:
            return ""
        return "\n".join(str(entry.get("textPayload") or "").rstrip() for entry in reversed(entries)).strip()

    def delete(self, name: str) -> bool:
        """Delete a job with its executions, which ends their tasks; return whether there was one.

        Raises:
            RestError: It may still be there.
            UserError: It is still there.
        """
        begun = unless_missing(lambda: self._google.request("DELETE", f"{self._jobs}/{name}"))
        if begun is None:
            return False
        if error := self._await_operation(begun, f"the deletion of job {name}").get("error"):
            raise UserError(f"job {name} was not deleted: {_message(error)}")
        return True

    def _await_operation(self, operation: Json, what: str) -> Json:
        """Wait for an operation; return it once it is done."""
        if operation.get("done"):
            return operation
        return self._until(lambda: _done_operation(self._google.get(f"{self._base}{operation['name']}")), what)

    def _until(self, read: Callable[[], Json | None], what: str) -> Json:
        """Call `read` until it returns something; return that.

        Raises:
            UserError: It returned nothing in time.
        """
        began = shown = time.monotonic()
        pause = _MIN_PAUSE
        while (result := read()) is None:
            now = time.monotonic()
            if now - began > _OPERATION_SECONDS:
                raise UserError(f"{what} did not complete within {_OPERATION_SECONDS:g} s: run the same command again.")
            if now - shown > _SHOW_SECONDS:
                shown = now
                self._show(f"waits for {what}, {now - began:.0f} s so far")
            time.sleep(pause)
            pause = min(_MAX_PAUSE, pause * 1.5)
        return result


def unless_missing(request: Callable[[], Json]) -> Json | None:
    """The result of a request; None if its resource does not exist.

    Raises:
        RestError: The request failed otherwise.
    """
    try:
        return request()
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _done_operation(operation: Json) -> Json | None:
    return operation if operation.get("done") else None


def _settled_job(job: Json) -> Json | None:
    return None if job.get("reconciling") else job


def _message(failure: Json) -> str:
    return str(failure.get("message") or "Cloud Run gives no reason")
