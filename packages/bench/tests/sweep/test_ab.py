"""Invariants of comparisons: the same prompts, in turns, differences beyond chance and none that are not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from bench_support.oracle import cell_of, run_once
from bezel_base.errors import UserError
from bezel_bench.sweep.ab import FIGURES, ComparisonPlan, check_comparison, compare, conclude, differences
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.measurement.journal import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_bench.result.document import Cell

WANTED = CellRequest(512, 128, 40, users=4)


class Servers:
    """Arms that differ by a factor; rounds differ, too, as prompts and the hour do; and each run by chance."""

    def __init__(self, factors: Mapping[str, float], seed: int, noise: float = 0.02) -> None:
        self.factors, self.noise = factors, noise
        self.chances = random.Random(seed)  # noqa: S311 - no secret
        self.asked: list[CellRequest] = []
        self.rounds = [self.chances.lognormvariate(0.0, 0.3) for _ in range(20)]

    def measure(self, wanted: CellRequest) -> Cell:
        self.asked.append(wanted)
        speed = self.factors[wanted.variant] * self.rounds[wanted.repeat]
        figures = {
            name: 100.0 * (speed if "per_second" in name else 1 / speed) * self.chances.lognormvariate(0.0, self.noise)
            for name in FIGURES
        }
        return cell_of(wanted, **figures)


def test_every_round_has_each_arm_once_with_prompts_of_its_own() -> None:
    """All arms of one round get the same prompts."""
    servers = Servers({"a": 1.0, "b": 1.0, "c": 1.0}, 1)
    compare(ComparisonPlan(("a", "b", "c"), WANTED, 4), run_once(servers.measure), lambda _: None)
    for turn in range(4):
        rounds = [one for one in servers.asked if one.repeat == turn]
        assert sorted(one.variant for one in rounds) == ["a", "b", "c"]
        assert len({(one.run, one.seed, one.requests) for one in rounds}) == 1
    assert len({one.run for one in servers.asked}) == 4
    assert len({tuple(one.variant for one in servers.asked[3 * turn : 3 * turn + 3]) for turn in range(4)}) > 1


@pytest.mark.slow
def test_a_difference_is_shown_though_rounds_differ_by_more() -> None:
    plan = ComparisonPlan(("a", "b"), WANTED, 6)
    cells = compare(plan, run_once(Servers({"a": 1.0, "b": 1.2}, 2).measure), lambda _: None).cells
    by_figure = {one.figure: one for one in differences(plan, cells)}
    rate = by_figure["output_tokens_per_second"]
    assert rate.is_shown
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < 0.2 < rate.high
    assert all(one.is_shown for one in by_figure.values())
    assert conclude(plan, cells)[0].name == "difference"


@pytest.mark.slow
def test_no_difference_is_said_to_be_none_shown() -> None:
    plan = ComparisonPlan(("a", "b"), WANTED, 6)
    cells = compare(plan, run_once(Servers({"a": 1.0, "b": 1.0}, 3).measure), lambda _: None).cells
    findings = conclude(plan, cells)
    assert all("no difference shown" in one.text for one in findings)
    assert {one.name for one in findings} == {"no_difference_shown"}


@pytest.mark.slow
def test_equal_arms_differ_by_chance_no_more_often_than_stated() -> None:
    """Four arms and four figures: with intervals for one comparison alone, near half of all trials would show one."""
    plan = ComparisonPlan(("a", "b", "c", "d"), WANTED, 6)
    factors = dict.fromkeys(plan.arms, 1.0)
    trials, shown = 40, 0
    for seed in range(trials):
        cells = compare(plan, run_once(Servers(factors, seed).measure), lambda _: None).cells
        shown += any(one.is_shown for one in differences(plan, cells))
    assert shown <= 5  # one trial in twenty is expected, and six or more have a chance of one in seventy


def test_a_round_that_failed_is_left_out_and_too_few_are_no_comparison() -> None:
    plan = ComparisonPlan(("a", "b"), WANTED, 4)
    servers = Servers({"a": 1.0, "b": 2.0}, 5)

    def fails(wanted: CellRequest) -> Cell:
        cell = servers.measure(wanted)
        bad = wanted.variant == "b" and wanted.repeat in (0, 2)
        return cell_of(wanted, reason="timeouts") if bad else cell

    cells = compare(plan, run_once(fails), lambda _: None).cells
    assert {one.rounds for one in differences(plan, cells)} == {2}
    assert all("too few" in one.text for one in conclude(plan, cells))


@pytest.mark.slow
def test_one_slow_run_hides_no_difference_and_shows_none() -> None:
    def compare_slowed(servers: Servers) -> list[Cell]:
        def measure(wanted: CellRequest) -> Cell:
            cell = servers.measure(wanted)
            if (wanted.variant, wanted.repeat) not in (("a", 2), ("b", 5)):
                return cell
            return cell_of(wanted, **{
                name: (cell.value(name) or 0) * (0.5 if "per_second" in name else 2.0) for name in FIGURES
            })  # fmt: skip

        return compare(plan, run_once(measure), lambda _: None).cells

    plan = ComparisonPlan(("a", "b"), WANTED)
    faster = differences(plan, compare_slowed(Servers({"a": 1.0, "b": 1.1}, 7)))
    assert all(one.is_shown for one in faster)
    equal = differences(plan, compare_slowed(Servers({"a": 1.0, "b": 1.0}, 8)))
    assert not any(one.is_shown for one in equal)
    assert all(abs(one.change or 0) < 0.05 for one in equal)


def test_acceptance_is_reported_by_position_where_there_are_drafts_only() -> None:
    plan = ComparisonPlan(("plain", "mtp"), WANTED, 3)
    servers = Servers({"plain": 1.0, "mtp": 1.1}, 6)

    def drafting(wanted: CellRequest) -> Cell:
        accepted = [0.8, 0.5, 0.25] if wanted.variant == "mtp" else None
        return servers.measure(wanted).model_copy(update={"acceptance": accepted})

    findings = conclude(plan, compare(plan, run_once(drafting), lambda _: None).cells)
    (accepted,) = [one for one in findings if one.name == "acceptance"]
    assert accepted.numbers["arm"] == "mtp"
    assert accepted.text.endswith("80%, 50%, 25%.")


def test_answers_too_short_for_a_draft_are_refused_with_the_reason() -> None:
    with pytest.raises(UserError, match="a one-token response uses no draft"):
        check_comparison(ComparisonPlan(("a", "b"), CellRequest(512, 127, 40, users=4)))
    assert check_comparison(ComparisonPlan(("a", "b"), WANTED)).rounds == 10


def test_all_that_keeps_a_comparison_from_telling_is_said_at_once() -> None:
    with pytest.raises(UserError) as refused:
        check_comparison(ComparisonPlan(("a", "a"), CellRequest(512, 1, 40, users=4), rounds=2))
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize("state", ["client_limited", "busy_machine"])
def test_a_disturbed_turn_is_repeated_once_after_the_rest_of_its_round(state: str) -> None:
    plan = ComparisonPlan(("a", "b", "c"), WANTED, 4)
    quiet = Servers({"a": 1.0, "b": 1.0, "c": 1.0}, 1)
    compare(plan, run_once(quiet.measure), lambda _: None)
    servers = Servers({"a": 1.0, "b": 1.0, "c": 1.0}, 1)

    def disturb(wanted: CellRequest) -> Cell:
        cell = servers.measure(wanted)
        first = len(servers.asked) == 4
        return cell.model_copy(update={"state": state, "reason": "it lagged"}) if first else cell

    result = compare(plan, run_once(disturb), lambda _: None)
    order = [(one.repeat, one.variant) for one in servers.asked]
    whole = [(one.repeat, one.variant) for one in quiet.asked]
    assert order == [*whole[:6], whole[3], *whole[6:]]
    assert {cell.state for cell in result.cells} == {"ok"}
    assert len(result.cells) == 12
    assert (result.unmeasured_text, result.ended) == ("", "")
    assert result.again == [servers.asked[3].id]


def test_a_disturbed_turn_is_kept_where_no_second_try_has_time() -> None:
    plan, servers = ComparisonPlan(("a", "b"), WANTED, 3), Servers({"a": 1.0, "b": 1.0}, 1)

    def disturb(wanted: CellRequest) -> Cell:
        if servers.asked:
            raise KeyboardInterrupt
        return servers.measure(wanted).model_copy(update={"state": "busy_machine", "reason": "it lagged"})

    result = compare(plan, run_once(disturb), lambda _: None)
    assert [cell.state for cell in result.cells] == ["busy_machine"]
    assert result.ended


@pytest.mark.parametrize(
    ("state", "text"), [("client_limited", "the client was the limit"), ("busy_machine", "other work kept the machine")]
)
def test_a_turn_disturbed_twice_is_said_and_measured_by_the_next_run(state: str, text: str) -> None:
    plan, ledger = ComparisonPlan(("a", "b"), WANTED, 3), Ledger("run")
    servers = Servers({"a": 1.0, "b": 1.0}, 1)

    def disturb(wanted: CellRequest) -> Cell:
        cell = servers.measure(wanted)
        bad = wanted.repeat == 1 and wanted.variant == "b"
        return cell.model_copy(update={"state": state, "reason": "it lagged"}) if bad else cell

    result = compare(plan, run_once(disturb, ledger), lambda _: None)
    assert len(servers.asked) == 7
    assert text in result.unmeasured_text
    assert any("tried anew by the next run" in note for note in result.notes)
    later = Servers({"a": 1.0, "b": 1.0}, 1)
    again = compare(plan, run_once(later.measure, ledger), lambda _: None)
    assert [(one.repeat, one.variant) for one in later.asked] == [(1, "b")]
    assert again.unmeasured_text == ""
