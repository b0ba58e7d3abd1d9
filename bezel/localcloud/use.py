"""Use lock of a directory's daemon: each command holds it shared, and only the last command may stop the daemon.

A lock ends with the process that holds it, and with the engine that inherits it. Leaves out the daemon itself: see
`control`.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bezel.localcloud.core.paths import Paths


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
