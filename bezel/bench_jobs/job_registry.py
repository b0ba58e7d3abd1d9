"""Which load jobs this user's runs have made and not yet deleted, in small files: what a killed run leaves is found.

A file is written before anything is made and deleted after all of that is; while its run lives it is locked. So one
that nobody locks is a killed run's. Leaves out how a job is deleted.
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
    """What a run makes: a job, and objects below an address; `run` is its own mark, also among the job's labels."""

    project: str
    region: str
    job: str
    place: str
    run: str


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the files lie: XDG_STATE_HOME/bezel/load-jobs."""
    home = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "bezel" / "load-jobs"


@contextmanager
def noted(made: JobRecord, folder: Path) -> Iterator[Callable[[], None]]:
    """Notes what is made while a run lives.

    Returns:
        Forgets the note, to be called when all is deleted.

    Raises:
        UserError: Another run of this machine makes the same.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{sha256(f'{made.project} {made.region} {made.job}'.encode()).hexdigest()[:24]}.json"
    with _locked(file, made) as opened:
        opened.truncate(0)
        opened.write(json.dumps(asdict(made)))
        opened.flush()
        yield lambda: file.unlink(missing_ok=True)


def _locked(file: Path, made: JobRecord) -> TextIO:
    """The file, open and locked. One that its last run has deleted meanwhile is made anew."""
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
    """What killed runs made and have not deleted."""
    found = []
    for file in sorted(folder.glob("*.json")):
        # Locked by a run that lives, gone by now, or no note: nothing that is left.
        with suppress(OSError, ValueError, TypeError), file.open(encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(JobRecord(**json.loads(opened.read())))
    return found
