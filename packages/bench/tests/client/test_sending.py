"""Times and connections of requests: users, instants, limits; TLS only where it is trusted."""

import asyncio
import contextlib
import itertools
import os
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_support.wire import Prompts, WireRequest, certificate, chunk, good, replies, send, serving, stream
from bezel_base.errors import UserError
from bezel_bench.client.connection import Connection
from bezel_bench.client.loop import Lag, Loop
from bezel_bench.client.pool import Pool
from bezel_bench.client.response_buffer import ResponseBuffer
from bezel_bench.client.route import Route
from bezel_bench.load.patterns import User
from bezel_bench.load.plan import Body, Closed, Constant, Replay, Stage, Staged, Target
from bezel_bench.result.failures import of_connecting
from bezel_bench.result.sample import TRUNCATED, Sample


def test_each_user_waits_for_an_answer_before_the_next_request() -> None:
    running = most = 0
    all_there = asyncio.Event()

    async def slow(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 5:
            all_there.set()
        await all_there.wait()
        await asyncio.sleep(0.005)
        running -= 1
        await good(asked, writer)

    with serving(slow) as wire:
        samples = send(wire.url, 30, Closed(5)).samples
    assert [sample.index for sample in samples] == [*range(30)]
    assert {sample.user for sample in samples} == {*range(5)}
    assert most == 5
    for user in range(5):
        of_user = [sample for sample in samples if sample.user == user]
        for before, after in itertools.pairwise(of_user):
            # Ready as soon as the last answer is there: what comes between is the client's delay, and in no latency.
            assert before.done == after.planned <= after.sent


async def late(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
    """Answer after a moment, so that a load of some time is few requests."""
    await asyncio.sleep(0.02)
    await good(asked, writer)


@pytest.mark.slow
def test_users_of_a_ramp_begin_one_after_the_other() -> None:
    with serving(late) as wire:
        measured = send(wire.url, None, Closed(4), ramp_seconds=0.8, seconds=1.2)
    firsts = [min(s.planned for s in measured.samples if s.user == user) - measured.began for user in range(4)]
    assert firsts == [0, 200_000_000, 400_000_000, 600_000_000]
    assert all(sample.planned - measured.began < 1_200_000_000 for sample in measured.samples)


@pytest.mark.slow
def test_users_leave_and_come_back_with_their_stages() -> None:
    stages = Staged("users", (Stage(1, 0.4), Stage(3, 0.4), Stage(1, 0.4)))
    with serving(late) as wire:
        measured = send(wire.url, None, stages)
    for user, begin, end in ((0, 0, 1200), (1, 400, 800), (2, 400, 800)):
        starts = [(s.planned - measured.began) / 1e6 for s in measured.samples if s.user == user]
        assert begin <= min(starts) <= max(starts) < end


def test_a_user_away_is_present_again_at_the_next_window() -> None:
    user = User(0, [(0.0, 1.0), (3.0, float("inf"))])
    assert [user.present(at) for at in (0, 999_999_999, 1_000_000_000, 4_000_000_000)] == [
        *(0, 999_999_999, 3_000_000_000, 4_000_000_000)
    ]
    assert User(0, [(0.0, 1.0)]).present(1_000_000_000) is None


@pytest.mark.slow
def test_an_open_loop_sends_at_its_instants_whether_or_not_answers_come() -> None:
    async def much_later(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        await good(asked, writer)

    with serving(much_later) as wire:
        measured = send(wire.url, 40, Constant(400))
    assert [sample.planned - measured.began for sample in measured.samples] == [n * 2_500_000 for n in range(40)]
    assert all(sample.sent >= sample.planned for sample in measured.samples)
    # None waited for another: all 40 were on their way before the first answer.
    assert wire.at_once >= 40
    assert measured.client.connections >= 40


class Slow(Prompts):
    """Bodies that keep the loop from everything else until the answer before each is written, and for 100 ms more."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = threading.Semaphore(1)  # nothing comes before the first

    def body(self, index: int, turn: int = 0) -> Body:
        assert self.answered.acquire(timeout=60)
        time.sleep(0.1)
        return super().body(index, turn)


@pytest.mark.slow
def test_what_arrives_while_the_client_is_late_has_its_arrival_instant() -> None:
    bodies, written = Slow(), []

    async def note(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await good(asked, writer)
        written.append(time.monotonic_ns())
        bodies.answered.release()

    with serving(note) as wire:
        measured = send(wire.url, 5, Constant(8), bodies=bodies)
    # Each answer comes while the next body is made, and is looked at 100 ms later. (The last has none after it.)
    for sample, at in zip(measured.samples[:-1], written, strict=False):
        assert sample.sent < sample.first < at + 1_000_000  # two clocks, compared every 10 ms
    # And it says how late it was.
    assert measured.client.loop_lag_max_ms > 60


def test_a_trace_is_sent_as_recorded() -> None:
    with serving() as wire:
        measured = send(wire.url, None, Replay((0.0, 0.0, 0.03, 0.031)))
    assert [round((sample.planned - measured.began) / 1e6) for sample in measured.samples] == [0, 0, 30, 31]


def test_turns_of_a_conversation_are_one_users_and_in_order() -> None:
    with serving() as wire:
        samples = send(wire.url, 12, Closed(2), bodies=Prompts(turns=3)).samples
    assert [sample.index for sample in samples] == [*range(12)]
    assert [sample.turn for sample in samples] == [0, 1, 2] * 4
    for conversation in range(4):
        assert len({sample.user for sample in samples[conversation * 3 : conversation * 3 + 3]}) == 1
    bodies = sorted(asked.body for asked in wire.asked)
    assert bodies == sorted(b'{"prompt":"%d/%d"}' % (n, turn) for n in range(4) for turn in range(3))


@pytest.mark.slow
def test_no_limit_of_connections_is_silent() -> None:
    all_there = asyncio.Event()

    async def all_at_once(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        if asked.number == 299:
            all_there.set()
        await all_there.wait()
        await good(asked, writer)

    with serving(all_at_once) as wire:
        measured = send(wire.url, 300, Closed(300))
    assert not any(sample.failure for sample in measured.samples)
    # Made before the clock started.
    assert (measured.client.connections, measured.client.reconnections) == (300, 0)


@pytest.mark.parametrize("size", [1, 300_000, pytest.param(3_000_000, marks=pytest.mark.slow)])
def test_bodies_and_answers_of_any_size_pass(size: int) -> None:
    head, *rest = stream(1)
    event = chunk(b'data: {"choices":[{"delta":{"reasoning":"%b"}}]}\n\n' % (b"y" * size))
    answer = head + event + b"".join(rest).replace(b'"completion_tokens":1', b'"completion_tokens":2')
    with serving(replies(answer)) as wire:
        samples = send(wire.url, 3, bodies=Prompts(size)).samples
    assert [len(asked.body) for asked in wire.asked] == [size + 16] * 3
    assert [(sample.failure, sample.detail, len(sample.chunks)) for sample in samples] == [("", "", 2)] * 3


def test_headers_are_those_of_the_moment() -> None:
    tokens = (f"Bearer token-number-{n}" for n in itertools.count())
    with serving() as wire:
        send(wire.url, 3, headers=lambda: {"Authorization": next(tokens)})
    for number, asked in enumerate(wire.asked):
        assert f"Authorization: Bearer token-number-{number}\r\n" in asked.head


@pytest.mark.parametrize("good_ones", [0, 2])
def test_a_header_that_would_begin_another_is_refused_whenever_it_comes(good_ones: int) -> None:
    values = itertools.chain(["a"] * good_ones, itertools.repeat("a\r\ny: b"))
    with serving() as wire:
        with pytest.raises(UserError, match="line end"):
            send(wire.url, 5, headers=lambda: {"x": next(values)})
        assert len(wire.asked) == good_ones


def test_a_base_path_stays_before_the_endpoints() -> None:
    with serving() as wire:
        send(f"{wire.url}/team/")
    assert wire.asked[0].head.startswith("POST /team/v1/chat/completions HTTP/1.1\r\n")


def test_a_name_with_several_addresses_is_asked_at_the_one_that_listens() -> None:
    # localhost is ::1 and 127.0.0.1 where the machine has both; the server listens on the second only.
    with serving() as wire:
        measured = send(wire.url.replace("127.0.0.1", "localhost"), 3)
    assert [sample.failure for sample in measured.samples] == [""] * 3
    assert measured.client.connect_failures == 0


def test_a_server_that_takes_no_connection_is_given_up() -> None:
    missed: list[tuple[ResponseBuffer, OSError]] = []
    loop = Loop(lambda: False)
    with socket.socket() as listening, contextlib.ExitStack() as others:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        for _ in range(3):
            # Fills the queue of connections that are not accepted.
            one = others.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        route = Route(Target(f"http://127.0.0.1:{port}", "mock"))
        owner: Any = SimpleNamespace()
        pool = Pool(lambda: Connection(loop, route, owner), lambda *_: None, lambda *miss: missed.append(miss))
        answer = ResponseBuffer(Sample(0), b"")
        before = time.monotonic_ns()
        pool.want(answer)
        after = time.monotonic_ns()
        loop.run(lambda: time.monotonic_ns() > after + 30_000_000)
        pool.expire(before + 9_000_000_000)
        assert (missed, [*pool.waiting]) == ([], [answer])
        pool.expire(after + 11_000_000_000)
    assert [(who, of_connecting(error)[0]) for who, error in missed] == [(answer, "refused")]
    assert not pool.waiting
    loop.close()


@pytest.mark.slow
def test_connections_beyond_the_systems_limit_are_reported_beforehand() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))
from bezel_bench.client.pool import allow_files
allow_files(300)
assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
allow_files(400)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert "limit of open files = 400\n   400 connections need 464 open files" in process.stderr
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context, _ = certificate(tmp_path)
    with (
        serving(tls=context) as wire,
        pytest.raises(UserError, match=r"(?s)certificate is not trusted: self.signed.*--ca-file"),
    ):
        send(wire.url)
    assert not wire.asked


def test_a_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    context, ca_file = certificate(tmp_path, name="127.0.0.2")
    with (
        serving(tls=context) as wire,
        pytest.raises(UserError, match=r"certificate is of another address: .*127\.0\.0\.1"),
    ):
        send(wire.url, ca_file=ca_file)
    assert not wire.asked


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_that_the_ca_file_vouches_for_is_trusted(tmp_path: Path, version: ssl.TLSVersion) -> None:
    context, ca_file = certificate(tmp_path)
    context.minimum_version = context.maximum_version = version
    with serving(tls=context) as wire:
        samples = send(wire.url, 9, Closed(3), ca_file=ca_file, bodies=Prompts(200_000)).samples
    assert [(sample.failure, sample.output_tokens) for sample in samples] == [("", 2)] * 9
    assert len(wire.asked[0].body) == 200_016


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_an_answer_of_several_reads_is_read_whole_or_is_truncated(is_encrypted: bool, tmp_path: Path) -> None:
    context, ca_file = certificate(tmp_path) if is_encrypted else (None, "")
    # A read takes at most 64 KiB.
    whole = b"".join(stream(4_000))
    with serving(replies(whole), context) as wire:
        read = send(wire.url, 2, ca_file=ca_file).samples
    with serving(replies(whole[:200_000], close=True), context) as wire:
        cut = send(wire.url, 1, ca_file=ca_file).samples[0]
    assert [(sample.failure, sample.output_tokens, len(sample.chunks)) for sample in read] == [("", 4_000, 4_000)] * 2
    assert (cut.failure, len(cut.chunks)) == (TRUNCATED, whole[:200_000].count(b"tok"))


def test_a_server_without_tls_is_refused_where_tls_is_asked_for(tmp_path: Path) -> None:
    _, ca_file = certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def plain() -> None:
            one, _ = listening.accept()
            with one:
                one.recv(4096)
                one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=plain)
        thread.start()
        with pytest.raises(UserError, match=r"(?s)does not speak TLS on this port, so nothing.*write http://"):
            send(f"https://127.0.0.1:{port}", ca_file=ca_file)
        thread.join()


@pytest.mark.parametrize(("text", "message"), [(None, "cannot be read"), ("no certificate", "holds no certificate")])
def test_a_ca_file_that_is_none_is_reported(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    with pytest.raises(UserError, match=message):
        send("https://127.0.0.1:9", ca_file=str(file))


def test_lag_is_the_99th_of_a_hundred_ticks() -> None:
    lag = Lag()
    assert (lag.p99_ms, lag.max_ms) == (0.0, 0.0)
    for late in range(1, 101):
        lag.tick(0, late * 1_000_000)
    assert (lag.p99_ms, lag.max_ms) == (99.0, 100.0)


def test_a_process_with_many_open_files_sends_its_load_too() -> None:
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with serving(good) as wire:
            measured = send(wire.url, 10, Constant(100.0))
    finally:
        for file in opened:
            os.close(file)
    assert [sample.failure for sample in measured.samples] == [""] * 10
