"""Invariants of the search for the highest load within limits: few runs, the right edge, and no edge where none is."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_support.oracle import cell_of, run_once
from bezel_base.errors import UserError
from bezel_bench.result.records import Metric
from bezel_bench.sweep import wording
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.goodput import Search, conclude, levels, probability, search
from bezel_bench.sweep.measurement.journal import Ledger

if TYPE_CHECKING:
    from bezel_bench.result.document import Cell

WANTED = CellRequest(512, 128, 50, users=1)
PLAN = Search(WANTED, levels(1, 256, 0.1, whole=True), {"ttft_p99": 500.0})


class Server:
    """Whose ttft grows with the users, and varies from run to run."""

    def __init__(self, edge: float, noise: float = 0.03, seed: int = 1) -> None:
        self.edge, self.noise = edge, noise
        self.chances = random.Random(seed)  # noqa: S311 - no secret
        self.asked: list[CellRequest] = []

    def measure(self, wanted: CellRequest) -> Cell:
        self.asked.append(wanted)
        load = wanted.users if wanted.rate is None else wanted.rate
        ttft = 500.0 * ((load or 0) / self.edge) ** 1.5 * self.chances.lognormvariate(0.0, self.noise)
        cell = cell_of(wanted, ttft_p99=ttft, goodput=3.0)
        metric = Metric(value=ttft, unit="ms", low=ttft * 0.95, high=ttft * 1.05, confidence=0.95)
        return cell.model_copy(update={"metrics": cell.metrics | {"ttft_p99": metric}})


@pytest.mark.parametrize("edge", [3.4, 21.0, 90.0])
def test_the_edge_is_found_within_a_step_in_few_runs(edge: float) -> None:
    for seed in range(5):
        server = Server(edge, seed=seed)
        outcome = search(PLAN, run_once(server.measure), lambda _: None)
        assert not outcome.ended
        assert len(server.asked) <= 12
        below = sum(level <= edge for level in PLAN.levels)
        assert abs(outcome.kept - below) <= 1
        assert outcome.low <= below <= outcome.high


def test_a_lowest_load_that_misses_is_said_and_no_edge_made_up() -> None:
    outcome = search(PLAN, run_once(Server(0.5).measure), lambda _: None)
    assert (outcome.kept, outcome.ended) == (0, "")
    finding = conclude(PLAN, outcome)
    assert finding.text.startswith("Even the lowest load, 1 user, misses ttft_p99 <= 500 ms")
    assert finding.numbers["highest"] is None
    assert any(cell.users == 1 for cell in outcome.cells)


def test_a_highest_load_that_keeps_the_limits_is_said_and_no_edge_made_up() -> None:
    outcome = search(PLAN, run_once(Server(3000).measure), lambda _: None)
    assert (outcome.kept, outcome.ended) == (len(PLAN.levels), "")
    assert "The highest load, 256 users, still keeps" in conclude(PLAN, outcome).text
    assert any(cell.users == 256 for cell in outcome.cells)


def test_an_open_loop_is_searched_by_its_rate() -> None:
    wanted = CellRequest(512, 128, 50, rate=1.0)
    plan = Search(wanted, levels(0.5, 50, 0.1, whole=False), {"ttft_p99": 500.0}, seconds=20.0)
    server = Server(7.0)
    outcome = search(plan, run_once(server.measure), lambda _: None)
    assert conclude(plan, outcome).numbers["highest"] == pytest.approx(7.0, rel=0.2)
    assert len({one.seed for one in server.asked}) == len(server.asked) > 3
    assert (plan.at(0, 0).seed, plan.at(1, 0).seed, PLAN.at(5, 2).seed) == (0, 1, 0)
    assert all(one.users is None and one.requests >= max(50, 20 * (one.rate or 0)) for one in server.asked)


def test_no_two_runs_have_one_id_or_the_same_prompts() -> None:
    server = Server(21.0, noise=0.2)
    outcome = search(PLAN, run_once(server.measure), lambda _: None)
    assert len({cell.id for cell in outcome.cells}) == len(outcome.cells)
    assert len({one.run for one in server.asked}) == len(server.asked)


def test_noise_beyond_telling_ends_after_the_most_runs_and_says_so() -> None:
    plan = Search(WANTED, levels(1, 256, 0.1, whole=True), {"ttft_p99": 500.0})
    server = Server(21.0)

    def vague(wanted: CellRequest) -> Cell:
        cell = server.measure(wanted)
        value = cell.value("ttft_p99") or 0.0
        metric = Metric(value=value, unit="ms", low=value / 9, high=value * 9, confidence=0.95)
        return cell.model_copy(update={"metrics": {"ttft_p99": metric}})

    outcome = search(plan, run_once(vague), lambda _: None, most_runs=5)
    assert len(outcome.cells) == 5
    assert "5 runs were not enough" in conclude(plan, outcome).text


def test_run_without_the_figure_ends_the_search_and_is_no_miss() -> None:
    outcome = search(PLAN, run_once(lambda wanted: cell_of(wanted, e2e_p50=3.0)), lambda _: None)
    assert "ttft_p99 was not measured" in outcome.ended
    assert len(outcome.cells) == 1


def test_each_cell_says_how_surely_it_keeps_the_limits() -> None:
    def sure(value: float, **more: float) -> float | str:
        return probability(cell_of(WANTED, ttft_p99=value, **more), {"ttft_p99": 500.0})

    assert sure(500.0) == pytest.approx(0.5)
    assert sure(200.0) == pytest.approx(0.98)
    assert sure(2000.0) == pytest.approx(0.02)
    two = probability(cell_of(WANTED, ttft_p99=200.0, tpot_p99=90.0), {"ttft_p99": 500.0, "tpot_p99": 50.0})
    assert two == pytest.approx(0.02), "every limit counts"
    failed = cell_of(WANTED, reason="timeouts")
    assert probability(failed, {"ttft_p99": 500.0}) == pytest.approx(0.02), "failed requests keep no limit"


@pytest.mark.parametrize(("edge", "able"), [(21.0, 60.0), (90.0, 60.0), (0.5, 60.0), (21.0, 22.0)])
def test_a_search_goes_on_below_what_the_client_can_send(edge: float, able: float) -> None:
    server = Server(edge)

    def measure_limited(wanted: CellRequest) -> Cell:
        cell = server.measure(wanted)
        late = {"state": "client_limited", "reason": "requests left late"}
        return cell.model_copy(update=late) if (wanted.users or 0) >= able else cell

    outcome = search(PLAN, run_once(measure_limited), lambda _: None)
    finding = conclude(PLAN, outcome)
    most = [level for level in PLAN.levels if level < able]
    assert bool(outcome.ended) == (edge > able / 2), "an edge that may be beyond the client is not found"
    assert outcome.able == len(most) or edge < able / 2, "a load that is not needed is not asked"
    assert abs(outcome.kept - sum(level <= edge for level in most)) <= 1
    assert all(cell.state == "ok" for cell in outcome.cells if (cell.users or 0) < able)
    if edge > able:
        assert f"The highest load that this client can send, {most[-1]:g} users, still keeps" in finding.text
        assert f"At {finding.numbers['client_limited_from']:g} users the client was the limit" in finding.text


LATE = {"state": "client_limited", "reason": "requests left late"}
BUSY = {"state": "busy_machine", "reason": "measured on a busy machine"}


class Disturbed(Server):
    """Whose client is disturbed during some of its runs, counted from the first."""

    def __init__(self, edge: float, runs: set[int], how: dict[str, str]) -> None:
        super().__init__(edge)
        self.runs, self.how = runs, how

    def measure(self, wanted: CellRequest) -> Cell:
        cell = super().measure(wanted)
        return cell.model_copy(update=self.how) if len(self.asked) in self.runs else cell


@pytest.mark.parametrize("how", [LATE, BUSY])
@pytest.mark.parametrize("run", range(1, 9))
@pytest.mark.parametrize("edge", [3.4, 21.0, 90.0])
def test_a_disturbance_of_one_run_hides_no_edge(edge: float, run: int, how: dict[str, str]) -> None:
    server = Disturbed(edge, {run}, how)
    outcome = search(PLAN, run_once(server.measure), lambda _: None)
    finding = conclude(PLAN, outcome)
    assert not outcome.ended
    assert abs(outcome.kept - sum(level <= edge for level in PLAN.levels)) <= 1
    assert "that this client can send" not in finding.text


@pytest.mark.parametrize("how", [LATE, BUSY])
def test_a_limit_below_a_load_that_was_sent_is_not_believed(how: dict[str, str]) -> None:
    """Two tries met it, and yet a higher load was measured before."""
    server = Disturbed(20.0, set(range(2, 40)), how)
    plan = replace(PLAN, levels=(16.0, 32.0, 64.0))
    outcome = search(plan, run_once(server.measure), lambda _: None)
    assert [cell.users for cell in outcome.cells] == [32, 16, 16]
    finding = conclude(plan, outcome)
    assert "can send" not in finding.text
    assert "client_limited_from" not in finding.numbers
    assert outcome.ended
    assert finding.numbers["highest"] is None


def test_a_search_on_a_busy_machine_ends_without_an_edge_and_goes_on_later() -> None:
    ledger = Ledger("run")
    server = Disturbed(90.0, set(range(2, 40)), BUSY)
    outcome = search(PLAN, run_once(server.measure, ledger), lambda _: None)
    assert "busy machine" in outcome.ended
    assert "other work kept the machine busy" in conclude(PLAN, outcome).text
    idle = Server(90.0)
    again = search(PLAN, run_once(idle.measure, ledger), lambda _: None)
    assert not again.ended
    assert {cell.id for cell in again.cells} > {cell.id for cell in outcome.cells if cell.state == "ok"}
    assert not {cell.id for cell in outcome.cells if cell.state == "ok"} & {one.id for one in idle.asked}


def test_a_client_that_cannot_send_the_lowest_load_measures_nothing() -> None:
    late = {"state": "client_limited", "reason": "requests left late"}
    outcome = search(
        PLAN, run_once(lambda wanted: cell_of(wanted, ttft_p99=1.0).model_copy(update=late)), lambda _: None
    )
    assert "is inconclusive about the limits: client_limited" in outcome.ended
    assert {cell.users for cell in outcome.cells} >= {1}
    assert conclude(PLAN, outcome).numbers["highest"] is None


def test_a_load_whose_queue_grows_keeps_no_limit() -> None:
    grown = {"state": "saturated", "reason": "200 requests/s offered, 76 completed"}
    short = cell_of(WANTED, ttft_p99=100.0).model_copy(update=grown)
    assert probability(short, {"ttft_p99": 500.0}) == pytest.approx(0.02)


@given(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["users", "requests/s"]))
def test_where_an_edge_lies_is_said_in_one_form_for_each_case(low: int, high: int, unit: str) -> None:
    """No text is put together of two halves, one of which says that nothing is known."""
    loads = [None, 1.0, 14.0, 17.0]
    text = wording.edge_position(loads[low], loads[high], (1.0, 256.0), unit)
    sure = [load for load in (loads[low], loads[high]) if load is not None]
    forms = ("anywhere: ", "above ", "between ") if not sure or loads[low] else ("below ",)
    assert text.startswith(forms)
    assert all(f"{load:g}" in text for load in sure)
    assert not re.search(r"below .* and below|or above and|\b1 users", text)


def test_an_edge_above_the_highest_load_is_said_once() -> None:
    assert wording.edge_position(17.0, None, (1.0, 17.0), "users") == "above 17 users"


def test_levels_rise_by_a_step_and_hold_both_ends() -> None:
    rising = levels(1, 256, 0.1, whole=True)
    assert (rising[0], rising[-1]) == (1, 256)
    assert list(rising) == sorted(set(rising))
    assert max(later / earlier for earlier, later in itertools.pairwise(rising[20:])) < 1.13
    assert levels(2, 2, 0.1, whole=True) == (2,)


@pytest.mark.parametrize(("low", "high"), [(5, 2), (0, 3)])
def test_a_range_that_is_none_is_refused(low: float, high: float) -> None:
    with pytest.raises(UserError, match="a range of loads rises"):
        levels(low, high, 0.1, whole=True)
