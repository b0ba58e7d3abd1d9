"""Loads in which requests fail, hang or wait: what ends such a load, and beside each what ends none."""

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from bench_support.wire import (
    WireRequest,
    document,
    good,
    measure_undisturbed,
    send,
    serving,
)
from bezel_bench.load.plan import Closed, Constant, Replay

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from bench_support.wire import Answering
    from bezel_bench.load.plan import Pattern
    from bezel_bench.result.sample import Measured


def hanging_after(answers: int, *, but: int = 0) -> "Answering":
    """Answers so many requests, and then none, or but each so many-th."""

    async def answer(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        if asked.number < answers or (but and asked.number % but == 0):
            await good(asked, writer)

    return answer


@pytest.mark.parametrize("pattern", [Closed(4), Constant(40.0)])
def test_load_at_a_hanging_server_ends_after_one_silent_deadline(pattern: "Pattern") -> None:
    """Not when each user has waited a deadline for each of the own requests; and what was answered is kept."""

    def measure(slower: int) -> "Measured":
        with serving(hanging_after(8)) as wire:
            return send(wire.url, 4000, pattern, deadline_seconds=0.8 * slower)

    def count_answered(measured: "Measured") -> int:
        return sum(not sample.failure for sample in measured.samples)

    measured = measure_undisturbed(
        measure, lambda measured: count_answered(measured) == 8 and len(measured.samples) < 200
    )
    failed = [sample for sample in measured.samples if sample.failure]
    assert count_answered(measured) == 8
    assert {sample.failure for sample in failed} == {"no_answer"}
    assert len(measured.samples) < 2000
    assert measured.client.silent_seconds >= 0.8
    assert not measured.client.interrupted


def test_requests_that_hang_beside_others_that_are_answered_end_no_load() -> None:
    def measure(slower: int) -> "Measured":
        with serving(hanging_after(0, but=3)) as wire:
            # The deadline is shorter than the load.
            return send(wire.url, 400, Constant(200.0 / slower), deadline_seconds=1.0 * slower)

    measured = measure_undisturbed(measure, lambda measured: len(measured.samples) == 400)
    kinds = {sample.failure for sample in measured.samples}
    assert len(measured.samples) == 400
    assert kinds == {"", "no_answer"}
    assert measured.client.silent_seconds == 0


def test_a_server_that_is_gone_ends_a_load_after_a_deadline() -> None:
    """Its connections are refused: each request fails at once, and none is answered."""

    def measure(slower: int) -> "Measured":
        async def one(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
            await good(asked, writer)
            wire.stop_listening()
            writer.close()

        with serving(one) as wire:
            return send(wire.url, 10_000, Closed(2), deadline_seconds=0.8 * slower)

    measured = measure_undisturbed(
        measure, lambda measured: not measured.samples[0].failure and len(measured.samples) < 100
    )
    assert measured.samples[0].failure == ""
    assert len(measured.samples) < 1000
    assert measured.client.silent_seconds >= 0.8


def failing(*, but: int = 0) -> "Answering":
    """Answers with a status 500, but each so many-th request well."""

    async def answer(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        if but and asked.number % but == but - 1:
            await good(asked, writer)
        else:
            writer.write(document(b'{"error":"out of memory"}', "500 Internal Server Error"))

    return answer


@pytest.mark.parametrize("pattern", [Closed(4), Constant(1000.0)])
def test_a_load_whose_requests_all_fail_ends_long_before_the_last(pattern: "Pattern") -> None:
    # Thirty seconds of requests: a busy machine sends those that are due in one go.
    with serving(failing()) as wire:
        measured = send(wire.url, 30_000, pattern)
    assert 200 <= len(measured.samples) < 25_000
    assert 200 <= measured.client.failing_requests <= len(measured.samples)
    assert {sample.failure for sample in measured.samples} <= {"http_5xx", "no_answer"}


def test_many_users_may_each_fail_some_times_before_their_load_ends() -> None:
    with serving(failing()) as wire:
        measured = send(wire.url, 3000, Closed(100))
    assert len(measured.samples) >= 400


def test_failures_with_successes_among_them_end_no_load() -> None:
    with serving(failing(but=50)) as wire:
        measured = send(wire.url, 1000, Closed(4))
    assert len(measured.samples) == 1000
    assert measured.client.failing_requests == 0


def test_users_think_between_a_response_and_their_next_request() -> None:
    with serving(good) as wire:
        measured = send(wire.url, 6, Closed(2), think_seconds=0.05)
    by_user = [[one for one in measured.samples if one.user == user] for user in (0, 1)]
    for samples in by_user:
        for one, later in itertools.pairwise(samples):
            assert later.planned - one.done >= 49_000_000
            assert later.sent >= later.planned


def test_open_loop_stops_sending_at_its_limit_and_awaits_the_rest() -> None:
    async def slow(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        await good(asked, writer)

    with serving(slow) as wire:
        measured = send(wire.url, 2000, Constant(1000.0), max_in_flight=20)
    assert {sample.failure for sample in measured.samples} == {""}
    assert 20 <= len(measured.samples) < 1000
    assert measured.client.crowd == 20


@pytest.mark.wide
def test_senders_together_keep_the_limit_of_requests_under_way() -> None:
    async def hang(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        await good(asked, writer)

    with serving(hang) as wire:
        measured = send(wire.url, 400, Constant(1000.0), max_in_flight=5, workers=2)
    assert 5 <= len(measured.samples) < 200
    assert measured.client.crowd == 5


def test_a_limit_of_one_request_under_way_ends_no_load_of_short_responses() -> None:
    def measure(slower: int) -> "Measured":
        with serving(good) as wire:
            return send(wire.url, None, Replay((0.0, 1.0 * slower)), max_in_flight=1)

    measured = measure_undisturbed(measure, lambda measured: measured.client.crowd == 0)
    assert (len(measured.samples), measured.client.crowd) == (2, 0)


def test_requests_of_a_rate_wait_for_a_place_and_latencies_hold_it() -> None:
    running = most = 0

    async def slow(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        await good(asked, writer)

    with serving(slow) as wire:
        measured = send(wire.url, 24, Constant(2000.0), max_concurrency=4)
    assert {sample.failure for sample in measured.samples} == {""}
    assert most == 4
    assert (len(measured.samples), measured.client.waited) == (24, 20)
    last = measured.samples[-1]
    assert last.sent - last.planned >= 60_000_000
    # The wait is the server's: the client had begun the last before a place for the first of them was free.
    assert last.begun <= measured.samples[4].sent


@pytest.mark.parametrize(("share", "least"), [(None, 200), (0.2, 11)])
def test_requests_that_wait_for_a_place_are_not_sent_to_a_failing_server(share: float | None, least: int) -> None:
    pattern = Replay((0.0,) * 1500)
    with serving(failing()) as wire:
        measured = send(wire.url, None, pattern, max_concurrency=4, max_failed_share=share)
        assert least <= len(wire.asked) < least + 8
    assert len(measured.samples) == 1500
    assert bool(measured.client.failed_share) == (share is not None)
    assert measured.client.failing_requests == (0 if share else 200)


def test_requests_that_wait_for_a_place_are_not_sent_to_a_hanging_server() -> None:
    async def hang(_: WireRequest, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    with serving(hang) as wire:
        measured = send(wire.url, None, Replay((0.0,) * 9), max_concurrency=1, deadline_seconds=0.3)
        assert len(wire.asked) <= 1
    assert measured.client.silent_seconds >= 0.3


def test_an_open_loop_with_enough_places_lets_no_request_wait() -> None:
    with serving(good) as wire:
        measured = send(wire.url, 20, Constant(200.0), max_concurrency=20)
    assert (len(measured.samples), measured.client.waited) == (20, 0)


@pytest.mark.parametrize("pattern", [Closed(4), Constant(500.0)])
def test_a_load_ends_once_too_large_a_share_of_it_has_failed(pattern: "Pattern") -> None:
    with serving(failing(but=2)) as wire:
        measured = send(wire.url, 3000, pattern, max_failed_share=0.2)
    assert 11 <= sum(sample.failure == "http_5xx" for sample in measured.samples) < 1500
    assert measured.client.failed_share > 0.2
    assert measured.client.failing_requests == 0


@pytest.mark.parametrize("pattern", [Closed(30), Constant(1000.0)])
def test_a_share_of_the_requests_is_cancelled_by_the_client(pattern: "Pattern") -> None:
    async def slow(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        await good(asked, writer)

    kinds = []
    for _ in range(2):
        with serving(slow) as wire:
            measured = send(wire.url, 60, pattern, cancel_share=0.5, cancel_seconds=0.01, max_failed_share=0.01)
        kinds.append([sample.failure for sample in measured.samples])
    assert kinds[0] == kinds[1]
    assert {*kinds[0]} == {"", "cancelled"}
    assert 15 <= kinds[0].count("cancelled") <= 45
    cancelled = [sample for sample in measured.samples if sample.failure]
    assert all(sample.done - sample.sent >= 10_000_000 for sample in cancelled)
    assert (measured.client.failing_requests, measured.client.failed_share) == (0, 0.0)


@pytest.mark.parametrize(("share", "ends"), [(0.35, True), (0.65, False)])
def test_a_cancelled_request_hides_no_share_of_failures(share: float, ends: bool) -> None:
    # Half of the requests are cancelled, and half of the others fail.
    with serving(failing(but=2)) as wire:
        measured = send(wire.url, 400, Closed(4), max_failed_share=share, cancel_share=0.5)
    assert bool(measured.client.failed_share) == ends
    assert (len(measured.samples) == 400) != ends


def test_a_response_before_its_cancellation_is_a_success() -> None:
    with serving(good) as wire:
        measured = send(wire.url, 30, Closed(2), cancel_share=0.9, cancel_seconds=30.0)
    assert {sample.failure for sample in measured.samples} == {""}


def test_a_load_below_its_share_of_failures_is_sent_whole() -> None:
    with serving(failing(but=2)) as wire:
        measured = send(wire.url, 300, Closed(4), max_failed_share=0.6)
    assert (len(measured.samples), measured.client.failed_share) == (300, 0.0)


def test_an_open_loop_that_stays_below_its_limit_sends_all() -> None:
    def measure(slower: int) -> "Measured":
        with serving(good) as wire:
            return send(wire.url, 60, Constant(60.0 / slower), max_in_flight=50)

    measured = measure_undisturbed(measure, lambda measured: measured.client.crowd == 0)
    assert (len(measured.samples), measured.client.crowd) == (60, 0)
