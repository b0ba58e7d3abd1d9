"""Cost of the door that admits keys: time of a request, CPU of a streamed event, streams at once, memory.

    .venv/bin/python -m tools.measure.requests.door [--requests 2000] [--events 20000] [--streams 500] [--many 100000]

The door runs from its archive, with the standard library alone, between a server that answers at once and a bucket
with one key; everything is on the loopback. Small requests go over kept connections, direct and through the door in
turn, so that both have the same load of the machine beside them. The CPU is the door's own, from /proc, so that a busy
machine changes it little. The streams are all open, with a first event each, before their other events go. A stream
that is not whole is an error: the table is printed, and the exit status is 1. It takes one to three minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.loopback.listeners import free_port
from bezel_door.archive import door_archive, packed_archive
from bezel_door.key_file import Key, create_key_text, hash_key, key_id, write_keys
from door_support.fake_google import FakeGoogle
from door_support.running import MADE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CHAT = "/v1/chat/completions"
_ASKED = {"model": "m", "messages": [{"role": "user", "content": "x" * 2000}]}
_USAGE = {"prompt_tokens": 500, "completion_tokens": 100, "total_tokens": 600}
_ANSWER = json.dumps({"id": "c", "choices": [{"message": {"content": "y" * 500}}], "usage": _USAGE}).encode()
_PAUSE = 0.002
_LONGEST_STREAM = 90.0  # seconds


class AnsweringServer:
    """A server behind the door: whole answers at once, streams of `n` events."""

    def __init__(self) -> None:
        self.waiting = asyncio.Semaphore(0)
        self.is_open = asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                asked = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
                if asked.get("stream"):
                    await self._stream(writer, asked)
                else:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                    writer.write(b"content-length: %d\r\n\r\n%b" % (len(_ANSWER), _ANSWER))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, asked: dict[str, Any]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        shows = bool(asked.get("stream_options"))
        for number in range(1, asked["events"] + 1):
            document: dict[str, Any] = {
                "id": "chatcmpl-0123456789abcdef",
                "object": "chat.completion.chunk",
                "model": "m",
            }
            document["choices"] = [{"index": 0, "delta": {"content": f" token{number}"}, "logprobs": None}]
            if shows:
                document["usage"] = {"prompt_tokens": 500, "total_tokens": 500 + number, "completion_tokens": number}
            event = b"data: %b\n\n" % json.dumps(document, separators=(",", ":")).encode()
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            if number == 1 and asked.get("waits"):
                self.waiting.release()
                await self.is_open.wait()
            else:
                await asyncio.sleep(_PAUSE)
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()


def print_row(name: str, figure: str) -> None:
    """Print a measured figure."""
    print(f"| {name} | {figure} | measured |", flush=True)


def print_head() -> None:
    """Print the begin of the table: what is simulated, and the program's size."""
    print(f"Python {sys.version.split()[0]}; {os.cpu_count()} cores; load of the last minute {os.getloadavg()[0]:.2f}")
    print("| part | figure | kind |\n|---|---|---|")
    print("| server behind the door, bucket, metadata server | answer at once, on the loopback | simulated |")
    print_row("archive, packed as in its secret", f"{len(packed_archive())} bytes")


@asynccontextmanager
async def running_door() -> AsyncIterator[tuple[AnsweringServer, int, int, str, int]]:
    """The server, its port, the door's, a key, and the door's process id."""
    server, key, port = AnsweringServer(), create_key_text(), free_port()
    async with FakeGoogle() as google:
        record = Key(hash_key(key), "team", MADE, tokens_per_day=10**12)
        google.put("keys.json", write_keys({key_id(key) or "": record}))
        upstream = await asyncio.start_server(server.accept, "127.0.0.1", 0, backlog=2048)
        direct = upstream.sockets[0].getsockname()[1]
        variables = {"PORT": str(port), "DOOR_ADDRESS": "127.0.0.1", "DOOR_UPSTREAM": f"http://127.0.0.1:{direct}"}
        variables |= {"DOOR_AUDIENCE": "https://llm.example", **google.environment()}
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "door.pyz"
            archive.write_bytes(door_archive())
            command = [sys.executable, "-I", "-S", str(archive)]
            with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
                assert process.stdout is not None  # noqa: S101 - for the type checker
                process.stdout.readline()
                reading = asyncio.get_running_loop().run_in_executor(None, process.stdout.read)
                try:
                    yield server, direct, port, key, process.pid
                finally:
                    process.terminate()
                    await reading


def cpu_seconds(pid: int) -> float:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def kept_connection(port: int) -> http.client.HTTPConnection:
    """A connection that sends at once."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def compare_requests(direct: int, door: int, key: str, number: int) -> None:
    """Print the medians of small requests."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    content = json.dumps(_ASKED)
    connections = [kept_connection(direct), kept_connection(door)]
    times: list[list[float]] = [[], []]
    for turn in range(number + 50):
        for kept, connection in zip(times, connections, strict=True):
            began = time.perf_counter()
            connection.request("POST", _CHAT, content, headers)
            response = connection.getresponse()
            if response.read() != _ANSWER:
                raise SystemExit("another answer came")
            if turn >= 50:
                kept.append((time.perf_counter() - began) * 1000)
    plain, through = map(median, times)
    print_row(f"a small request on a kept connection, median of {number}, direct", f"{plain:.3f} ms")
    print_row("the same through the door", f"{through:.3f} ms")
    print_row("added by the door", f"{through - plain:.3f} ms")


async def is_whole_stream(port: int, key: str, events: int, *, waits: bool = False) -> bool:
    """Read one stream; whether all of its events came, in order, to its end."""
    try:
        return await asyncio.wait_for(count_events(port, key, events, waits=waits), _LONGEST_STREAM) == events
    except (OSError, EOFError, ValueError, TimeoutError):
        return False


async def count_events(port: int, key: str, events: int, *, waits: bool) -> int:
    """Read one stream to its end; the number of its events, or 0 where one is another than expected."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(_ASKED | {"stream": True, "events": events, "waits": waits}).encode()
    head = f"POST {_CHAT} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await reader.readuntil(b"\r\n\r\n")
    came = 0
    while size := int(await reader.readline(), 16):
        piece = await reader.readexactly(size + 2)
        if b'"usage"' in piece:
            return 0
        for number in range(piece.count(b'"content"')):
            came += 1
            if number == 0 and b'token%d"' % came not in piece:
                return 0
    writer.close()
    return came


async def measure_events(port: int, key: str, pid: int, events: int) -> bool:
    """Print the CPU of an event; whether all streams were whole."""
    await is_whole_stream(port, key, 100)
    before, streams = cpu_seconds(pid), 10
    whole = sum(await asyncio.gather(*(is_whole_stream(port, key, events // streams) for _ in range(streams))))
    used = (cpu_seconds(pid) - before) * 1000
    count = events // streams * streams
    name = f"CPU of an event, {count} in {streams} streams"
    print_row(name, f"{used / count:.4f} ms" if whole == streams else f"none: {whole} of {streams} streams are whole")
    return whole == streams


async def measure_streams(server: AnsweringServer, port: int, key: str, pid: int, number: int) -> bool:
    """Print how many of many streams at once are whole; whether all are."""
    tasks = [asyncio.create_task(is_whole_stream(port, key, 40, waits=True)) for _ in range(number)]
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_STREAM / 2):  # a stream that does not begin is not waited for
            for _ in range(number):
                await server.waiting.acquire()
    server.is_open.set()
    whole = sum(await asyncio.gather(*tasks))
    print_row("streams at once that are whole", f"{whole} of {number}")
    print_row("resident memory after them", f"{resident_mib(pid):.1f} MiB")
    return whole == number


def measure_memory(port: int, key: str, pid: int, number: int) -> None:
    """Print the memory over many requests."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    content = json.dumps(_ASKED)
    connection = kept_connection(port)
    before = cpu_seconds(pid)
    for turn in range(number + 1):
        if turn % (max(1, number // 5)) == 0:
            print_row(f"resident memory after {turn} further requests", f"{resident_mib(pid):.1f} MiB")
        connection.request("POST", _CHAT, content, headers)
        connection.getresponse().read()
    print_row("CPU of a small request", f"{(cpu_seconds(pid) - before) * 1000 / (number + 1):.3f} ms")


async def measure(chosen: argparse.Namespace) -> bool:
    """Measure and print; whether all streams were whole."""
    async with running_door() as (server, direct, door, key, pid):
        await asyncio.to_thread(compare_requests, direct, door, key, chosen.requests)
        are_whole = await measure_events(door, key, pid, chosen.events)
        are_whole = await measure_streams(server, door, key, pid, chosen.streams) and are_whole
        await asyncio.to_thread(measure_memory, door, key, pid, chosen.many)
    return are_whole


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="requests of each kind (default: 2000)")
    parser.add_argument("--events", type=int, default=20_000, help="events of streams (default: 20000)")
    parser.add_argument("--streams", type=int, default=500, help="streams at once (default: 500)")
    parser.add_argument("--many", type=int, default=100_000, help="requests for the memory (default: 100000)")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 16_384), files[1]))
    chosen = parser.parse_args()
    print_head()
    are_whole = asyncio.run(measure(chosen))
    print(f"load of the last minute at the end {os.getloadavg()[0]:.2f}")
    if not are_whole:
        sys.exit("a stream was cut")


if __name__ == "__main__":
    main()
