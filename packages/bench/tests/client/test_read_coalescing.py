"""A loop that rests between chunks: what is measured, what is due and what is short stay as they were."""

from __future__ import annotations

import socket
from array import array
from time import monotonic_ns
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_bench.client.loop import ARRIVES, Loop
from bezel_bench.client.read_coalescing import LONGEST_NS, rest_after
from bezel_bench.result.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

MS = 1_000_000


def stream(first_ms: float, *gaps_ms: float) -> tuple[Sample, int]:
    """A stream that was sent at 0, and when it ended."""
    sample, at = Sample(0, sent=0), first_ms
    sample.chunks = array("q", [round(at * MS)])
    for gap in gaps_ms:
        at += gap
        sample.chunks.append(round(at * MS))
    return sample, sample.chunks[-1]


@pytest.mark.parametrize(
    ("sample", "rest_ms"),
    [
        (stream(50, *[9] * 63), 3.0),
        (stream(50, *[100] * 63), 4.0),
        (stream(50, *[1] * 1000), 1 / 3),
        (stream(50, *[10] * 7), 120 / 200),
        (stream(50), 0),
    ],
    ids=["pace", "slow", "fast", "short answer", "one token"],
)
def test_a_rest_is_a_small_part_of_the_pace_and_of_the_answer(sample: tuple[Sample, int], rest_ms: float) -> None:
    assert rest_after(LONGEST_NS, *sample) == pytest.approx(rest_ms * MS, rel=1e-3)


@pytest.mark.slow
@given(st.lists(st.lists(st.floats(0.01, 500), max_size=40), min_size=1, max_size=6))
def test_the_fastest_stream_bounds_the_rest_whatever_comes_after_it(streams: list[list[float]]) -> None:
    rest = LONGEST_NS
    for gaps in streams:
        sample, ended = stream(20, *gaps)
        before, rest = rest, rest_after(rest, sample, ended)
        assert 0 <= rest <= before
        assert rest * 3 * len(gaps) <= sample.chunks[-1] - sample.chunks[0]


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop(lambda: False)
    yield made
    made.close()


def read_times(loop: Loop, *, timer_ms: float = 0) -> tuple[float, float]:
    """When (ms) a chunk was read that arrived while another was, and when a timer was called."""
    read: list[int] = []
    called: list[int] = []
    pairs = [socket.socketpair() for _ in range(2)]

    def ready(index: int) -> None:
        pairs[index][1].recv(1)
        read.append(monotonic_ns())
        if index == 0:
            pairs[1][0].send(b"x")
            loop.at(read[0] + round(timer_ms * MS), lambda: called.append(monotonic_ns()))

    for index, (_, ours) in enumerate(pairs):
        loop.watch(ours.fileno(), ARRIVES, lambda _, index=index: ready(index))
    pairs[0][0].send(b"x")
    deadline = monotonic_ns() + 60_000 * MS
    loop.run(lambda: (len(read) == 2 and bool(called)) or monotonic_ns() > deadline)
    for pair in pairs:
        loop.forget(pair[1].fileno())
        for one in pair:
            one.close()
    return (read[1] - read[0]) / MS, (called[0] - read[0]) / MS


def test_what_arrives_in_a_rest_is_read_after_it(loop: Loop) -> None:
    loop.rest = 5 * MS
    # One of twenty: a tick, which may come soon, cuts a rest short.
    assert any(read_times(loop, timer_ms=50)[0] > 3 for _ in range(20))


@pytest.mark.slow
@pytest.mark.parametrize("rest_ms", [0, 5])
def test_without_a_rest_or_without_stamps_it_is_read_at_once(loop: Loop, rest_ms: int) -> None:
    loop.rest, loop.stamped = rest_ms * MS, rest_ms == 0
    # One of twenty: the machine may do something else in between.
    assert any(read_times(loop, timer_ms=50)[0] < 3 for _ in range(20))


def test_a_timer_is_called_in_the_middle_of_a_rest(loop: Loop) -> None:
    loop.rest = 8 * MS
    assert any(read_times(loop, timer_ms=2)[1] < 6 for _ in range(20))
