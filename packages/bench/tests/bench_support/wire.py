"""A server on loopback that answers byte for byte as a test says: whole, cut, wrong, late or not at all."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Body, Closed, Load, Pattern, PromptPlan, Stop, Target
from bezel_bench.result.sample import Measured

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":" tok"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":%d,"total_tokens":0}}\n\n'
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream(tokens: int = 2) -> list[bytes]:
    """A good answer's pieces as they are written."""
    return [
        HEAD,
        chunk(ROLE + TOKEN),
        *[chunk(TOKEN)] * (tokens - 1),
        chunk(USAGE % tokens + DONE) + b"0\r\n\r\n",
    ]


def document(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    """An answer of a known length."""
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body


@dataclass
class WireRequest:
    """One request as it came.

    Attributes:
        number: Among all requests, from 0.
        connection: Among all connections, from 0.
        head: Its first lines.
        body: What followed.
    """

    number: int
    connection: int
    head: str
    body: bytes


Answering = Callable[[WireRequest, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Wire:
    """A running server: how it answers, what it saw."""

    answering: "Answering"
    url: str = ""
    asked: list[WireRequest] = field(default_factory=list)
    connections: int = 0
    at_once: int = 0
    _open: int = 0
    tasks: set[Any] = field(default_factory=set)
    stop_listening: Callable[[], None] = lambda: None


async def good(_: WireRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"".join(stream()))


def replies(*pieces: bytes, close: bool = False) -> Answering:
    """Writes these pieces, each in a packet of its own, and may end the connection."""

    async def answer(_: WireRequest, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        if close:
            writer.close()

    return answer


@contextlib.contextmanager
def serving(answering: Answering = good, tls: ssl.SSLContext | None = None) -> Iterator[Wire]:
    """A server whose every request is answered by a function, in a thread of its own."""
    wire = Wire(answering)
    loop = asyncio.new_event_loop()

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, wire.connections = wire.connections, wire.connections + 1
        wire._open += 1
        wire.at_once = max(wire.at_once, wire._open)
        wire.tasks.add(asyncio.current_task())
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
                asked = WireRequest(len(wire.asked), connection, head, await reader.readexactly(length))
                wire.asked.append(asked)
                await wire.answering(asked, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            wire._open -= 1
            writer.close()

    async def begin() -> asyncio.Server:
        return await asyncio.start_server(serve_connection, "127.0.0.1", 0, ssl=tls, limit=2**20, backlog=4096)

    async def end() -> None:
        # A connection that was just accepted has to begin before it can be closed; asyncio's `Server.close` forgets it.
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
        server.close()
        while len(asyncio.all_tasks()) > 1:
            for task in wire.tasks:
                task.cancel()
            await asyncio.sleep(0)

    server = loop.run_until_complete(begin())
    wire.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    wire.stop_listening = server.close
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield wire
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Prompts:
    """Bodies that say their number."""

    turns = 1

    def __init__(self, size: int = 0, asked: int = 2, turns: int = 1) -> None:
        self.size, self.asked, self.turns = size, asked, turns

    def body(self, index: int, turn: int = 0) -> Body:
        return Body(b'{"prompt":"%d/%d%b"}' % (index, turn, b"x" * self.size), self.asked, turn, index % 3)


def load(url: str, requests: int | None = 1, pattern: Pattern | None = None, **others: Any) -> Load:
    target = Target(url, "mock", public=True, ca_file=others.pop("ca_file", ""))
    stop = Stop(requests, others.pop("seconds", None))
    return Load(target, pattern or Closed(1), stop, PromptPlan(output_tokens=2), **{"deadline_seconds": 60.0} | others)


def send(url: str, requests: int | None = 1, pattern: Pattern | None = None, **others: Any) -> Measured:
    """One load with bodies of its own, authorised by nothing."""
    bodies = others.pop("bodies", None) or Prompts()
    headers = others.pop("headers", dict)
    return run_load(load(url, requests, pattern, **others), bodies, headers, lambda _: None)


def certificate(
    folder: Path, *, name: str = "127.0.0.1", days: tuple[int, int] = (-1, 1)
) -> tuple[ssl.SSLContext, str]:
    """A server's context with a certificate that only its own file vouches for, and that file; valid from and to."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + dt.timedelta(days=days[0]))
        .not_valid_after(now + dt.timedelta(days=days[1]))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "certificate.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret = folder / "key.pem"
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    return context, str(pem)


def measure_undisturbed(measure: Callable[[int], Measured], is_undisturbed: Callable[[Measured], bool]) -> Measured:
    """What a load gave, or its tenfold slower one where other work kept the machine from it for a second."""
    measured = measure(1)
    return measured if is_undisturbed(measured) else measure(10)
