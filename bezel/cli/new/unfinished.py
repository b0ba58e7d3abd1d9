"""Folder of a project that is not whole yet: hidden, locked while its process lives, and removed after a killed one.

The kernel gives up the lock of a process that ends in any way, so no process completes a folder without a lock.
Where a file system has no locks, nothing of it is removed.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = ".bezel-new-"


@contextlib.contextmanager
def unfinished_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, locked; what is still there at the end is removed.

    Raises:
        OSError: It cannot be made.
    """
    part, descriptor = _locked_folder(parent)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)  # after it was renamed there is none
        os.close(descriptor)


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove the folders that killed processes left in `parent`, none that a live one makes; return those."""
    removed = []
    for part in sorted(parent.glob(f"{PREFIX}*")):
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # no folder, or another process has just completed or removed it
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(part)
        except OSError:
            continue  # a live process makes it, or another user's file is in it
        else:
            removed.append(part)
        finally:
            os.close(descriptor)
    return removed


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock.

    Between its making and its lock, another process may take it for one of a killed process: then the next is made.
    """
    while True:
        part = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        except OSError:
            pass  # this file system has no locks, so no run removes it either
        if part.exists():
            return part, descriptor
        os.close(descriptor)
