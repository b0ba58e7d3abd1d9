"""Listening sockets of servers, ports that are free, and why nothing can listen at an address.

Owns the options of a socket and the error of a taken port. Leaves out who may connect (`peer_uid`, `web_pages`) and
what serves (`bezel_base.web_server`).
"""

import contextlib
import errno
import secrets
import socket
from pathlib import Path
from typing import Final

from bezel_base.errors import Problem, UserError

_BACKLOG: Final = 2048
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL = 32_768  # lower end of the kernel's range for outgoing connections on Linux
_LOWEST = 10_000
_TRIES = 100
_NO_ADDRESS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT}


def bind(host: str, port: int = 0) -> socket.socket:
    """Return a socket that owns an address and does not listen yet: connections are refused until it does.

    Args:
        host: An address of this machine or a name of one; "0.0.0.0" for each address of IPv4, "::" for all.
        port: The port; 0 for any that is free.

    Raises:
        OSError: The port is taken or not allowed to this user, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol asyncio sends without delay; without it every response would wait 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # A connection of a server that has ended may keep the port for a minute.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        text = f"error while attempting to bind on address {(host, port)!r}: {(error.strerror or '').lower()}"
        raise OSError(error.errno, text) from None
    return listener


def listen(host: str, port: int = 0) -> socket.socket:
    """Return a listening socket; arguments and errors are those of `bind`."""
    listener = bind(host, port)
    try:
        listener.listen(_BACKLOG)
    except OSError:  # another process has bound the port as well, and listens
        listener.close()
        raise
    return listener


def listen_on_loopback(port: int = 0) -> socket.socket:
    """Return a listening socket of 127.0.0.1, on the given port if it is free, else (or for 0) on any."""
    for candidate in (port or free_port(), free_port()):
        with contextlib.suppress(OSError):
            return listen("127.0.0.1", candidate)
    return listen("127.0.0.1")


def bind_path(path: str) -> socket.socket:
    """Return a socket that owns a new socket file and does not listen yet.

    Raises:
        OSError: The path exists, or its folder does not.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
    except OSError:
        listener.close()
        raise
    return listener


def free_port() -> int:
    """Return a port of 127.0.0.1 that no process listens on at this moment, and that no outgoing connection gets."""
    below = _outgoing() - _LOWEST
    for _ in range(_TRIES if below > 0 else 0):
        with contextlib.suppress(OSError):
            return _bindable(_LOWEST + secrets.randbelow(below))
    return _bindable(0)


def _bindable(port: int) -> int:
    # Without SO_REUSEADDR: a port with connections that end would not be free for every program.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


def _outgoing() -> int:
    """Lower end of the ports of outgoing connections."""
    try:
        return int(_OUTGOING.read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL


def listen_error(error: OSError, port: int, option: str = "--port", host: str = "127.0.0.1") -> UserError:
    """Return the user's error of an address that the user chose and where nothing can listen.

    Args:
        error: That of `bind` or `listen`.
        port: The chosen port.
        option: The option that it was chosen with.
        host: The chosen address.
    """
    if error.errno in _NO_ADDRESS or (error.errno or 0) < 0:  # below 0: of a name, see getaddrinfo
        consequence = "this machine has no such address, so nothing is served."
        return UserError(Problem("address", host, consequence, "give an address of this machine, e.g. 127.0.0.1."))
    if error.errno == errno.EADDRINUSE:
        cause = "another process listens on it"
    else:
        cause = f"this user cannot listen on it ({error.strerror})"
    repair = "choose another port, or 0 for any that is free."
    return UserError(Problem(option, port, f"{cause}, so nothing is served.", repair))
