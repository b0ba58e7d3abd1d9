"""Server of the proxy: uvicorn on one port of 127.0.0.1 and ::1, until SIGINT or SIGTERM.

Owns the sockets and the end. A port of the loopback is open to every user of the machine: the user of each connection
is looked up as it is accepted.
"""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bezel.proxy.app import HANG_UP, IS_OWN, ProxyApp
from bezel_base.errors import Problem, UserError
from bezel_base.loopback.peer_uid import is_own

_TRIES: Final = 20
_GRACE_SECONDS: Final = 2
_NO_IPV6 = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}


def listeners(port: int) -> list[socket.socket]:
    """Return listening sockets of 127.0.0.1 and, where this machine has IPv6, ::1, on the same port.

    Both, as `localhost` may be either: the other would be free for a program of another user.

    Args:
        port: The port; 0 for any that is free.

    Raises:
        UserError: The port is taken, or not allowed to this user.
    """
    for _ in range(_TRIES):
        first = _bound(socket.AF_INET, "127.0.0.1", port)
        number = int(first.getsockname()[1])
        try:
            return [first, _bound(socket.AF_INET6, "::1", number)]
        except OSError as error:
            if error.errno in _NO_IPV6:
                return [first]
            first.close()
            if port:
                raise
    raise UserError("no port is free on both 127.0.0.1 and ::1")


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # With an explicit protocol asyncio sends without delay; without it every response would wait 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def port_problem(port: int, error: OSError) -> UserError:
    """Return the error of a port on which nothing can listen."""
    reason = "another program listens on it" if error.errno == errno.EADDRINUSE else f"{error.strerror}"
    return UserError(Problem("--port", port, f"{reason}.", "choose another port, or leave the option out for any."))


class _Protocol(HttpToolsProtocol):
    """A connection that knows its peer's user, and that the application may close: ASGI itself supports neither."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        app = self.app

        async def with_both(scope: Scope, receive: Receive, send: Send) -> None:
            scope[IS_OWN], scope[HANG_UP] = self._own, self.transport.close
            await app(scope, receive, send)

        self.app = with_both

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look up the peer's user at once: it is unknown once the client has gone."""
        super().connection_made(transport)
        self._own = is_own(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))


class _Server(uvicorn.Server):
    """A server that the caller ends, and that does not wake up for anything else."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own loop checks ten times a second."""
        await self._stop.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    app: ProxyApp, sockets: list[socket.socket], ready: Callable[[], None], stop: asyncio.Event | None = None
) -> None:
    """Serve until a signal, or `stop`; running requests then end with an error.

    Args:
        app: The application.
        sockets: Those of `listeners`; closed at the end.
        ready: Called once connections are accepted.
        stop: Ends the server in place of signals.
    """
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    if stop is None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = _Server(config, stop)
    serving = asyncio.create_task(server.serve(sockets=sockets))
    while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.005)
    ready()
    await stop.wait()
    app.stop()
    await serving
