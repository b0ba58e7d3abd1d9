"""File locks that end with the process that holds them, however it ends."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bezel_localcloud.core.paths import Paths

_LOOKS_SECONDS = 30.0  # far more than a look takes on a busy machine; a looker may be suspended for good


@contextmanager
def hold_lock(path: Path, seconds: float, refusal: Callable[[], Exception]) -> Iterator[None]:
    """Hold a file's lock, after waiting for it for some seconds at most.

    Who only looks whether it is held (`is_locked`) is waited for half a minute longer: a busy machine may stop it.

    Raises:
        Exception: What `refusal` returns, if another process holds it all that time.
    """
    deadline = time.monotonic() + seconds
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                late = time.monotonic() - deadline
                if late > _LOOKS_SECONDS or (late > 0 and is_locked(path)):
                    raise refusal() from None
                time.sleep(0.02)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds a file's lock; takes the lock for a moment to find out."""
    try:
        with path.open("r", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


class Use:
    """One command's use of a daemon.

    Attributes:
        descriptor: A process that inherits it and keeps it open uses the daemon, too.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.share()

    def share(self) -> None:
        """Use the daemon, after waiting while another command stops or replaces it."""
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def take_alone(self) -> bool:
        """Try to use the daemon alone and return whether that worked; while others use it, this use ends instead."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def using(directory: Path) -> Iterator[Use]:
    """Use the daemon of a directory, whether it already runs or not."""
    layout = Paths(directory.resolve())
    layout.create()
    with layout.use_lock.open("w") as file:
        yield Use(file.fileno())
