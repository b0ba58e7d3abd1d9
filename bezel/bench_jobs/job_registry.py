"""Registry of load jobs that this user's runs made and have not deleted, in small files, to find killed runs' jobs.

A file is written before its run makes anything, locked while the run lives, and deleted after everything else is
deleted. So a file without a lock belongs to a killed run. Leaves out how a job is deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bezel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True)
class JobRecord:
    """The job of a run, and the address of its objects; `run` is the run's mark, also one of the job's labels."""

    project: str
    region: str
    job: str
    place: str
    run: str


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Folder of the files: XDG_STATE_HOME/bezel/load-jobs."""
    home = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "bezel" / "load-jobs"


@contextmanager
def noted(made: JobRecord, folder: Path) -> Iterator[Callable[[], None]]:
    """Hold a locked record of a run's job while the run lives.

    Returns:
        The function that deletes the record, to be called once everything of the run is deleted.

    Raises:
        UserError: Another run on this machine holds the record of the same job.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{sha256(f'{made.project} {made.region} {made.job}'.encode()).hexdigest()[:24]}.json"
    with _locked(file, made) as opened:
        opened.truncate(0)
        opened.write(json.dumps(asdict(made)))
        opened.flush()
        yield lambda: file.unlink(missing_ok=True)


def _locked(file: Path, made: JobRecord) -> TextIO:
    """Open and lock the file. A file that its last run has deleted meanwhile is created anew."""
    while True:
        opened = file.open("a+", encoding="utf-8")
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            opened.close()
            raise UserError(
                f"another run on this machine loads the same server (job {made.job}): two loads would measure each "
                "other. Wait until it has ended, or stop it."
            ) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened.fileno()), file.stat()):
                return opened
        opened.close()


def left(folder: Path) -> list[JobRecord]:
    """The records of killed runs."""
    found = []
    for file in sorted(folder.glob("*.json")):
        # Locked by a live run, deleted meanwhile, or no record: not a leftover.
        with suppress(OSError, ValueError, TypeError), file.open(encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(JobRecord(**json.loads(opened.read())))
    return found
