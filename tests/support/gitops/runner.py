"""A runner for Gitea's jobs: `python -m tests.support.gitops.runner FOLDER`, its settings in FOLDER/runner.json.

Takes a task from the forge, checks its commit out as `actions/checkout` would, lets act run the job on this machine
(`job`), and reports log, outputs and result. Leaves out the forge (`forge`) and its machine (`machine`).
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from tests.support.gitops.job import LABEL, Job, Settings

POLL_SECONDS = 0.3
CALL_SECONDS = 60.0
RESULTS = {"success": "RESULT_SUCCESS", "failure": "RESULT_FAILURE", "cancelled": "RESULT_CANCELLED"}


class Runner:
    """A registered runner."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.client = httpx.Client(
            base_url=f"{settings.forge}/api/actions/runner.v1.RunnerService", timeout=30, trust_env=False
        )
        body = {"name": folder.name, "token": settings.registration, "labels": [LABEL], "version": "tests"}
        answer = self.call("Register", body)["runner"]
        self.client.headers.update({"x-runner-uuid": answer["uuid"], "x-runner-token": answer["token"]})
        self.call("Declare", {"labels": [LABEL], "version": "tests"})

    def call(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method of the runner's protocol: Connect with JSON."""
        end = time.monotonic() + CALL_SECONDS
        while True:
            try:
                response = self.client.post(f"/{method}", json=body)
                response.raise_for_status()
            except httpx.HTTPError as error:
                # The forge's database is locked now and then; a runner asks again.
                print(method, repr(error), file=sys.stderr, flush=True)
                if time.monotonic() > end:
                    raise
                time.sleep(POLL_SECONDS)
            else:
                answer: dict[str, Any] = response.json()
                return answer

    def serve(self) -> None:
        """Take and run tasks until this process is ended."""
        with ThreadPoolExecutor(self.settings.jobs) as pool:
            running: list[Any] = []
            while True:
                running = [future for future in running if not future.done()]
                # With version 0 the forge always looks for a task.
                if len(running) < self.settings.jobs and (
                    task := self.call("FetchTask", {"tasksVersion": 0}).get("task")
                ):
                    running.append(pool.submit(self.run, task))
                else:
                    time.sleep(POLL_SECONDS)

    def run(self, task: dict[str, Any]) -> None:
        """Run one task and report it."""
        started = now()
        work = Path(tempfile.mkdtemp(prefix=f"job-{task['id']}-", dir=self.folder))
        result, outputs, log = "failure", {}, ""
        try:
            job = Job(task, work, self.settings)
            result, outputs, log = job.run()
        except Exception as error:  # noqa: BLE001 -- whatever it was, the forge is told
            log += f"the runner failed: {error!r}"
        finally:
            shutil.rmtree(work, ignore_errors=True)
        rows = [{"time": started, "content": line} for line in log.splitlines()]
        self.call("UpdateLog", {"taskId": task["id"], "index": "0", "rows": rows, "noMore": True})
        state = {
            "id": task["id"],
            "result": RESULTS.get(result, "RESULT_SKIPPED"),
            "startedAt": started,
            "stoppedAt": now(),
        }
        self.call("UpdateTask", {"state": state, "outputs": outputs})


def now() -> str:
    """The time, as the protocol writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def begin_machine() -> None:
    """As the first process of a namespace, run the rest in another one: the first has to wait for all that ends."""
    if os.getpid() != 1:
        return
    if runner := os.fork():
        while os.wait()[0] != runner:
            pass
        sys.exit()


if __name__ == "__main__":
    begin_machine()
    place = Path(sys.argv[1])
    Runner(place, Settings(**json.loads((place / "runner.json").read_text()))).serve()
