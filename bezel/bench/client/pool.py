"""The connections of one sender: as many as are wanted, made before they are, kept alive, counted when made again.

No limit is silent: a request that finds no idle connection has one made for it, and one that cannot be made fails the
request. Leaves out which request is sent.
"""

import resource
import sys
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from bezel.bench.client.connection import Connection
from bezel.bench.client.response_buffer import ResponseBuffer
from bezel.errors import UserError

# A server's queue of connections that wait to be accepted is short (4,096 on Linux, 128 elsewhere).
_AT_ONCE: Final = 100
_CONNECT_NS: Final = 10_000_000_000
# Files of the process beside its connections.
_OTHER_FILES: Final = 64
# An open loop may need more connections than it begins with.
_LATER_FILES: Final = 16_384


class Pool:
    """Idle connections and those on their way.

    Attributes:
        made: Connections made.
        failed: Connections that could not be made.
        error: Why the last of these could not.
        waiting: Requests that wait for a connection, by the answer that they will have.
    """

    def __init__(
        self,
        make: Callable[[], Connection],
        take: Callable[[Connection, ResponseBuffer], None],
        miss: Callable[[ResponseBuffer, OSError], None],
    ) -> None:
        """Make none yet.

        Args:
            make: Makes a connection that is not open.
            take: Takes a connection for a request that waited for one.
            miss: Is told of a request that will have none.
        """
        self.made = self.failed = 0
        self.error: OSError | None = None
        self.waiting: deque[ResponseBuffer] = deque()
        self._make, self._take, self._miss = make, take, miss
        # In the order of their last use: the one used last is the least likely to be closed by the server.
        self._idle: dict[Connection, None] = {}
        self._opening: dict[Connection, int] = {}
        self._wanted = 0
        self._spare = 0

    def fill(self, count: int) -> None:
        """Begin to make so many, some at once; `filled` says when it is done."""
        self._wanted = count
        self._fill()

    @property
    def filled(self) -> bool:
        """Whether all that were wanted are made, or could not be."""
        return not self._wanted and not self._opening

    def keep_spare(self, count: int) -> None:
        """From now on have so many idle ones ready before they are needed."""
        self._spare = count

    def want(self, answer: ResponseBuffer) -> None:
        """Have a connection taken for a request: at once if one is idle, else when one is made or given back."""
        if self._idle:
            self._take(self._idle.popitem()[0], answer)
        else:
            self.waiting.append(answer)
            self._open()
        if self._spare and len(self._idle) + len(self._opening) < self._spare:
            self._open()

    def give(self, connection: Connection) -> None:
        """Take a connection back."""
        if self.waiting:
            self._take(connection, self.waiting.popleft())
        else:
            self._idle[connection] = None

    def opened(self, connection: Connection) -> None:
        """One was made."""
        self.made += 1
        self._opening.pop(connection, None)
        self.give(connection)
        self._fill()

    def not_opened(self, connection: Connection, error: OSError) -> None:
        """One could not be made: the request that waits longest goes without, unless another is on its way."""
        self.failed += 1
        self.error = error
        self._opening.pop(connection, None)
        if len(self.waiting) > len(self._opening):
            self._miss(self.waiting.popleft(), error)
        self._fill()

    def closed(self, connection: Connection) -> None:
        """The server closed an idle one."""
        self._idle.pop(connection, None)

    def expire(self, now: int) -> None:
        """Give up those that the server does not accept in time (10 s)."""
        for connection, until in [*self._opening.items()]:
            if until > now:
                break
            connection.close()
            self.not_opened(connection, TimeoutError("the server took no connection within 10 s"))

    def close(self) -> None:
        """Close all that are idle or on their way."""
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
    """Let this process have so many connections.

    Raises:
        UserError: The system does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_FILES
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    if most >= needed:
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(soft, needed + _LATER_FILES)), hard))
        return
    raise UserError(
        f"{connections} connections need {needed} open files, and this process may have {hard}: the rest would fail. "
        f"Raise it (`ulimit -Hn {needed}` as root, or `--ulimit nofile={needed}` of a container), or use more workers."
    )
