"""File locks that end with the process that holds them, however it ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold a file's lock, after waiting for it for some seconds at most.

    Raises:
        TimeoutError: If another process holds it all that time.
    """
    deadline = time.monotonic() + seconds
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(path) from None
                time.sleep(0.02)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds a file's lock; takes the lock for a moment to find out."""
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
