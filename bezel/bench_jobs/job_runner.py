"""Runner of a load in the tasks of a Cloud Run job: creates the job, starts its tasks together, merges, cleans up.

The order leaves nothing that cannot be found: first a record on this machine, then objects below a prefix and a job,
both with names derived from the server's address; deleted are the job, the objects, the record. A run finds what a
killed one left, by the records or by the names, and deletes it before it begins. The samples of a killed run's tasks
are not reused: the server's counters were not read around them.

A task that fails is not retried (it would miss the start) and fails the run with its reason. Leaves out what a task
does (`bezel.bench.distributed.worker`), how parts become one load (`bezel.bench.distributed.merge`) and the result.
"""

from __future__ import annotations

import secrets
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bezel.bench.distributed import protocol
from bezel.bench.distributed.merge import Merged, merge
from bezel.bench.distributed.protocol import Part, Plan
from bezel.bench.distributed.worker import LEAD_SECONDS
from bezel.bench_jobs.cleanup import by_hand, is_ours, labels_of, tidied, tidy_leftovers
from bezel.bench_jobs.cloud_run_jobs import CloudRunJobs
from bezel.bench_jobs.gcs_exchange import BucketPlace
from bezel.bench_jobs.job_registry import JobRecord, noted, state_folder
from bezel.errors import UserError
from bezel.rest import GoogleClient, RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bezel.bench.load.plan import Load

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
        image: Reference of the image that `bezel/bench/Dockerfile` builds.
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

    def made(self, url: str) -> JobRecord:
        """The record of a run's job and objects, with names that the next run derives again."""
        job = f"bezel-bench-{sha256(url.encode()).hexdigest()[:10]}"
        return JobRecord(self.project, self.region, job, f"gs://{self.bucket}/{job}", secrets.token_hex(4))


def send_by_tasks(load: Load, fleet: Fleet, show: Callable[[str], None]) -> Merged:
    """Send a load from the tasks of a job; return their merged samples on this machine's clock.

    Raises:
        UserError: The load could not be sent; the text names what failed, and leftovers, if there are any.
    """
    made = fleet.made(load.target.url)
    try:
        with _terminated_as_interrupted(), GoogleClient() as google:
            tidy_leftovers(google, made.job, show)
            with noted(made, state_folder()) as forget, BucketPlace(made.place, fleet.seconds) as place:
                run = _Run(load, fleet, made, place, CloudRunJobs(google, made.project, made.region, show), show)
                try:
                    run.take_over()
                except BaseException:
                    forget()  # this run has made nothing yet, and whatever exists is another's
                    raise
                try:
                    return run.measure()
                finally:
                    if tidied(google, made, show):
                        forget()
    except RestError as error:
        raise UserError(str(error)) from None


@dataclass
class _Run:
    """One run of a load job, from its creation to the merged samples."""

    load: Load
    fleet: Fleet
    made: JobRecord
    place: BucketPlace
    jobs: CloudRunJobs
    show: Callable[[str], None]

    def take_over(self) -> None:
        """Delete a job of this name that a run on another machine has left.

        Raises:
            UserError: The job was not created by this command, or still runs.
        """
        job = self.jobs.find(self.made.job)
        if job is None:
            return
        where = f"job {self.made.job} in {self.made.region}"
        if not is_ours(job):
            raise UserError(
                f"{where} has not the labels of this command, so it is somebody else's. Rename or delete it."
            )
        status = (job.get("latestCreatedExecution") or {}).get("completionStatus")
        if status in {"EXECUTION_RUNNING", "EXECUTION_PENDING"}:
            raise UserError(
                f"{where} loads the same server since {job['createTime']}, begun by {job.get('creator')} on another "
                f"machine: two loads would measure each other. It ends by {_end_of(job)} at the latest; to end it now: "
                f"{by_hand(self.made)}"
            )
        self.show(f"{where} was left by a run elsewhere: deletes it")
        self.jobs.delete(self.made.job)

    def measure(self) -> Merged:
        """Create the job, start its tasks together, and merge their parts."""
        fleet = self.fleet
        deadline = time.monotonic() + fleet.seconds
        self.place.clear()
        prompts = self.load.prompts
        load = replace(self.load, workers=fleet.tasks)
        if prompts.file:
            self.place.put(protocol.TEXTS, Path(prompts.file).read_bytes())
        plan = Plan(load, fleet.ready_seconds, protocol.code(), texts=bool(prompts.file))
        before = time.time_ns()
        arrived = self.place.write(protocol.PLAN, plan.document())
        # This machine's clock may be off by more than the tasks': the start time is given by Cloud Storage's clock.
        ahead = arrived - (before + time.time_ns()) // 2
        self.show(f"makes job {self.made.job} of {fleet.tasks} tasks in {fleet.region}")
        try:
            self.jobs.create(self.made.job, self._body())
        except UserError as error:
            raise UserError(f"{error} --image names what you built from bezel/bench/Dockerfile and pushed.") from None
        execution = self.jobs.run(self.made.job)
        ready = {protocol.ready(task) for task in range(fleet.tasks)}
        self._await(ready, execution, min(deadline, time.monotonic() + fleet.ready_seconds), "are ready")
        at = time.time_ns() + ahead + round(LEAD_SECONDS * 1e9)
        self.place.write(protocol.START, {"at": at})
        told = {protocol.part(task) for task in range(fleet.tasks)}
        self._await(told, execution, deadline, "have told what they saw")
        found = [self._part(task) for task in range(fleet.tasks)]
        return merge(found, fleet.tasks, time.time_ns(), time.monotonic_ns())

    def _await(self, wanted: set[str], execution: str, deadline: float, what: str) -> None:
        """Wait until the documents of all tasks exist, or a task has failed."""
        began = time.monotonic()
        while missing := wanted - set(self.place.names()):
            found = self.jobs.execution(execution)
            if found.get("failedCount") or found.get("cancelledCount") or found.get("completionTime"):
                # A task that ended well wrote its document before its end; look once more.
                if not wanted - set(self.place.names()):
                    return
                raise UserError(self._why_failed(execution))
            now = time.monotonic()
            told = f"{len(wanted) - len(missing)} of {len(wanted)} tasks {what}"
            if now > deadline:
                raise UserError(
                    f"{told} after {now - began:.0f} s, so the load of all together cannot be measured. Give it longer "
                    "(--ready-seconds, --job-seconds), or look at the job's log."
                )
            self.show(f"{told}, {deadline - now:.0f} s left; {found.get('runningCount', 0)} run")
            time.sleep(_POLL_SECONDS)

    def _part(self, task: int) -> Part:
        document = self.place.read(protocol.part(task)) or {}
        if "failed" in document:
            raise UserError(f"task {task} of {self.fleet.tasks} failed: {document['failed']}")
        return Part.of(document, self.place.get(protocol.samples(task)))

    def _why_failed(self, execution: str) -> str:
        """The reason that the first failed task reported, else Cloud Run's."""
        for task in range(self.fleet.tasks):
            document = self.place.read(protocol.part(task)) or {}
            if "failed" in document:
                return f"task {task} of {self.fleet.tasks} failed: {document['failed']}"
        for row in self.jobs.tasks(execution):
            result, task = row.get("lastAttemptResult") or {}, row.get("index", 0)
            if message := (result.get("status") or {}).get("message"):
                how = f"exit code {result['exitCode']}" if "exitCode" in result else ""
                said = ", ".join(part for part in (str(message).rstrip("."), how) if part)
                words = self.jobs.last_words(execution, task) or "nothing on its standard error"
                return (
                    f"task {task} of {self.fleet.tasks} died ({said}), so nothing was measured. Its last words: {words}"
                )
        return f"execution {execution} ended before its tasks told what they saw, so nothing was measured: see its log."

    def _body(self) -> dict[str, Any]:
        fleet = self.fleet
        container = {
            "image": fleet.image,
            "command": ["bezel"],
            "args": ["bench", "worker", self.made.place],
            "resources": {"limits": {"cpu": str(CPU), "memory": f"{MEMORY_GIB}Gi"}},
        }
        task = {
            "containers": [container],
            "serviceAccount": fleet.service_account,
            "executionEnvironment": "EXECUTION_ENVIRONMENT_GEN2",
            "maxRetries": 0,
            "timeout": f"{fleet.seconds:.0f}s",
        }
        labels = labels_of(self.made)
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

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
