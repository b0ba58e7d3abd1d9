"""Overhead of `bezel proxy` on this machine: latency of requests and of streamed events, direct and through it.

Starts a server that answers at once, and a proxy in front of it, each in a process of its own on the loopback. Each
request is sent alternately direct and through the proxy, so that both meet the same load of the machine; the figure is
the difference of the medians. Run: `python -m tools.bench.proxy_overhead`.
"""

import argparse
import asyncio
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles

_BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 2000}], "stream": True}).encode()
_ANSWER = json.dumps({"id": "cmpl-1", "choices": [{"text": "y" * 500}]}).encode()
_EVENTS = 20
_BEZEL = "import sys; from bezel.cli.main import main; sys.exit(main())"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection: `/stream` sends events 2 ms apart, with the time of each; any other path a small body."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        if b"/stream" not in head.partition(b"\r\n")[0]:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: %d\r\n\r\n%b" % (len(_ANSWER), _ANSWER))
            continue
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(_EVENTS):
            event = b"data: %d\n\n" % time.monotonic_ns()
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await asyncio.sleep(0.002)
        writer.write(b"0\r\n\r\n")


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def _connection(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _whole(connection: http.client.HTTPConnection) -> list[float]:
    began = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", _BODY)
    connection.getresponse().read()
    return [(time.perf_counter() - began) * 1000]


def _events(connection: http.client.HTTPConnection) -> list[float]:
    connection.request("POST", "/stream", _BODY)
    response = connection.getresponse()
    delays = []
    while line := response.readline():
        if line.startswith(b"data: "):
            delays.append((time.monotonic_ns() - int(line[6:])) / 1e6)
    return delays


def _compare(
    title: str, ports: tuple[int, int], call: Callable[[http.client.HTTPConnection], list[float]], n: int
) -> None:
    connections = [_connection(port) for port in ports]
    delays: list[list[float]] = [[], []]
    for turn in range(n + 20):
        for kept, connection in zip(delays, connections, strict=True):
            samples = call(connection)
            if turn >= 20:
                kept.extend(samples)
    direct, through = map(median, delays)
    p99 = [quantiles(kept, n=100)[98] for kept in delays]
    print(f"{title}: direct {direct:.3f} ms (p99 {p99[0]:.3f}), proxy {through:.3f} ms (p99 {p99[1]:.3f})")
    print(f"  added: {through - direct:.3f} ms at the median")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=2000)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve())
    serve_command = [sys.executable, "-m", "tools.bench.proxy_overhead", "--serve"]
    with subprocess.Popen(serve_command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None  # noqa: S101 - for the type checker
        direct = int(server.stdout.readline())
        command = [sys.executable, "-c", _BEZEL, "proxy", "--public", "--url", f"http://127.0.0.1:{direct}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as proxy:
            assert proxy.stdout is not None  # noqa: S101 - for the type checker
            through = int(proxy.stdout.readline().rpartition(":")[2].removesuffix("/v1\n"))
            _compare("a request", (direct, through), _whole, options.requests)
            _compare("an event", (direct, through), _events, options.requests // _EVENTS)
            proxy.send_signal(signal.SIGINT)
        server.terminate()


if __name__ == "__main__":
    main()
