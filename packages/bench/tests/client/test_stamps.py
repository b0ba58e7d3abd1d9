"""The kernel's stamps of requests: when they left, and since when a first token can have been there."""

import asyncio
import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench_support.wire import HEAD, ROLE, TOKEN, Prompts, WireRequest, certificate, chunk, good, send, serving, stream
from bezel_bench.client.connection import Connection, Owner
from bezel_bench.client.loop import Loop
from bezel_bench.client.response_buffer import ResponseBuffer
from bezel_bench.client.route import Route
from bezel_bench.load.plan import Body, Closed, Constant, Target
from bezel_bench.result.sample import Sample

SO_MAX_PACING_RATE = 47


@pytest.mark.parametrize("tls", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_request_leaves_between_its_sending_and_its_arrival(tls: bool, tmp_path: Path) -> None:
    arrivals: list[int] = []

    async def answer(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        arrivals.append(time.monotonic_ns())
        await good(asked, writer)

    context, ca_file = certificate(tmp_path) if tls else (None, "")
    with serving(answer, context) as wire:
        samples = send(wire.url, 12, Closed(1), ca_file=ca_file).samples
    for sample, arrival in zip(samples, arrivals, strict=True):
        assert sample.sent <= sample.departed <= arrival


def ask(index: int, size: int, pacing: int = 0) -> tuple[Sample, int]:
    """Send one request, in segments of 536 bytes, and answer it when all of it came.

    Args:
        index: Its place in the load.
        size: Its bytes.
        pacing: The bytes that its socket lets leave each second; 0 for any.

    Returns:
        Its sample, and the instant at which it was complete at the server.
    """
    loop, answer, done = Loop(lambda: False), ResponseBuffer(Sample(index), b""), []
    body, came = b"".join(b"%d," % number for number in range(size))[:size], b""

    def on_open(connection: Connection) -> None:
        if pacing:
            with socket.socket(fileno=os.dup(next(iter(loop._watched)))) as same:
                same.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pacing)
        connection.ask(body, answer)

    owner = SimpleNamespace(on_open=on_open, more=lambda _: None, on_response=lambda *_, kept: done.append(kept))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        target = Target(f"http://127.0.0.1:{listening.getsockname()[1]}", "mock", public=True)
        connection = Connection(loop, Route(target), cast("Owner", owner))
        connection.open()
        loop.run(lambda: answer.sample.sent > 0)
        peer = listening.accept()[0]
    with peer:
        while len(came) < size:
            came += peer.recv(size)
        assert came == body
        arrival = time.monotonic_ns()
        peer.sendall(b"".join(stream()))
        loop.run(lambda: bool(done))
    connection.close()
    loop.close()
    return answer.sample, arrival


def test_a_request_that_its_machine_holds_back_leaves_later() -> None:
    held_back, arrival = ask(0, 14_000, pacing=1_000_000)
    assert held_back.sent + 2_000_000 < held_back.departed <= arrival


@pytest.mark.parametrize(
    ("index", "size", "is_stamped"), [(511, 600, True), (512, 600, False), (635, 600, True), (0, 50_000, True)]
)
def test_the_first_requests_and_a_share_of_the_others_have_a_stamp(index: int, size: int, is_stamped: bool) -> None:
    sample, arrival = ask(index, size)
    if is_stamped:
        assert sample.sent <= sample.departed <= arrival
    else:
        assert (sample.departed, sample.failure) == (0, "")


class Slow(Prompts):
    """Bodies that keep the loop from everything else until the answer before each is written."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = threading.Semaphore(1)  # nothing comes before the first

    def body(self, index: int, turn: int = 0) -> Body:
        assert self.answered.acquire(timeout=60)
        return super().body(index, turn)


def tokens_read_late() -> list[tuple[int, int, int]]:
    """Instants of two answers that came while the client made a body: the last look, the first token's, its stamp."""
    bodies, written = Slow(), []

    async def two_tokens(_: WireRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + chunk(ROLE))
        written.append(time.monotonic_ns())
        for piece in stream()[1:]:
            writer.write(piece)
            await asyncio.sleep(0)
        bodies.answered.release()

    with serving(two_tokens) as wire:
        late = send(wire.url, 3, Constant(50), bodies=bodies).samples[:-1]
    return [(sample.first_after, first, sample.first) for sample, first in zip(late, written, strict=False)]


@pytest.mark.slow
def test_a_first_token_read_with_later_ones_came_after_the_last_look() -> None:
    # One of ten: the look ends late, and counts from its end, where the machine or this server's thread holds it up.
    assert any(all(0 < look <= written <= stamp for look, written, stamp in tokens_read_late()) for _ in range(10))


@pytest.mark.parametrize(
    ("pieces", "after"),
    [
        ([(8, 3, ROLE + TOKEN), (9, 8, TOKEN)], 0),
        ([(9, 3, ROLE + TOKEN), (9, 3, TOKEN), (9, 3, TOKEN)], 3),
        ([(5, 1, ROLE), (9, 6, TOKEN), (9, 6, TOKEN)], 6),
        ([(5, 1, ROLE), (6, 5, TOKEN), (9, 6, TOKEN), (9, 6, TOKEN)], 0),
    ],
)
def test_only_a_first_token_with_the_stamp_of_a_later_one_is_unsure(
    pieces: list[tuple[int, int, bytes]], after: int
) -> None:
    buffer = ResponseBuffer(Sample(0, status=200), b"")
    for at, since, piece in pieces:
        buffer.reader.since[at] = since
        buffer.keep(at, piece)
    buffer.read()
    assert buffer.sample.first > 0
    assert buffer.sample.first_after == after
