"""Client for Cloud Run jobs over REST: create, run, read, delete.

Owns the requests and the waits for their operations. Leaves out what a job is for (`bezel.cli.bench.job`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bezel.errors import UserError
from bezel.rest import ApiError, GoogleClient, RestError, endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
_SHORTEST, _LONGEST = 0.2, 2.0  # seconds between two requests for an operation's state
_OPERATION_SECONDS = 180.0
_TELL_SECONDS = 10.0
_LOG_SECONDS = 5.0


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
        self._parent = f"projects/{project}/locations/{region}"
        self._show = show

    def find(self, name: str) -> Json | None:
        """The job of that name, None if there is none.

        Raises:
            RestError: Cloud Run could not be read.
        """
        try:
            return self._google.get(f"{self._base}{self._parent}/jobs/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, name: str, body: Json) -> None:
        """Create a job, and wait until it is ready. An existing one of the same name and labels counts as created.

        Raises:
            UserError: The job does not become ready.
            RestError: Cloud Run refuses it.
        """
        try:
            url = f"{self._base}{self._parent}/jobs"
            begun = self._google.post(url, json=body, params={"jobId": name}, idempotent=True)
        except ApiError as error:
            # The first response was lost: that request had created the job, and this is its retry.
            found = self.find(name) if error.status == 409 else None
            if found is None or found.get("labels") != body["labels"]:
                raise
            job = self._until(lambda: _settled(self.find(name) or {}), f"job {name} to be made")
            if job.get("terminalCondition", {}).get("state") == "CONDITION_FAILED":
                raise UserError(f"job {name} cannot be run: {_said(job['terminalCondition'])}") from None
        else:
            ended = self._ended(begun, f"job {name} to be made")
            if "error" in ended:
                raise UserError(f"job {name} cannot be run: {_said(ended['error'])}")

    def run(self, name: str) -> str:
        """Start a job; return the full name of the execution.

        Raises:
            RestError: Cloud Run refuses it.
        """
        # Not retried when the outcome is unknown: two executions at once would send twice the load.
        begun = self._google.post(f"{self._base}{self._parent}/jobs/{name}:run", json={})
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

    def last_words(self, execution: str, task: int) -> str:
        """The last line of a task's standard error; "" where the log has no entry of it, or may not be read."""
        terms = (
            'resource.type="cloud_run_job"',
            f'labels."run.googleapis.com/execution_name"="{execution.rpartition("/")[2]}"',
            f'labels."run.googleapis.com/task_index"="{task}"',
            'logName:"run.googleapis.com%2Fstderr"',
        )
        project = self._parent.partition("/locations/")[0]
        body = {"resourceNames": [project], "filter": " AND ".join(terms), "orderBy": "timestamp desc", "pageSize": 1}
        end = time.monotonic() + _LOG_SECONDS
        try:
            # Log entries arrive after the task's end.
            while not (entries := self._google.post(f"{endpoint('LOGGING')}entries:list", json=body).get("entries")):
                if time.monotonic() > end:
                    return ""
                time.sleep(_SHORTEST)
        except RestError:
            return ""
        return str(entries[0].get("textPayload") or "").strip()

    def delete(self, name: str) -> bool:
        """Delete a job with its executions, which ends their tasks; return whether there was one.

        Raises:
            RestError: It may still be there.
            UserError: It is still there.
        """
        try:
            begun = self._google.request("DELETE", f"{self._base}{self._parent}/jobs/{name}")
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        ended = self._ended(begun, f"job {name} to be deleted")
        if "error" in ended:
            raise UserError(f"job {name} was not deleted: {_said(ended['error'])}")
        return True

    def _ended(self, operation: Json, what: str) -> Json:
        """Wait for an operation; return it once it is done."""
        if operation.get("done"):
            return operation
        return self._until(lambda: _done(self._google.get(f"{self._base}{operation['name']}")), what)

    def _until(self, look: Callable[[], Json | None], what: str) -> Json:
        """Call `look` until it returns something; return that.

        Raises:
            UserError: It returned nothing in time.
        """
        began = told = time.monotonic()
        pause = _SHORTEST
        while (found := look()) is None:
            now = time.monotonic()
            if now - began > _OPERATION_SECONDS:
                raise UserError(f"waited {_OPERATION_SECONDS:g} s for {what}, in vain: run the same command again.")
            if now - told > _TELL_SECONDS:
                told = now
                self._show(f"waits for {what}, {now - began:.0f} s so far")
            time.sleep(pause)
            pause = min(_LONGEST, pause * 1.5)
        return found


def _done(operation: Json) -> Json | None:
    return operation if operation.get("done") else None


def _settled(job: Json) -> Json | None:
    return None if job.get("reconciling") else job


def _said(holder: Json) -> str:
    return str(holder.get("message") or "Cloud Run does not say why")
