"""Server of the proxy: uvicorn on one port of 127.0.0.1 and ::1, until SIGINT or SIGTERM.

Owns the sockets and the end. A port of the loopback is open to every user of the machine: the user of each connection
is looked up as it is accepted.
"""

import asyncio
import errno
import signal
import socket
from collections.abc import Callable
from typing import Any, Final

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bezel.proxy.app import HANG_UP, IS_OWN, ProxyApp
from bezel_base.errors import UserError
from bezel_base.loopback.listeners import listen
from bezel_base.loopback.peer_uid import is_own
from bezel_base.web_server import ServerOptions, WebServer

_TRIES: Final = 20
_GRACE_SECONDS: Final = 2
_NO_IPV6 = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}


def listeners(port: int) -> list[socket.socket]:
    """Return listening sockets of 127.0.0.1 and, where this machine has IPv6, ::1, on the same port.

    Both, as `localhost` may be either: the other would be free for a program of another user.

    Args:
        port: The port; 0 for any that is free.

    Raises:
        OSError: The port is taken, or not allowed to this user.
        UserError: None is free on both.
    """
    for _ in range(_TRIES):
        first = listen("127.0.0.1", port)
        number = int(first.getsockname()[1])
        try:
            return [first, listen("::1", number)]
        except OSError as error:
            if error.errno in _NO_IPV6:
                return [first]
            first.close()
            if port:
                raise
    raise UserError("no port is free on both 127.0.0.1 and ::1")


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
    options = ServerOptions(protocol=_Protocol, date_header=False, keep_alive_seconds=75, grace_seconds=_GRACE_SECONDS)
    if stop is None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = WebServer(app, sockets, options)
    await server.start()
    ready()
    await stop.wait()
    app.stop()
    server.stop()
    await server.wait_ended()
