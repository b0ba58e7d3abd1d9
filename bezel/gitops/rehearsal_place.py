"""Place of a rehearsal: a temporary folder and processes without credentials, both gone when the rehearsal ends.

The code that is rehearsed may be anybody's, so its processes get the few variables that a program needs to start, and
a home of their own: no token, no key file, no address of the forge's issuer of identity tokens. All of them carry a
mark by which they are ended, also after SIGTERM; what a killed rehearsal left is removed by the next one. Leaves out
what is run (`rehearsal`).
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from bezel_base.process_status import end_marked
from bezel_localcloud import control

MARK = "BEZEL_REHEARSAL"
PREFIX = "bezel-rehearsal-"
# Named instead of refused: a forge, an action or a company may put a credential into any variable.
PASSED_ON = re.compile(
    r"PATH|USER|LOGNAME|SHELL|TERM|NO_COLOR|LANG|LANGUAGE|LC_[A-Z]+|TZ|LD_LIBRARY_PATH|VIRTUAL_ENV|PYTHON[A-Z]+"
    r"|SSL_CERT_(FILE|DIR)|GOGC"
)
_CLOUD, _LOCK = "cloud", "lock"
_END_SECONDS = 20.0
_LOOK_SECONDS = 0.1
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Ended(SystemExit):
    """A signal ends the rehearsal; the exit code names it, as a shell does."""


class OutOfTimeError(Exception):
    """The rehearsal's deadline has passed."""


@dataclass
class Place:
    """The folder of one rehearsal, and its processes.

    Attributes:
        folder: The temporary folder.
        end: When the rehearsal has to be over, by the monotonic clock.
    """

    folder: Path
    end: float
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def cloud(self) -> Path:
        """Folder of the embedded cloud's data."""
        return self.folder / _CLOUD

    @property
    def events(self) -> Path:
        """The engine's event log."""
        return self.folder / "events.jsonl"

    def run(self, command: Sequence[str], *, folder: Path, output: int) -> tuple[int, str]:
        """Run a program to its end; return its exit code, and its standard output where `output` is PIPE.

        Raises:
            OutOfTimeError: It did not end in time, and was ended.
        """
        process = subprocess.Popen(
            command, cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL, stdout=output, encoding="utf-8",
            start_new_session=True,
        )  # fmt: skip
        try:
            text, _ = process.communicate(timeout=max(0.0, self.end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise OutOfTimeError from None
        finally:
            if process.poll() is None:
                _end(process)
        return process.returncode, text or ""

    def environment(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The variables of the rehearsal's processes."""
        passed_on = {name: value for name, value in environ.items() if PASSED_ON.fullmatch(name)}
        folders = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "home/.cache", "XDG_CONFIG_HOME": "home/.config"}
        for name in folders.values():
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        return passed_on | {name: str(self.folder / place) for name, place in folders.items()} | {MARK: self.mark}

    def clear(self) -> None:
        """End the processes and remove the folder."""
        _remove(self.folder, self.mark)


@contextlib.contextmanager
def place(seconds: float) -> Iterator[Place]:
    """A new place for a rehearsal of some seconds; everything in it is gone afterwards.

    Raises:
        Ended: SIGTERM or SIGHUP came.
    """
    remove_leftovers()
    before = {number: signal.signal(number, _raise) for number in _ENDING}
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with (folder / _LOCK).open("w") as lock:
            # Held while this process lives, so that the next rehearsal knows a folder whose owner was killed.
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = Place(folder, time.monotonic() + seconds)
            lock.write(made.mark)
            lock.flush()
            try:
                yield made
            finally:
                for number in _ENDING:
                    signal.signal(number, signal.SIG_IGN)  # a second one would leave the rest behind
                made.clear()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_leftovers() -> None:
    """Remove what rehearsals of this user left whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder, lock.read())


def _remove(folder: Path, mark: str) -> None:
    end = time.monotonic() + _END_SECONDS
    # Again and again: one that is ended may just have started another.
    while mark and end_marked(MARK, mark) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    with contextlib.suppress(control.ControlError):
        control.stop(folder / _CLOUD)
    shutil.rmtree(folder, ignore_errors=True)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Ended(128 + number)


def _end(process: "subprocess.Popen[str]") -> None:
    """End a program; what it started in sessions of its own is ended by its mark."""
    process.terminate()
    end = time.monotonic() + _END_SECONDS
    while process.poll() is None and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
