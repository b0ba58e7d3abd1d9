"""An open loop above what a server completes: rates are of what was completed, the cell says so, nothing is lost."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_support.cells import document, plan, record
from bench_support.rendered import text_of
from bench_support.runs import (
    BEGAN,
    MS,
    SECOND,
    closed_loop,
    columns,
    failed_sample,
    good_sample,
    measurement,
    noise,
    queueing_loop,
)
from bezel_bench.commands.render.tables import run_blocks
from bezel_bench.load.patterns import instants
from bezel_bench.load.plan import Burst, Constant, Poisson, Replay, Stage, Staged, Stop
from bezel_bench.metrics.definitions import measure
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.metrics.saturation import completed_share
from bezel_bench.metrics.steady import steady_window
from bezel_bench.result.document import Slo
from bezel_bench.validity.checks import most_in_flight
from bezel_bench.validity.load_checks import conservation

if TYPE_CHECKING:
    from bezel_bench.load.plan import Pattern
    from bezel_bench.result.sample import Measured

PLACES, SERVICE = 8, 105 * MS
CAPACITY = PLACES / 0.105  # 76.2 requests a second


def send_load(pattern: Pattern, requests: int | None, *, places: int = PLACES, seed: int = 1) -> Measured:
    """A load as it is planned, at a server of that many places."""
    planned = [round(at * SECOND) for at in instants(pattern, Stop(requests=requests), seed)]
    return queueing_loop(planned, [SERVICE] * len(planned), places)


def load_of(pattern: Pattern):
    return replace(plan(), load=replace(plan().load, pattern=pattern, stop=Stop(requests=100)))


def share(pattern: Pattern, run: Measured) -> float | None:
    return completed_share(load_of(pattern).load, columns(run), BEGAN)


@functools.cache
def overload() -> Measured:
    """200 requests a second for ten seconds."""
    return send_load(Poisson(200.0), 2000)


def facts(run: Measured, users: int = 0, **more: object) -> MetricInputs:
    rows = columns(run)
    return MetricInputs(rows, steady_window(rows, run.began, run.ended, users=users), open_loop=not users, **more)


def test_beyond_saturation_the_rates_are_those_of_what_was_completed():
    metrics = measure(facts(overload(), usd_per_hour=3.6, slos=[Slo(metric="e2e", limit_ms=1e6)]))
    expected = {
        "requests_per_second": CAPACITY, "goodput": CAPACITY, "input_tokens_per_second": 100 * CAPACITY,
        "prompt_tokens_per_second": 100 * CAPACITY, "output_tokens_per_second": 11 * CAPACITY,
        "cost_per_million_input_tokens": 3.6 / 3600 / (100 * CAPACITY) * 1e6, "offered_requests_per_second": 200.0,
    }  # fmt: skip
    for name, value in expected.items():
        assert metrics[name].value == pytest.approx(value, rel=0.03), name
    rate = metrics["requests_per_second"]
    assert rate.low < CAPACITY < rate.high


def test_a_growing_queue_is_said_with_offered_and_completed_side_by_side():
    result = record(overload(), load_of(Poisson(200.0)))
    assert result.cell.state == "saturated"
    assert re.match(r"19\d(\.\d)? requests/s offered, 7[56]\.\d+ completed: ", result.cell.reason)
    lines = [
        line.split()[:2]
        for line in text_of(run_blocks(document(result))).splitlines()
        if "requests_per_second " in line
    ]
    assert [name for name, _ in lines] == ["offered_requests_per_second", "requests_per_second"]
    assert [float(value) for _, value in lines] == pytest.approx([200, CAPACITY], rel=0.03)


@pytest.mark.parametrize(
    ("pattern", "requests", "saturated"),
    [
        (Constant(80.0), 800, True),
        (Constant(70.0), 800, False),
        (Poisson(110.0), 800, True),
        (Poisson(60.0), 800, False),
        (Burst(150.0, 0.3), 800, True),
        (Burst(38.0, 0.3), 800, False),
        (Replay(tuple(number / 200 for number in range(600))), None, True),
        (Staged("rate", (Stage(30.0, 10.0), Stage(60.0, 10.0), Stage(120.0, 10.0))), None, True),
        (Staged("rate", (Stage(30.0, 10.0), Stage(60.0, 10.0))), None, False),
    ],
)  # fmt: skip
def test_growing_queue_and_no_other_is_found_in_every_pattern(pattern, requests, saturated):
    assert (share(pattern, send_load(pattern, requests)) is not None) == saturated


def test_answers_that_take_longer_than_the_load_is_sent_are_no_queue():
    long = queueing_loop([number * 10 * MS for number in range(200)], [20 * SECOND] * 200, 200)
    assert share(Constant(100.0), long) is None
    one_by_one = queueing_loop([number * 10 * MS for number in range(200)], [SECOND] * 200, 1)
    assert share(Constant(100.0), one_by_one) == pytest.approx(0.01, rel=0.1), "nothing was completed before the end"
    assert record(one_by_one, load_of(Constant(100.0))).cell.state == "saturated"


def test_users_who_wait_are_no_growing_queue():
    assert completed_share(plan().load, columns(closed_loop(4, 50)), BEGAN) is None
    assert measure(facts(closed_loop(4, 10), 4))["offered_requests_per_second"].why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "more", "loads"), [(200, 10, (0.5, 0.8)), (100, 5, (0.8, 0.9)), (60, 2, (0.5, 0.8))]
)
def test_loads_that_a_server_can_take_are_rarely_said_to_saturate_it(requests, more, loads):
    """Shares of its capacity, services that vary as widely as their mean; in short ones chance looks like a rise."""
    saturated = 0
    for seed in range(60):
        dice, rate = noise(seed), loads[seed % 2] * CAPACITY
        planned = [round(at * SECOND) for at in instants(Poisson(rate), Stop(requests=requests + more * seed), seed)]
        services = [max(MS * 2, round(dice.expovariate(1 / SERVICE))) for _ in planned]
        saturated += share(Poisson(rate), queueing_loop(planned, services, PLACES)) is not None
    assert saturated <= 2


PATTERNS = st.one_of(
    st.builds(Constant, st.floats(5, 400)),
    st.builds(Poisson, st.floats(5, 400)),
    st.builds(Burst, st.floats(5, 400), st.floats(0.2, 5)),
    st.builds(lambda rates: Staged("rate", tuple(Stage(rate, 1.0) for rate in rates)),
              st.lists(st.floats(1, 200), min_size=1, max_size=4)),
    st.builds(lambda gaps: Replay(tuple(itertools.accumulate(gaps))),
              st.lists(st.floats(0, 0.2), min_size=1, max_size=200)),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(PATTERNS, st.integers(1, 300), st.integers(1, 40), st.integers(0, 9), st.integers(0, 3))
def test_no_request_is_lost_and_no_rate_is_beyond_the_server(pattern, requests, places, seed, broken):
    """What was sent is completed, failed or under way; and a rate times its time is what was completed in it."""
    run = send_load(pattern, requests, places=places, seed=seed)
    for sample in run.samples[: broken * 7 : 7]:
        sample.failure = "http_5xx"
    changing = isinstance(pattern, Staged | Replay)
    rows = columns(run)
    steady = steady_window(rows, run.began, run.ended, users=0, changing=changing)
    metrics = measure(MetricInputs(rows, steady, open_loop=True))
    rate = metrics["requests_per_second"]
    check = conservation(rows, steady, most_in_flight(rows), 0, rate)
    assert check.state == "passed", check.text
    if rate.value is not None:
        assert rate.value * steady.seconds == pytest.approx(check.numbers["completed_inside"])
        # An edge may lie between: what the places hold then is all that may be counted beyond.
        assert rate.value * steady.seconds <= places * (steady.seconds / (SERVICE / SECOND) + 1) * 1.01


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 9), st.integers(0, 300))
def test_whoever_waits_in_a_closed_loop_nothing_is_lost(users, rounds, seed, stagger):
    dice = noise(seed)
    run = closed_loop(
        users, rounds, lambda index, at, user: good_sample(index, at, user=user, ttft=dice.randrange(50, 150) * MS),
        stagger=stagger * MS,
    )  # fmt: skip
    inputs = facts(run, users)
    rate = measure(inputs)["requests_per_second"]
    assert conservation(inputs.columns, inputs.steady, most_in_flight(inputs.columns), users, rate).state == "passed"


def test_users_nearly_in_step_are_counted_in_whole_rounds():
    """5 users and 16 requests: the last one is sent when the first of the third round is answered."""
    dice = noise(4)
    run = closed_loop(
        5, 40, lambda index, at, user: good_sample(index, at, user=user, ttft=dice.randrange(99, 101) * MS)
    )
    short = measurement(run.samples[:16])
    assert measure(facts(short, 5))["requests_per_second"].value == pytest.approx(5 / 0.2, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda run: run.samples.append(run.samples[3]), "1 request occurs twice"),
        (lambda run: setattr(run.samples[5], "done", 0), "1 request without an end"),
        (lambda run: setattr(run.samples[5], "done", run.samples[5].sent - 1), "or end before they begin"),
        (
            lambda run: setattr(run.samples[20], "done", 0),
            "4 under way + 32 sent != 31 completed + 0 failed + 4 under way",
        ),
        (
            lambda run: run.samples.append(good_sample(99, BEGAN + 50 * MS, user=7)),
            "5 requests were under way at once, of 4 users",
        ),
    ],
)
def test_a_request_that_is_lost_or_counted_twice_fails_the_cell(spoil, text):
    run = closed_loop(4, 10)
    spoil(run)
    cell = record(run).cell
    assert cell.state == "failed"
    assert text in cell.check("conservation").text


def test_a_rate_that_is_not_of_what_was_completed_fails_the_check():
    inputs = facts(closed_loop(4, 10), 4)
    rate = measure(inputs)["requests_per_second"]
    wrong = rate.model_copy(update={"value": rate.value * 1.5})
    assert conservation(inputs.columns, inputs.steady, 4, 4, rate).state == "passed"
    assert "!= 32 completed" in conservation(inputs.columns, inputs.steady, 4, 4, wrong).text


def test_a_failed_request_leaves_the_queue_and_gets_an_error_that_says_so():
    run = measurement([*closed_loop(4, 10).samples, failed_sample(40, BEGAN + 300 * MS, "http_5xx", after=MS, user=9)])
    numbers = record(run).cell.check("conservation").numbers
    assert (numbers["sent"], numbers["completed"], numbers["failed"]) == (41, 40, 1)
    assert numbers["in_flight_before"] + numbers["sent_inside"] == (
        numbers["completed_inside"] + numbers["failed_inside"] + numbers["in_flight_after"]
    )
