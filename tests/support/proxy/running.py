"""A proxy in this process, in front of a server that behaves as a test scripts it, byte for byte."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from bezel.proxy.app import ProxyApp
from bezel.proxy.identity import IdentityToken
from bezel.proxy.server import listeners, serve
from bezel.proxy.upstream import Upstream
from bezel_base.loopback.listeners import listen_on_loopback

CHAT = "/v1/chat/completions"
JSON = b"content-type: application/json\r\n"
EVENTS = b"content-type: text/event-stream\r\n"


def jwt(end: float, number: int = 0) -> str:
    """An identity token with this end."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": end, "number": number}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJSUzI1NiJ9.{claims}.planted"


@dataclass
class Tokens:
    """A source of identity tokens that live an hour of a clock that the test sets."""

    now: float = 1_800_000_000.0
    made: list[str] = field(default_factory=list)
    forgotten: int = 0
    error: Exception | None = None

    def clock(self) -> float:
        return self.now

    def identity_token(self, audience: str) -> str:
        assert audience == "https://llm.example"
        if self.error:
            raise self.error
        self.made.append(jwt(self.now + 3600, len(self.made)))
        return self.made[-1]

    def forget(self, audience: str = "") -> None:
        assert audience == "https://llm.example"
        self.forgotten += 1


@dataclass
class Exchange:
    """One request as the server received it, and its connection."""

    line: str
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def body(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while piece := await self.piece():
                body += piece
            return body
        return await self.reader.readexactly(int(self.headers.get("content-length", "0")))

    async def piece(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def answer(self, status: int, body: bytes, headers: bytes = JSON) -> None:
        length = f"content-length: {len(body)}\r\n\r\n".encode()
        await self.write(f"HTTP/1.1 {status} -\r\n".encode() + headers + length + body)

    async def begin_stream(self) -> None:
        await self.write(b"HTTP/1.1 200 OK\r\n" + EVENTS + b"transfer-encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Script = Callable[[Exchange], Awaitable[None]]


@dataclass
class Proxy:
    """A running proxy: its port, what the server received, and the access lines."""

    port: int
    client: httpx.AsyncClient
    tokens: Tokens
    upstream_port: int
    received: list[Exchange] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    server: asyncio.Server = field(init=False)
    accepted: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] = field(init=False)

    async def service_gone(self) -> None:
        """Nothing listens on the service's port any more."""
        self.server.close()
        await self.server.wait_closed()

    async def service_back(self) -> None:
        self.server = await asyncio.start_server(self.accepted, "127.0.0.1", self.upstream_port)

    async def post(self, content: Any = b"{}", **named: Any) -> httpx.Response:
        return await self.client.post(CHAT, content=content, **named)

    async def raw(self, data: bytes) -> bytes:
        """Everything that the proxy answers to these bytes, until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer


@asynccontextmanager
async def running_proxy(
    script: Script, *, wait: float = 60.0, token: bool = True, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Proxy]:
    """A proxy in front of a server whose every request goes to the script."""
    proxies: list[Proxy] = []
    tokens = Tokens()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                line, *rest = head.rstrip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (entry.partition(": ") for entry in rest)}
                exchange = Exchange(line, headers, reader, writer)
                proxies[0].received.append(exchange)
                await script(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    # Not among the ports of outgoing connections: it stays free while the service is gone.
    server = await asyncio.start_server(accept, sock=listen_on_loopback())
    upstream_port = server.sockets[0].getsockname()[1]
    identity = IdentityToken(tokens, "https://llm.example", clock=tokens.clock) if token else None
    async with Upstream(f"http://127.0.0.1:{upstream_port}", identity, wait_seconds=wait, clock=clock) as upstream:
        sockets = listeners(0)
        port = sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            proxy = Proxy(port, client, tokens, upstream_port)
            proxy.server, proxy.accepted = server, accept
            proxies.append(proxy)
            ready = asyncio.Event()
            running = asyncio.create_task(serve(ProxyApp(upstream, proxy.lines.append), sockets, ready.set, proxy.stop))
            await ready.wait()
            try:
                yield proxy
            finally:
                proxy.stop.set()
                await client.aclose()
                proxy.server.close()
                await asyncio.wait_for(running, 60)
