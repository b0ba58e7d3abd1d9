"""The end of processes that a test did not start itself."""

import os
import select

SECONDS = 20


def has_ended(pid: int) -> bool:
    """True when the process is gone; waits for its end through a descriptor of it, not in steps."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as opened:
        return bool(select.select([opened], [], [], SECONDS)[0])
