"""Registry of load jobs that this user's runs created and have not deleted, and their cleanup.

A record is a small file, written before its run creates anything, locked while the run lives, and deleted after
everything else is deleted. So a record without a lock belongs to a killed run. Owns the labels that mark a job as
created by bezel, and the message about leftovers that cannot be deleted.
"""

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TextIO

from bezel.bench_jobs.cloud_run_jobs import CloudRunJobs
from bezel.bench_jobs.gcs_exchange import BucketExchange
from bezel.rest import GoogleClient
from bezel_base.errors import Problem, UserError
from bezel_base.state_folder import state_folder
from bezel_base.text.shell import shell_word

LABELS: Final = {"managed-by": "bezel", "bezel-part": "bench-load"}
RUN: Final = "bezel-run"
"""Label with the mark of the run that created a job."""
_FOLDER: Final = "load-jobs"
_SECONDS: Final = 120.0


@dataclass(frozen=True)
class JobRecord:
    """The job of a run, and the address of its objects; `run` is the run's mark, also one of the job's labels."""

    project: str
    region: str
    job: str
    place: str
    run: str

    def __str__(self) -> str:
        return f"job {self.job} in {self.region}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the job."""
        return LABELS | {RUN: self.run}

    @property
    def delete_command(self) -> str:
        """The command that deletes the job."""
        return (
            f"gcloud run jobs delete {shell_word(self.job)} --project {shell_word(self.project)} --region "
            f"{shell_word(self.region)}"
        )


def created_by_bezel(job: dict[str, Any]) -> bool:
    """Whether any run of this command has created a job."""
    return (job.get("labels") or {}).items() >= LABELS.items()


@contextmanager
def hold_record(record: JobRecord, folder: Path | None = None) -> Iterator[Callable[[], None]]:
    """Hold a locked record of a run's job while the run lives.

    Returns:
        The function that deletes the record, to be called once everything of the run is deleted.

    Raises:
        UserError: Another run on this machine holds the record of the same job.
    """
    folder = folder or state_folder(_FOLDER)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{sha256(f'{record.project} {record.region} {record.job}'.encode()).hexdigest()[:24]}.json"
    with _open_locked(file, record) as opened:
        opened.truncate(0)
        opened.write(json.dumps(asdict(record)))
        opened.flush()
        yield lambda: file.unlink(missing_ok=True)


def _open_locked(file: Path, record: JobRecord) -> TextIO:
    """Open and lock the file. A file that its last run has deleted meanwhile is created again."""
    while True:
        opened = file.open("a+", encoding="utf-8")
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            opened.close()
            consequence = "another run on this machine loads the same server: two loads would measure each other."
            raise UserError(Problem(str(record), None, consequence, "wait until that run ends, or stop it.")) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened.fileno()), file.stat()):
                return opened
        opened.close()


def orphaned_records(folder: Path | None = None) -> list[JobRecord]:
    """The records of killed runs."""
    records = []
    for file in sorted((folder or state_folder(_FOLDER)).glob("*.json")):
        # Locked by a live run, deleted meanwhile, or not a record: no orphan.
        with suppress(OSError, ValueError, TypeError), file.open(encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            records.append(JobRecord(**json.loads(opened.read())))
    return records


def clean_up(google: GoogleClient, record: JobRecord, show: Callable[[str], None]) -> bool:
    """Delete the job and objects of a run; return whether all are deleted.

    A leftover is reported, and does not void the measurement.
    """
    try:
        _delete(google, record, show)
    except UserError as error:
        _report_leftover(record, str(error))
        return False
    except KeyboardInterrupt:
        _report_leftover(record, "interrupted")
        raise
    return True


def clean_up_orphans(google: GoogleClient, job: str, show: Callable[[str], None]) -> None:
    """Delete the leftovers of killed runs of this machine; report those that cannot be deleted, for the next run.

    Raises:
        UserError: The job named `job` could not be deleted, or is in use, and blocks this run.
    """
    for record in orphaned_records():
        try:
            with hold_record(record) as forget:
                existing = CloudRunJobs(google, record.project, record.region, show).find(record.job)
                # Another run may have created a job of the same name meanwhile.
                if existing is None or (existing.get("labels") or {}).get(RUN) == record.run:
                    _delete(google, record, show)
                    sys.stderr.write(f"bezel: deleted {record}, which a killed run had left\n")
                forget()
        except UserError as error:
            if record.job == job:
                raise
            _report_leftover(record, str(error))


def _delete(google: GoogleClient, record: JobRecord, show: Callable[[str], None]) -> None:
    show(f"deletes job {record.job} and the objects below {record.place}")
    CloudRunJobs(google, record.project, record.region, show).delete(record.job)
    with BucketExchange(record.place, _SECONDS) as exchange:
        exchange.clear()


def _report_leftover(record: JobRecord, why: str) -> None:
    sys.stderr.write(
        f"bezel: not deleted: {record}, or objects below {record.place} ({why}). The next run deletes them, or: "
        f"{record.delete_command}\n"
    )
