"""Rates from the throughput of one user to the highest: which are measured, and up to which limits are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench_support.oracle import RATE, cell_of, run_once
from bezel_base.errors import UserError
from bezel_bench.commands.measure.cell_runner import load_of
from bezel_bench.load.plan import Constant, Poisson, Target
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.measurement.budget import Limits
from bezel_bench.sweep.measurement.journal import Ledger
from bezel_bench.sweep.rates import Rated, RatePlan, conclude, measure_rates, rates_between

if TYPE_CHECKING:
    from bezel_bench.result.document import Cell

REQUEST = CellRequest(512, 128, 50)
PLAN = RatePlan(REQUEST, steps=4, users=32, seconds=10.0, limits={"ttft_p99": 500.0})


class Server:
    """Completes up to 16 requests a second; its ttft grows with the rate."""

    def __init__(self, disturbed: tuple[str, ...] = ()) -> None:
        self.asked: list[CellRequest] = []
        self.disturbed = list(disturbed)

    def measure(self, request: CellRequest) -> Cell:
        self.asked.append(request)
        load = request.rate or min(16.0, 4.0 * (request.users or 0))
        cell = cell_of(request, **{RATE: min(load, 16.0), "ttft_p99": 40.0 * load})
        if request.id in self.disturbed:
            self.disturbed.remove(request.id)
            return cell.model_copy(update={"state": "busy_machine", "reason": "other work"})
        return cell


def test_rates_are_spread_from_one_user_to_the_highest_throughput() -> None:
    server = Server()
    outcome = measure_rates(PLAN, run_once(server.measure), lambda _: None)
    assert [cell.id for cell in outcome.cells] == ["c512-u1", "c512-u32", *(f"c512-q{r}" for r in (4, 8, 12, 16))]
    assert [one.requests for one in server.asked] == [16, 96, 50, 80, 120, 160]
    finding = conclude(PLAN, outcome)
    assert finding.text == "Rates up to 12 requests/s keep ttft_p99 <= 500 ms; 16 requests/s do not."
    assert finding.numbers == {"unit": "requests/s", "highest": 12.0, "missed": 16.0}


def test_each_rate_has_gaps_of_its_own_and_the_same_command_the_same_ones() -> None:
    server, again, alone = Server(("c512-q8",)), Server(), Server()
    for one, plan in ((server, PLAN), (again, PLAN), (alone, RatePlan(replace(REQUEST, seed=7), (8.0,)))):
        measure_rates(plan, run_once(one.measure), lambda _: None)
    seeds = {request.id: request.seed for request in server.asked}
    assert [*seeds.values()] == [0, 0, 0, 1, 2, 3]
    # A rate that is tried again is the same load.
    assert [one.seed for one in server.asked if one.id == "c512-q8"] == [1, 1]
    assert {request.id: request.seed for request in again.asked} == seeds
    assert [request.seed for request in alone.asked] == [7]


def test_named_rates_need_no_range() -> None:
    plan = RatePlan(REQUEST, (2.0, 3.0))
    outcome = measure_rates(plan, run_once(Server().measure), lambda _: None)
    assert [cell.rate for cell in outcome.cells] == [2.0, 3.0]
    text = "Rates up to 3 requests/s are completed as fast as they are sent, the highest that was sent."
    assert conclude(plan, outcome).text == text


def test_lowest_rate_that_misses_its_limits_is_named() -> None:
    plan = RatePlan(REQUEST, (14.0, 15.0), limits={"ttft_p99": 500.0})
    outcome = measure_rates(plan, run_once(Server().measure), lambda _: None)
    assert conclude(plan, outcome).text == "Not even the lowest rate, 14 requests/s, keeps ttft_p99 <= 500 ms."


def test_a_disturbed_rate_is_tried_a_second_time_and_then_not_judged() -> None:
    server = Server(("c512-q8",))
    outcome = measure_rates(PLAN, run_once(server.measure), lambda _: None)
    assert [one.id for one in server.asked][-1] == "c512-q8"
    assert len({one.run for one in server.asked}) == 7
    assert {cell.state for cell in outcome.cells} == {"ok"}
    twice = measure_rates(PLAN, run_once(Server(("c512-q8", "c512-q8")).measure), lambda _: None)
    assert conclude(PLAN, twice).text.endswith("16 requests/s do not. Not judged: c512-q8 (busy_machine).")
    of_one = RatePlan(REQUEST, (8.0,), limits=PLAN.limits)
    assert (outcome.is_complete, twice.is_complete) == (True, False)
    never = measure_rates(of_one, run_once(Server(("c512-q8", "c512-q8")).measure), lambda _: None)
    assert conclude(of_one, never).text == "No rate could be judged. Not judged: c512-q8 (busy_machine)."


def test_a_missed_rate_above_an_unjudged_one_is_not_called_the_lowest() -> None:
    plan = RatePlan(REQUEST, (8.0, 15.0), limits=PLAN.limits)
    outcome = measure_rates(plan, run_once(Server(("c512-q8", "c512-q8")).measure), lambda _: None)
    text = "Not even the lowest rate that could be judged, 15 requests/s, keeps ttft_p99 <= 500 ms."
    assert conclude(plan, outcome).text == f"{text} Not judged: c512-q8 (busy_machine)."


def test_a_rate_under_which_the_server_died_misses_no_limit() -> None:
    server, plan = Server(), RatePlan(REQUEST, (4.0, 8.0, 12.0))

    def measure(request: CellRequest) -> Cell:
        if request.rate == 12.0:
            raise UserError("the server accepts no connection.")
        cell = server.measure(request)
        gone = {"state": "failed", "reason": "30 of 80 failed", "failures": {"refused": 30}}
        return cell.model_copy(update=gone) if request.rate == 8.0 else cell

    finding = conclude(plan, measure_rates(plan, run_once(measure), lambda _: None))
    assert finding.numbers == {"unit": "requests/s", "highest": 4.0, "missed": None}
    assert "Not judged: c512-q8 (failed). Ended early: c512-q12 could not be measured" in finding.text
    # Where it still answers afterwards, its failures are the load's.
    shedding = conclude(plan, Rated(measure_rates(plan, run_once(measure), lambda _: None).cells, "", 0.0))
    assert shedding.numbers["missed"] == 8.0


def test_rates_of_a_server_that_many_users_slow_down_end_at_one_user() -> None:
    def measure(request: CellRequest) -> Cell:
        return cell_of(request, **{RATE: 6.0 if request.users == 1 else 2.0})

    outcome = measure_rates(RatePlan(REQUEST, steps=3), run_once(measure), lambda _: None)
    assert [cell.rate for cell in outcome.cells] == [None, None, 2.0, 4.0, 6.0]


def test_a_disturbed_range_of_rates_is_measured_again_before_its_rates() -> None:
    server = Server(("c512-u32",))
    outcome = measure_rates(PLAN, run_once(server.measure), lambda _: None)
    assert [one.id for one in server.asked][:3] == ["c512-u1", "c512-u32", "c512-u32"]
    assert outcome.is_complete


def test_rates_keep_their_range_where_the_command_is_given_again() -> None:
    ledger, server = Ledger("run"), Server(("c512-u32", "c512-u32", "c512-q8", "c512-q8"))
    first = measure_rates(PLAN, run_once(server.measure, ledger), lambda _: None)
    begun = len(server.asked)
    again = measure_rates(PLAN, run_once(server.measure, ledger), lambda _: None)
    assert [one.id for one in server.asked][begun:] == ["c512-q8"]
    assert [cell.rate for cell in again.cells] == [cell.rate for cell in first.cells]


def test_measured_rates_are_not_sent_again_and_a_limit_ends_them() -> None:
    ledger, server = Ledger("run"), Server()
    first = measure_rates(PLAN, run_once(server.measure, ledger), lambda _: None)
    again = measure_rates(PLAN, run_once(server.measure, ledger), lambda _: None)
    assert (len(server.asked), again.cells) == (6, first.cells)
    short = measure_rates(PLAN, run_once(server.measure, Ledger("run"), Limits(seconds=0.0)), lambda _: None)
    assert (short.cells, len(server.asked)) == ([], 6)
    assert "No rate was measured. Ended early: the limits allow no further load: 1 user" in conclude(PLAN, short).text


def test_rates_that_fit_into_the_time_left_are_sent() -> None:
    server, now = Server(), [0.0]

    def measure(request: CellRequest) -> Cell:
        now[0] += request.requests / (request.rate or min(16.0, 4.0 * (request.users or 0)))
        return server.measure(request)

    # One user 4 s, 32 users 6 s, rates 12.5, 10, 10 and 10 s.
    for seconds, loads in ((53.0, 6), (45.0, 5), (5.0, 2)):
        now[0] = 0.0
        once = run_once(measure, Ledger("run"), Limits(seconds=seconds), lambda: now[0])
        outcome = measure_rates(PLAN, once, lambda _: None)
        assert len(outcome.cells) == loads


def test_a_server_that_answers_no_user_has_no_range_of_rates() -> None:
    outcome = measure_rates(PLAN, run_once(lambda one: cell_of(one, reason="all failed")), lambda _: None)
    assert outcome.ended == "the range of rates is unknown: all failed"


@pytest.mark.parametrize(
    ("lowest", "highest", "steps", "rates"),
    [(4, 16, 4, (4, 8, 12, 16)), (1, 2.0004, 2, (1, 2)), (5, 5, 9, (5,)), (0.01234, 1, 2, (0.0123, 1))],
)
def test_rates_between_two_are_even_and_have_three_digits(
    lowest: float, highest: float, steps: int, rates: tuple[float, ...]
) -> None:
    assert rates_between(lowest, highest, steps) == rates


def test_arrivals_of_a_rate_are_even_or_random() -> None:
    from argparse import Namespace

    options, target = Namespace(deadline=300.0, workers=1), Target("http://127.0.0.1:1", "m")
    even, drawn = (CellRequest(512, 128, 50, rate=2.0, evenly=evenly) for evenly in (True, False))
    assert load_of(even, options, target).pattern == Constant(2.0)
    assert load_of(drawn, options, target).pattern == Poisson(2.0)
