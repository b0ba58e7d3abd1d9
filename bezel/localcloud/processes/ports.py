"""Free ports of 127.0.0.1 for processes that are about to start, and for services with a fixed port.

Ports are taken from below the kernel's range for outgoing connections: a port that is free when it is chosen is still
free when its process listens, and when the process listens again after a kill.
"""

import contextlib
import secrets
import socket
from pathlib import Path

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL = 32_768  # lower end of the kernel's range for outgoing connections on Linux
_LOWEST = 10_000
_TRIES = 100


def free_port() -> int:
    """Return a port that no process listens on at this moment."""
    below = _outgoing() - _LOWEST
    for _ in range(_TRIES if below > 0 else 0):
        port = _LOWEST + secrets.randbelow(below)
        with contextlib.suppress(OSError):
            return _bound(port)
    return _bound(0)


def _bound(port: int) -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        return int(listener.getsockname()[1])


def _outgoing() -> int:
    try:
        return int(_OUTGOING.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL
