"""HTTP server of an ASGI application: uvicorn on bound sockets, started and stopped within a running event loop.

Owns what all servers of the packages share: the event loop's owner handles the signals, nothing but the `Date` header
wakes an idle server, and a stop has a bound. Leaves out the sockets (`bezel_base.loopback.listeners`) and who may
connect (`bezel_base.loopback`). Needs the extra `web`.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from bezel_base.loopback.async_server import close_server

_DATE_SECONDS = 1.0


@dataclass(frozen=True)
class ServerOptions:
    """What the servers differ in.

    Attributes:
        protocol: uvicorn's class of a connection, or one derived from it; None for uvicorn's choice.
        keep_alive_seconds: Seconds after which an idle connection is closed.
        grace_seconds: Seconds that running requests get once the server stops.
        backlog: Connections that wait until they are accepted.
        longest_head: Bytes of a request's line and headers, which h11 bounds; None for its default.
        date_header: Whether responses have a `Date`.
        server_header: Whether responses name uvicorn.
        proxy_headers: Whether a client on 127.0.0.1 may name another client (`X-Forwarded-For`).
        websockets: Whether connections can be upgraded.
        access_log: Whether each request is logged (`uvicorn.access`).
        lifespan: Whether the application gets the events of the server's start and end.
        certificate: Files of the certificate and its key for https; None for http.
        context: Of https, in place of `certificate`, where the name that a client asks for decides.
        alpn: Protocols that are offered over https, most preferred first; empty for uvicorn's.
    """

    protocol: type[asyncio.Protocol] | None = None
    keep_alive_seconds: int = 5
    grace_seconds: int = 1
    backlog: int = 2048
    longest_head: int | None = None
    date_header: bool = True
    server_header: bool = False
    proxy_headers: bool = False
    websockets: bool = False
    access_log: bool = False
    lifespan: bool = False
    certificate: tuple[Path, Path] | None = None
    context: ssl.SSLContext | None = None
    alpn: tuple[str, ...] = ()


class WebServer:
    """One server; it is started once."""

    def __init__(self, app: ASGIApp, listeners: Sequence[socket.socket], options: ServerOptions) -> None:
        """Serve an application on sockets.

        Args:
            app: The served application.
            listeners: Bound sockets; they are closed when the server ends.
            options: What this server differs in.
        """
        self._listeners = list(listeners)
        self._server = _Server(_config(app, options))
        self._task: asyncio.Task[None] | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the server was asked to stop."""
        return self._server.should_exit

    async def start(self) -> None:
        """Start serving; return when connections are accepted.

        Raises:
            OSError: Another process listens at the address of a bound socket.
            RuntimeError: It was started before.
        """
        if self._task is not None:
            raise RuntimeError("this server was started before: make another one")
        self._task = asyncio.create_task(self._server.serve(sockets=self._listeners))
        ready = asyncio.create_task(self._server.ready.wait())
        try:
            await asyncio.wait((self._task, ready), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self._close_listeners()
            self._task.result()

    def stop(self, *, cut_off: bool = False) -> None:
        """Stop accepting, and end once running requests are done or their grace is over; return at once.

        Args:
            cut_off: Whether to wait for no request.
        """
        self._server.should_exit = True
        self._server.force_exit = self._server.force_exit or cut_off
        self._server.ending.set()

    async def wait_ended(self) -> None:
        """Return when the server has ended, which `stop` begins; raise what ended it else."""
        if self._task is not None:
            await asyncio.wait((self._task,))
            self._close_listeners()
            self._task.result()

    async def close(self) -> None:
        """Stop, cut off running requests, and return when the server has ended, however it did."""
        self.stop(cut_off=True)
        if self._task is not None:
            await asyncio.wait((self._task,))
        self._close_listeners()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()


def _config(app: ASGIApp, options: ServerOptions) -> uvicorn.Config:
    chain, key = options.certificate or (None, None)
    config = uvicorn.Config(
        app,
        http=options.protocol or "auto",
        ws="auto" if options.websockets else "none",
        interface="asgi3",
        lifespan="on" if options.lifespan else "off",
        log_config=None,
        access_log=options.access_log,
        date_header=options.date_header,
        server_header=options.server_header,
        proxy_headers=options.proxy_headers,
        backlog=options.backlog,
        h11_max_incomplete_event_size=options.longest_head,
        timeout_keep_alive=options.keep_alive_seconds,
        timeout_graceful_shutdown=options.grace_seconds,
        ssl_certfile=chain,
        ssl_keyfile=key,
    )
    config.load()
    config.ssl = options.context or config.ssl
    if config.ssl is not None and options.alpn:
        config.ssl.set_alpn_protocols([*options.alpn])
    return config


class _Server(uvicorn.Server):
    """uvicorn without signal handlers, which would raise the signal again after the end, and without idle wake-ups."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready, self.ending = asyncio.Event(), asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then say so."""
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Keep the `Date` header current until the end; uvicorn's own loop wakes up ten times a second."""
        interval = _DATE_SECONDS if self.config.date_header else None
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), interval)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting without losing a connection, then end as uvicorn does."""
        for server in self.servers:
            await close_server(server)
        self.servers = []  # else uvicorn, from Python 3.12 on, would wait for their connections where these are cut off
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the event loop's owner."""
        yield
