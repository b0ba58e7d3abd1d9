"""The web server: when it accepts, how it stops while requests run, and what it leaves to its owner."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from bezel_base.loopback.listeners import bind, listen
from bezel_base.web_server import ServerOptions, WebServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.slow  # real connections throughout
HOST = "127.0.0.1"
GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
Handler = Callable[[], Awaitable[object]]


class App:
    """Answers each request once its handler returns."""

    def __init__(self, handler: Handler | None = None) -> None:
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        assert scope["type"] == "http"
        self.asked.set()
        try:
            if self._handler:
                await self._handler()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving(app: App, **options: object) -> AsyncIterator[tuple[WebServer, int]]:
    """A started server and its port."""
    listener = listen(HOST)
    server = WebServer(app, [listener], ServerOptions(**options))  # type: ignore[arg-type]
    port = listener.getsockname()[1]
    await server.start()
    try:
        yield server, port
    finally:
        await server.close()


async def ask(port: int) -> bytes:
    """The whole response."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(GET)
    try:
        return await reader.read()
    finally:
        writer.close()


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def test_server_accepts_once_it_has_started() -> None:
    async def work() -> None:
        async with serving(App()) as (_, port):
            head, _, body = (await ask(port)).partition(b"\r\n\r\n")
        assert body == b"ok"
        assert b"\r\ndate: " in head
        assert b"\r\nserver:" not in head

    run(work())


def test_server_sends_the_headers_of_its_options() -> None:
    async def work() -> None:
        async with serving(App(), date_header=False, server_header=True) as (_, port):
            head = await ask(port)
        assert b"\r\ndate: " not in head
        assert b"\r\nserver: uvicorn" in head

    run(work())


def test_stop_lets_a_running_request_end() -> None:
    async def work() -> None:
        may_end = asyncio.Event()

        async def wait() -> None:
            await may_end.wait()

        app = App(wait)
        async with serving(app, grace_seconds=20) as (server, port):
            response = asyncio.create_task(ask(port))
            await app.asked.wait()
            server.stop()
            assert server.is_stopping
            await wait_until_refused(port)
            may_end.set()
            assert (await response).endswith(b"ok")
            await server.wait_ended()
        assert not app.cancelled.is_set()

    run(work())


async def wait_until_refused(port: int) -> None:
    """Return when nothing accepts connections any more."""
    while True:
        try:
            _, writer = await asyncio.open_connection(HOST, port)
        except ConnectionError:
            return
        writer.close()
        await asyncio.sleep(0)


def test_stop_cancels_a_request_after_the_grace() -> None:
    async def work() -> None:
        app = App(asyncio.Event().wait)
        async with serving(app, grace_seconds=1) as (server, port):
            response = asyncio.create_task(ask(port))
            await app.asked.wait()
            server.stop()
            await server.wait_ended()
            await app.cancelled.wait()
            assert not (await response).endswith(b"ok")

    run(work())


def test_close_waits_for_no_request() -> None:
    async def work() -> None:
        app = App(asyncio.Event().wait)
        async with serving(app, grace_seconds=1000) as (server, port):
            response = asyncio.create_task(ask(port))
            await app.asked.wait()
            await server.close()
            assert not response.done()
            response.cancel()

    run(work())


@pytest.mark.parametrize("steps", range(8))
def test_close_ends_a_connection_at_each_step_of_its_acceptance(steps: int) -> None:
    async def work() -> None:
        gc.disable()  # it would end a lost connection
        async with serving(App()) as (server, port):
            with socket.create_connection((HOST, port)) as client:
                client.setblocking(False)
                for _ in range(steps):
                    await asyncio.sleep(0)
                await server.close()
                with suppress(ConnectionResetError):  # of one that still waits to be accepted
                    assert not await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), 10)

    try:
        run(work())
    finally:
        gc.enable()


def test_second_start_is_refused() -> None:
    async def work() -> None:
        async with serving(App()) as (server, port):
            with pytest.raises(RuntimeError, match="started before"):
                await server.start()
            assert (await ask(port)).endswith(b"ok")

    run(work())


def test_start_reports_a_port_that_another_process_took() -> None:
    async def work() -> None:
        with bind(HOST) as other:
            listener: socket.socket = bind(HOST, other.getsockname()[1])
            other.listen()
            server = WebServer(App(), [listener], ServerOptions())
            with pytest.raises(OSError, match="already in use"):
                await server.start()
            assert listener.fileno() == -1
            await server.close()

    run(work())


def test_close_before_the_start_frees_the_port() -> None:
    async def work() -> None:
        listener = listen(HOST)
        port = listener.getsockname()[1]
        await WebServer(App(), [listener], ServerOptions()).close()
        with listen(HOST, port) as again:
            assert again.getsockname()[1] == port

    run(work())


def test_server_leaves_signals_to_the_owner_of_the_loop() -> None:
    async def work() -> None:
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        async with serving(App()):
            assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before

    run(work())
