"""A port of a daemon that has ended, kept for the next one from whatever else draws a port meanwhile."""

import contextlib
import socket
from collections.abc import Iterator

from bezel_base.loopback.listeners import bind
from localcloud_support.client import until


@contextlib.contextmanager
def kept_port(base: str) -> Iterator[None]:
    """Keep the port of an address, `http://127.0.0.1:PORT`, for a daemon that is started within the context.

    Waits until nothing listens there: a thread of a killed daemon may outlive its first one, and with it the sockets.
    """

    def bind_port() -> socket.socket | None:
        with contextlib.suppress(OSError):
            return bind("127.0.0.1", int(base.rpartition(":")[2]))
        return None

    with until(bind_port):
        yield
