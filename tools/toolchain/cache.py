"""Cache outside the clone: one folder for each tool and version, put in place complete or not at all.

Owns locking and the atomic move. Leaves out the tools themselves: see `pulumi_cli`, `haproxy` and `chromium`.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def root() -> Path:
    """`$XDG_CACHE_HOME/bezel`, by default `~/.cache/bezel`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bezel"


def obtain(name: str, make: Callable[[Path], None], *, waiting: Callable[[str], None]) -> Path:
    """The cached folder `name`; where it is missing, `make(folder)` fills one that then takes its place in one rename.

    Safe when two run at once (the second waits for the first) and when one is killed (the next one removes its
    incomplete folder). `waiting` takes a message when another process holds the lock.
    """
    place = root() / name
    if place.is_dir():
        return place
    root().mkdir(parents=True, exist_ok=True)
    with _lock(root() / f"{name}.lock", waiting):
        if place.is_dir():
            return place
        for left_over in root().glob(f"{name}.part-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix=f"{name}.part-", dir=root()))
        try:
            make(part)
            part.chmod(0o755)
            part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return place


@contextlib.contextmanager
def _lock(path: Path, waiting: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(f"another process is making {path.stem}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
