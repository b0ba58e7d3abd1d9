"""Connection pool of one sender: opened before they are needed, kept alive, counted when opened again.

No limit is silent: a request that finds no idle connection gets a new one, and if that cannot be opened the request
fails. Leaves out the choice of requests.
"""

import resource
import sys
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from bezel_base.errors import Problem, UserError
from bezel_bench.client.connection import Connection
from bezel_bench.client.response_buffer import ResponseBuffer

# A server's queue of connections that wait to be accepted is short (4,096 on Linux, 128 elsewhere).
_AT_ONCE: Final = 100
_CONNECT_NS: Final = 10_000_000_000
# Files of the process beside its connections.
_OTHER_FILES: Final = 64
# Reserve of an open loop, which may need more connections than it begins with.
_LATER_FILES: Final = 16_384


class Pool:
    """Idle connections and those being opened.

    Attributes:
        made: Connections opened.
        failed: Connections that could not be opened.
        error: The error of the last of these.
        waiting: Requests that wait for a connection, by their response buffer.
    """

    def __init__(
        self,
        make: Callable[[], Connection],
        take: Callable[[Connection, ResponseBuffer], None],
        miss: Callable[[ResponseBuffer, OSError], None],
    ) -> None:
        """Create a pool without connections.

        Args:
            make: Creates an unopened connection.
            take: Receives a connection for a request that waited for one.
            miss: Receives a request that gets no connection.
        """
        self.made = self.failed = 0
        self.error: OSError | None = None
        self.waiting: deque[ResponseBuffer] = deque()
        self._make, self._take, self._miss = make, take, miss
        # In the order of their last use: the server is least likely to close the one used last.
        self._idle: dict[Connection, None] = {}
        self._opening: dict[Connection, int] = {}
        self._wanted = 0
        self._spare = 0

    def fill(self, count: int) -> None:
        """Begin to open that many, some at once; `filled` reports when it is done."""
        self._wanted = count
        self._fill()

    @property
    def is_filled(self) -> bool:
        """Whether all requested connections are open, or have failed."""
        return not self._wanted and not self._opening

    def keep_spare(self, count: int) -> None:
        """Maintain that many idle connections from here on."""
        self._spare = count

    def want(self, answer: ResponseBuffer) -> None:
        """Request a connection: at once if one is idle, else when one is opened or returned."""
        if self._idle:
            self._take(self._idle.popitem()[0], answer)
        else:
            self.waiting.append(answer)
            self._open()
        if self._spare and len(self._idle) + len(self._opening) < self._spare:
            self._open()

    def give(self, connection: Connection) -> None:
        """Return a connection to the pool."""
        if self.waiting:
            self._take(connection, self.waiting.popleft())
        else:
            self._idle[connection] = None

    def add_opened(self, connection: Connection) -> None:
        """Take a connection that has opened."""
        self.made += 1
        self._opening.pop(connection, None)
        self.give(connection)
        self._fill()

    def drop_unopened(self, connection: Connection, error: OSError) -> None:
        """Note a failed connection: the longest waiting request fails, unless another connection is being opened."""
        self.failed += 1
        self.error = error
        self._opening.pop(connection, None)
        if len(self.waiting) > len(self._opening):
            self._miss(self.waiting.popleft(), error)
        self._fill()

    def drop_closed(self, connection: Connection) -> None:
        """Note that the server closed an idle connection."""
        self._idle.pop(connection, None)

    def expire(self, now: int) -> None:
        """Give up connections that the server does not accept in time (10 s)."""
        for connection, until in [*self._opening.items()]:
            if until > now:
                break
            connection.close()
            self.drop_unopened(connection, TimeoutError("the server took no connection within 10 s"))

    def close(self) -> None:
        """Close all connections that are idle or being opened."""
        for connection in (*self._idle, *self._opening):
            connection.close()

    def _fill(self) -> None:
        while self._wanted and len(self._opening) < _AT_ONCE:
            self._wanted -= 1
            self._open()

    def _open(self) -> None:
        connection = self._make()
        self._opening[connection] = monotonic_ns() + _CONNECT_NS
        connection.open()


def allow_files(connections: int) -> None:
    """Raise this process's limit of open files for that many connections.

    Raises:
        UserError: The system does not allow it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_FILES
    limit = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    if limit >= needed:
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, max(soft, needed + _LATER_FILES)), hard))
        return
    consequence = f"{connections} connections need {needed} open files: the rest of them would fail."
    repair = (
        f"raise it (`ulimit -Hn {needed}` as root, or `--ulimit nofile={needed}` of a container), or use more workers."
    )
    raise UserError(Problem("limit of open files", hard, consequence, repair))
