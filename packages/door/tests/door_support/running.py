"""A door in this process, in front of a server that behaves as a test scripts it, byte for byte."""

import asyncio
import json
import secrets
import socket
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bezel_door.key_file import Key, create_key_text, hash_key, key_id, write_keys
from bezel_door.main import Door
from bezel_door.request_log import RequestLog
from bezel_door.usage_file import KeyUsage, read_usage, sum_usage
from door_support.fake_google import FakeGoogle

CHAT = "/v1/chat/completions"
MADE = datetime(2026, 11, 29, tzinfo=UTC)
BEGINNING = datetime(2026, 11, 29, 12, tzinfo=UTC)


@dataclass
class Received:
    """One request as the server received it, and its connection."""

    line: str
    headers: dict
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def document(self):
        return json.loads(self.body)

    async def answer(self, status, document, headers=b"content-type: application/json\r\n"):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        await self.write(b"HTTP/1.1 %d -\r\n%bcontent-length: %d\r\n\r\n%b" % (status, headers, len(body), body))

    async def begin_stream(self):
        await self.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def event(self, data):
        await self.chunk(
            b"data: %b\n\n" % (data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode())
        )

    async def chunk(self, data):
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end_stream(self):
        await self.write(b"0\r\n\r\n")

    async def write(self, data):
        self.writer.write(data)
        await self.writer.drain()


@dataclass
class Answer:
    """A response as the caller received it."""

    status: int
    headers: dict
    body: bytes

    def document(self):
        return json.loads(self.body)

    @property
    def code(self):
        error = self.document()["error"]
        return error.get("code", error["type"])


@dataclass
class RunningDoor:
    """A running door: its port, its bucket, what the server received, and the log."""

    port: int
    google: FakeGoogle
    key: str
    upstream: asyncio.Server
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    received: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    keys: dict = field(default_factory=dict)
    task: asyncio.Task | None = None
    later: float = 0.0
    """Seconds that the door's clock has passed beside the real ones."""
    _began: float = field(default_factory=time.monotonic)

    def time(self):
        """The door's clock: it begins with a minute, so that no limit of a minute or a day starts anew in a test."""
        return BEGINNING.timestamp() + time.monotonic() - self._began + self.later

    def set_keys(self, **changes):
        """The one key with these limits, and what else is in `keys`."""
        self.keys[key_id(self.key)] = Key(**({"hash": hash_key(self.key), "team": "search", "created": MADE} | changes))
        self.google.put("keys.json", write_keys(self.keys))

    def add_key(self, **changes):
        text = create_key_text()
        self.keys[key_id(text)] = Key(hash=hash_key(text), team="other", created=MADE, **changes)
        self.google.put("keys.json", write_keys(self.keys))
        return text

    def count_of_lines(self, path):
        return sum(line.get("path") == path for line in self.lines)

    async def wait(self, condition):
        """Let the loop turn until a condition holds, which a thread of the door may bring about."""
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - nothing tells when it holds
                await asyncio.sleep(0)

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    def head(self, path=CHAT, *, method="POST", key=None, headers=(), length=None):
        lines = [f"{method} {path} HTTP/1.1", "Host: door.example"]
        if key != "":
            lines.append(f"Authorization: Bearer {key or self.key}")
        lines += headers
        if length is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    async def ask(self, path=CHAT, document=None, *, method="POST", key=None, headers=()):
        body = json.dumps({"model": "gemma", "messages": []} if document is None else document).encode()
        reader, writer = await self.connect()
        data = self.head(path, method=method, key=key, headers=headers, length=len(body) if method == "POST" else None)
        writer.write(data + (body if method == "POST" else b""))
        try:
            return await read_answer(reader)
        finally:
            writer.close()

    async def raw(self, data):
        """Everything that the door answers to these bytes, until it closes."""
        reader, writer = await self.connect()
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()

    async def usage(self):
        """End the door; the counts of its key in the bucket."""
        self.stop.set()
        await self.task
        files = [content for name, (_, content) in self.google.objects.items() if name.startswith("usage/")]
        return sum_usage(read_usage(content).keys for content in files).get(key_id(self.key), KeyUsage())


async def read_answer(reader):
    """One response from a connection."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode("latin-1")
    line, *rest = head.rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
    if headers.get("transfer-encoding") != "chunked":
        return Answer(int(line.split()[1]), headers, await reader.readexactly(int(headers.get("content-length", "0"))))
    body = b""
    while size := int(await asyncio.wait_for(reader.readline(), 60), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return Answer(int(line.split()[1]), headers, body)


def reserve_port() -> socket.socket:
    """A port below those of outgoing connections, bound: until the door listens nothing else draws it."""
    while True:
        drawn = socket.socket()
        with suppress(OSError):
            drawn.bind(("127.0.0.1", 10_000 + secrets.randbelow(22_000)))
            drawn.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return drawn
        drawn.close()


@asynccontextmanager
async def running_door(script, **limits):
    """A door in front of a server whose every request goes to the script; its one key has the given limits."""
    doors = []

    async def accept(reader, writer):
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                line, *rest = head.rstrip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                received = Received(line, headers, body, reader, writer)
                doors[0].received.append(received)
                await script(received)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with FakeGoogle() as google:
        upstream = await asyncio.start_server(accept, "127.0.0.1", 0)
        drawn = reserve_port()
        port = drawn.getsockname()[1]
        door = RunningDoor(port, google, create_key_text(), upstream)
        doors.append(door)
        door.set_keys(**limits)
        url = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}"
        variables = {
            "PORT": str(port),
            "DOOR_ADDRESS": "127.0.0.1",
            "DOOR_UPSTREAM": url,
            "DOOR_AUDIENCE": "https://llm.example",
        }
        ready = asyncio.Event()

        def log(line):
            door.lines.append(json.loads(line))
            ready.set()

        process = Door(google.environment() | variables, RequestLog(log), door.time)
        door.task = asyncio.create_task(process.serve(door.stop))
        await asyncio.wait([asyncio.create_task(ready.wait()), door.task], return_when=asyncio.FIRST_COMPLETED)
        drawn.close()
        try:
            yield door
        finally:
            door.stop.set()
            upstream.close()
            await door.task
