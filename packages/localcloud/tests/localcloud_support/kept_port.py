"""A port of a daemon that has ended, kept for the next one from whatever else draws a port meanwhile."""

import contextlib
from collections.abc import Iterator

from bezel_base.loopback.listeners import bind


@contextlib.contextmanager
def kept_port(base: str) -> Iterator[None]:
    """Keep the port of an address, `http://127.0.0.1:PORT`, where nothing listens, for a daemon within the context."""
    with bind("127.0.0.1", int(base.rpartition(":")[2])):
        yield
