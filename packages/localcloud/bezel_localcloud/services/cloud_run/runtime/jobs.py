"""Controller of job executions: starts, counts, retries and ends the tasks that the store requires.

Owns running executions. Leaves out the API's messages (jobs_api.py) and the shape of a row (job_status.py). A task that
fails for good lets the others continue. Other behaviour of Cloud Run is unknown and not modelled.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from bezel_localcloud.core.background import BackgroundTasks
from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.core.logbook import TaskSource
from bezel_localcloud.core.store import write_when_room
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_run import job_status
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, ContainerLaunch, container_command
from bezel_localcloud.services.cloud_run.runtime.instance import Instance
from bezel_localcloud.services.cloud_run.runtime.metadata import ContainerMetadata
from bezel_localcloud.services.cloud_run.spec import RevisionSpec, revision_spec
from bezel_localcloud.services.cloud_run.status import short, typed_message

log = logging.getLogger(__name__)
_PROVISION_SECONDS = 5.0  # of the platform's time, before an execution's first container starts


class JobRunner:
    """Every running execution; rows "execution" and "task" hold the state of each, "jobRun" that it has not ended."""

    def __init__(self, cloud: Context, launcher: Callable[[ContainerLaunch], Command], timing: InstanceTiming) -> None:
        self._cloud = cloud
        self._launcher = launcher
        self._speed = timing.startup_speed
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._ending = BackgroundTasks()

    def resume(self) -> None:
        """Continue the executions that had not ended; a task that ran when the daemon ended starts again."""
        for name, _ in self._cloud.store.rows("jobRun"):
            self.start(name)

    async def close(self) -> None:
        """End all tasks; the store keeps the desired state."""
        for task in [*self._runs.values(), *self._ending]:
            task.cancel()
        await asyncio.gather(*self._runs.values(), *self._ending, return_exceptions=True)

    def start(self, name: str) -> None:
        """Run an execution that the store holds."""
        task = asyncio.create_task(self._run(name))
        self._runs[name] = task
        task.add_done_callback(lambda _: self._runs.pop(name, None))

    def cancel(self, name: str) -> None:
        """End the tasks of an execution whose row "jobRun" marks it as cancelled."""
        if task := self._runs.get(name):
            task.cancel()

    def remove(self, prefix: str) -> None:
        """End the tasks of deleted executions, those whose names have this prefix, without recording a result."""
        for name in [name for name in self._runs if name.startswith(prefix)]:
            task = self._runs.pop(name)
            task.cancel()
            self._ending.keep(task)

    async def _run(self, name: str) -> None:
        try:
            await asyncio.sleep(self._cloud.pace.seconds(_PROVISION_SECONDS))
            if not self._is_cancelled(name):
                await self._run_tasks(name)
        except asyncio.CancelledError:
            if not self._is_cancelled(name):
                raise
        except Exception:
            log.exception("execution %s failed", name)
        await write_when_room(partial(self._finish, name))

    def _is_cancelled(self, name: str) -> bool:
        return bool((self._cloud.store.get("jobRun", name) or {}).get("cancelled"))

    async def _run_tasks(self, name: str) -> None:
        execution = self._cloud.store.get("execution", name) or {}
        template, location = execution["template"], name.split("/")[3]
        spec = revision_spec(template, {})
        metadata = ContainerMetadata(self._cloud, location, spec.service_account)
        self._change("execution", name, job_status.start)
        room = asyncio.Semaphore(execution["parallelism"])
        await metadata.start()
        try:
            async with asyncio.TaskGroup() as group:
                for task in self._tasks(name):
                    if not job_status.outcome_of(task):
                        group.create_task(self._run_task(task["name"], spec, metadata, room))
        finally:
            await metadata.close()

    async def _run_task(
        self, name: str, spec: RevisionSpec, metadata: ContainerMetadata, room: asyncio.Semaphore
    ) -> None:
        """Run one task with its retries, when a slot is free."""
        async with room:
            self._change("task", name, job_status.start)
            while True:
                task = self._cloud.store.get("task", name) or {}
                result = await self._attempt(task, spec, metadata)
                failed = bool(result["status"].get("code"))
                if not failed or task.get("retried", 0) >= task["maxRetries"]:
                    break
                self._change("task", name, partial(job_status.retried_task, result=result))
            outcome = job_status.FAILED if failed else job_status.SUCCEEDED
            self._change("task", name, partial(job_status.ended_task, outcome=outcome, result=result))

    async def _attempt(self, task: Json, spec: RevisionSpec, metadata: ContainerMetadata) -> Json:
        """Run one container of a task from start to end and return its TaskAttemptResult."""
        location, attempt = task["name"].split("/")[3], task.get("retried", 0)
        source = TaskSource(location, task["job"], task["execution"], task=task["index"], attempt=attempt)
        instance = Instance(source, spec, self._cloud.sockets.new(spec.port), self._cloud.logbook)
        platform = self._environment(task, metadata)
        seconds = seconds_of(task["timeout"], 0.0)
        try:
            command = container_command(self._cloud, self._launcher, spec, instance.address, self._speed, platform)
            await instance.start(command, "JOB_TASK")
            await asyncio.wait_for(instance.exited.wait(), seconds)
        except TimeoutError:
            why = f"Terminating task because it has reached the maximum timeout of {seconds:g} seconds."
            return self._failed_attempt(instance, why, timed_out=seconds)
        except RevisionFailureError as failure:
            return self._failed_attempt(instance, failure.text)
        except OSError as error:
            return self._failed_attempt(instance, f"Application exec likely failed: {error}.")
        finally:
            if not instance.exited.is_set():
                await instance.stop()
        return job_status.attempt_result(instance.code)

    def _failed_attempt(self, instance: Instance, why: str, *, timed_out: float = 0.0) -> Json:
        """Log why an attempt ends, before its container is stopped and writes its own last lines."""
        self._cloud.logbook.platform(instance.source, "ERROR", why)
        return job_status.attempt_result(None, timed_out=timed_out)

    def _environment(self, task: Json, metadata: ContainerMetadata) -> dict[str, str]:
        """Variables that the platform sets for a task; Google's APIs and metadata server are local addresses."""
        execution = self._cloud.store.get("execution", task["name"].rpartition("/tasks/")[0]) or {}
        return {
            "CLOUD_RUN_JOB": task["job"],
            "CLOUD_RUN_EXECUTION": task["execution"],
            "CLOUD_RUN_TASK_INDEX": str(task["index"]),
            "CLOUD_RUN_TASK_COUNT": str(execution["taskCount"]),
            "CLOUD_RUN_TASK_ATTEMPT": str(task.get("retried", 0)),
            # Not the user's home: a task must not find a login stored there.
            "HOME": str(self._cloud.layout.root),
            **metadata.environment(),
        }

    def _change(self, kind: str, name: str, change: Callable[[Json, float], Json]) -> None:
        """Change a row that still exists, and the counts of its execution with it."""
        store, now = self._cloud.store, self._cloud.pace.now()
        execution = name.partition("/tasks/")[0]
        with store.transaction():
            if (row := store.get(kind, name)) is None:
                return
            store.put(kind, name, change(row, now))
            if (execution_row := store.get("execution", execution)) is not None:
                self._put_execution(execution_row | job_status.counts(self._tasks(execution)))

    def _finish(self, name: str) -> None:
        store, now = self._cloud.store, self._cloud.pace.now()
        with store.transaction():
            execution, pending = store.get("execution", name), store.get("jobRun", name)
            if execution is None or pending is None:
                return
            cancelled = bool(pending.get("cancelled"))
            for task in self._tasks(name):
                if not job_status.outcome_of(task):
                    outcome = job_status.CANCELLED if cancelled else job_status.FAILED
                    store.put("task", task["name"], job_status.ended_task(task, now, outcome, {}))
            execution = job_status.ended_execution(execution, self._tasks(name), cancelled=cancelled, now=now)
            self._put_execution(execution)
            store.delete("jobRun", name)
            response = typed_message("Execution", execution)
            for operation in pending["operations"]:
                self._cloud.operations.finish(operation, response=response)

    def _tasks(self, execution: str) -> list[Json]:
        return [body for _, body in self._cloud.store.rows("task", f"{execution}/tasks/")]

    def _put_execution(self, execution: Json) -> None:
        """Store an execution, and its state in the job if it is the job's latest."""
        self._cloud.store.put("execution", execution["name"], execution)
        owner = execution["name"].rpartition("/executions/")[0]
        job = self._cloud.store.get("job", owner)
        if job and (job.get("latestCreatedExecution") or {}).get("name") == short(execution["name"]):
            self._cloud.store.put("job", owner, job | {"latestCreatedExecution": job_status.reference(execution)})
