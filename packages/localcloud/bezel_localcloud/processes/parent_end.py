"""End of a process with another one, so that a killed starter leaves nothing running."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from bezel_base.errors import Problem, WrongValueError


def check_parent(parent: int) -> None:
    """Check that the end of a process can be waited for.

    Args:
        parent: Process id; 0 for none.

    Raises:
        WrongValueError: There is no such process.
    """
    if not parent:
        return
    try:
        os.close(os.pidfd_open(parent))
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "no process has such an id"
        consequence = f"its end cannot be waited for ({why}), so localcloud was not started."
        raise WrongValueError(Problem("--parent", parent, consequence, "give the id of a running process.")) from None


@contextlib.contextmanager
def called_at_end_of(parent: int, call: Callable[[], object]) -> Iterator[None]:
    """Call a function on the running event loop once a process has ended, or at once if it has already.

    Linux only: it waits for the process's descriptor, which no reused process id can deceive.

    Args:
        parent: Process id that `check_parent` takes; 0 for none.
        call: What is called, at most once.
    """
    if not parent:
        yield
        return
    try:
        descriptor = os.pidfd_open(parent)
    except ProcessLookupError:
        call()
        yield
        return
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(descriptor)
        call()

    loop.add_reader(descriptor, end)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
