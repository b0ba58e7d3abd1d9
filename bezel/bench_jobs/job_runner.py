"""Runner of a load in the tasks of a Cloud Run job: creates the job, starts its tasks together, merges, cleans up.

The order leaves nothing that cannot be found: first a record on this machine, then objects below a prefix and a job,
both with names derived from the server's address; deleted are the job, the objects, the record. A run finds what a
killed one left, by the records or by the names, and deletes it before it begins. The samples of a killed run's tasks
are not reused: the server's counters were not read around them.

A task that fails is not retried (it would miss the start) and fails the run with its reason. Leaves out what a task
does (`bezel_bench.distributed.worker`), how parts become one load (`bezel_bench.distributed.merge`) and the result.
"""

import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NoReturn

from bezel.bench_jobs.cloud_run_jobs import CloudRunJobs
from bezel.bench_jobs.gcs_exchange import BucketExchange
from bezel.bench_jobs.job_registry import JobRecord, clean_up, clean_up_orphans, created_by_bezel, hold_record
from bezel.rest import GoogleClient, RestError
from bezel_base import ending_signals
from bezel_base.errors import Problem, UserError
from bezel_bench.distributed import protocol
from bezel_bench.distributed.merge import Merged, merge
from bezel_bench.distributed.protocol import Part, Plan
from bezel_bench.distributed.worker import LEAD_SECONDS
from bezel_bench.load.plan import Load

CPU: Final = 2
MEMORY_GIB: Final = 2
"""CPU and memory of a task: one core for the sending process, and one for the machine's other work."""
_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Fleet:
    """The tasks that send a load.

    Attributes:
        project: Google Cloud project.
        region: Region that they run in.
        tasks: Number of tasks.
        image: Reference of their image (`bezel.bench_jobs.job_image`).
        service_account: Their service account: it may invoke the server and write the bucket.
        bucket: Bucket for the exchange of plan and parts.
        ready_seconds: Time limit for all of them to come up.
        seconds: Time limit for the whole job, at which the platform ends it.
    """

    project: str
    region: str
    tasks: int
    image: str
    service_account: str
    bucket: str
    ready_seconds: float
    seconds: float

    def record_for(self, url: str) -> JobRecord:
        """The record of a run's job and objects, with names that the next run derives again."""
        job = f"bezel-bench-{sha256(url.encode()).hexdigest()[:10]}"
        return JobRecord(self.project, self.region, job, f"gs://{self.bucket}/{job}", secrets.token_hex(4))


def send_by_tasks(load: Load, fleet: Fleet, show: Callable[[str], None]) -> Merged:
    """Send a load from the tasks of a job; return their merged samples on this machine's clock.

    Raises:
        UserError: The load could not be sent; the text names what failed, and leftovers, if there are any.
    """
    record = fleet.record_for(load.target.url)
    with _terminated_as_interrupted(), GoogleClient() as google:
        clean_up_orphans(google, record.job, show)
        with hold_record(record) as forget, BucketExchange(record.place, fleet.seconds) as exchange:
            jobs = CloudRunJobs(google, record.project, record.region, show)
            run = _Run(load, fleet, record, exchange, jobs, show)
            try:
                run.take_over()
            except BaseException:
                forget()  # this run has created nothing yet, and whatever exists belongs to another
                raise
            try:
                return run.measure()
            finally:
                if clean_up(google, record, show):
                    forget()


@dataclass
class _Run:
    """One run of a load job, from its creation to the merged samples."""

    load: Load
    fleet: Fleet
    record: JobRecord
    exchange: BucketExchange
    jobs: CloudRunJobs
    show: Callable[[str], None]

    def take_over(self) -> None:
        """Delete a job of this name that a run on another machine has left.

        Raises:
            UserError: The job was not created by this command, or still runs.
        """
        job = self.jobs.find(self.record.job)
        if job is None:
            return
        if not created_by_bezel(job):
            consequence = "the job was not created by bezel (labels missing), so it is not replaced."
            raise UserError(Problem(str(self.record), None, consequence, "rename or delete it."))
        status = (job.get("latestCreatedExecution") or {}).get("completionStatus")
        if status in {"EXECUTION_RUNNING", "EXECUTION_PENDING"}:
            raise UserError(
                Problem(
                    str(self.record),
                    None,
                    f"a run of {job.get('creator')} on another machine loads the same server since {job['createTime']}"
                    ": two loads would measure each other.",
                    f"wait for its end, {_end_of(job)} at the latest, or end it now: {self.record.delete_command}",
                )
            )
        self.show(f"{self.record} is left from a run on another machine: deletes it")
        self.jobs.delete(self.record.job)

    def measure(self) -> Merged:
        """Create the job, start its tasks together, and merge their parts."""
        fleet = self.fleet
        deadline = time.monotonic() + fleet.seconds
        self.exchange.clear()
        prompts = self.load.prompts
        load = replace(self.load, workers=fleet.tasks)
        if prompts.file:
            self.exchange.put(protocol.TEXTS, Path(prompts.file).read_bytes())
        plan = Plan(load, fleet.ready_seconds, protocol.code(), texts=bool(prompts.file))
        before = time.time_ns()
        arrived = self.exchange.write(protocol.PLAN, plan.document())
        # This machine's clock may be off by more than the tasks': the start time is given by Cloud Storage's clock.
        ahead = arrived - (before + time.time_ns()) // 2
        self.show(f"creates job {self.record.job} of {fleet.tasks} tasks in {fleet.region}")
        try:
            self.jobs.create(self.record.job, self._body())
        except RestError:
            raise
        except UserError as error:
            repair = "name the image that `bezel bench image LOCATION-docker.pkg.dev/PROJECT/REPOSITORY` prints."
            raise UserError(Problem("--image", fleet.image, str(error), repair)) from None
        execution = self.jobs.run(self.record.job)
        ready = {protocol.ready(task) for task in range(fleet.tasks)}
        self._await(ready, execution, min(deadline, time.monotonic() + fleet.ready_seconds), "are ready")
        at = time.time_ns() + ahead + round(LEAD_SECONDS * 1e9)
        self.exchange.write(protocol.START, {"at": at})
        documents = {protocol.part(task) for task in range(fleet.tasks)}
        self._await(documents, execution, deadline, "have reported")
        parts = [Part.of(self._report(task), self.exchange.get(protocol.samples(task))) for task in range(fleet.tasks)]
        return merge(parts, fleet.tasks, time.time_ns(), time.monotonic_ns())

    def _await(self, names: set[str], execution: str, deadline: float, what: str) -> None:
        """Wait until the documents of all tasks exist, or a task has failed."""
        began = time.monotonic()
        while missing := names - set(self.exchange.names()):
            status = self.jobs.execution(execution)
            if status.get("failedCount") or status.get("cancelledCount") or status.get("completionTime"):
                # A task that ended well wrote its document before its end; look once more.
                if not names - set(self.exchange.names()):
                    return
                self._raise_failure(execution)
            now = time.monotonic()
            progress = f"{len(names) - len(missing)} of {len(names)} tasks {what}"
            if now > deadline:
                raise UserError(
                    Problem(
                        "--ready-seconds, --job-seconds",
                        None,
                        f"{progress} after {now - began:.0f} s, so the load of all tasks cannot be measured.",
                        "give a longer time, or read the job's log.",
                    )
                )
            self.show(f"{progress}, {deadline - now:.0f} s left; {status.get('runningCount', 0)} run")
            time.sleep(_POLL_SECONDS)

    def _report(self, task: int) -> dict[str, Any]:
        """The document of a task about its share, {} where there is none.

        Raises:
            UserError: The task reports that it failed.
        """
        document = self.exchange.read(protocol.part(task)) or {}
        if "failed" in document:
            raise UserError(f"task {task} of {self.fleet.tasks} failed: {document['failed']}")
        return document

    def _raise_failure(self, execution: str) -> NoReturn:
        """Raise the failure that the first failed task reported, else Cloud Run's."""
        for task in range(self.fleet.tasks):
            self._report(task)
        for row in self.jobs.tasks(execution):
            result, task = row.get("lastAttemptResult") or {}, row.get("index", 0)
            if message := (result.get("status") or {}).get("message"):
                code = f", exit code {result['exitCode']}" if "exitCode" in result else ""
                lines = self.jobs.last_lines(execution, task) or "none"
                raise UserError(
                    f"task {task} of {self.fleet.tasks} died ({str(message).rstrip('.')}{code}), so nothing was "
                    f"measured. The last lines of its log: {lines}"
                )
        raise UserError(
            f"execution {execution} ended before its tasks had reported, so nothing was measured: read its log."
        )

    def _body(self) -> dict[str, Any]:
        fleet = self.fleet
        container = {
            "image": fleet.image,
            "command": ["bezel"],
            "args": ["bench", "worker", self.record.place],
            "resources": {"limits": {"cpu": str(CPU), "memory": f"{MEMORY_GIB}Gi"}},
        }
        task = {
            "containers": [container],
            "serviceAccount": fleet.service_account,
            "executionEnvironment": "EXECUTION_ENVIRONMENT_GEN2",
            "maxRetries": 0,
            "timeout": f"{fleet.seconds:.0f}s",
        }
        labels = self.record.labels
        return {
            "labels": labels,
            "template": {"labels": labels, "taskCount": fleet.tasks, "parallelism": fleet.tasks, "template": task},
        }


def _end_of(job: dict[str, Any]) -> str:
    """The latest end of a job's tasks by the platform's timeout, counted from the job's creation."""
    seconds = float(job["template"]["template"]["timeout"].rstrip("s"))
    end = datetime.fromisoformat(job["createTime"]) + timedelta(seconds=seconds)
    return end.strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that both delete what was made."""

    def interrupt(number: int, _frame: object) -> None:
        ending_signals.note(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
