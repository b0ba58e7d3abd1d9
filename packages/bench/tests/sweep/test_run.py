"""Invariants of a sweep: what is asked, what never is, what it may take, and what is said of every cell."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bench_support.oracle import RATE, Oracle, cell_of
from bench_support.rendered import text_of
from bench_support.results import manifest
from bezel_base.errors import UserError
from bezel_bench.cell.build_cell import client_figures
from bezel_bench.commands.render.tables import grid_blocks
from bezel_bench.result.columns import Columns
from bezel_bench.result.document import Result
from bezel_bench.result.sample import ClientHealth
from bezel_bench.sweep.grid import Bounds, Grid
from bezel_bench.sweep.inference.knees import knees
from bezel_bench.sweep.measurement.budget import Limits
from bezel_bench.sweep.measurement.journal import Journal
from bezel_bench.sweep.next_cell import KnownCells, next_cell, sweep_order
from bezel_bench.sweep.run import LOST, Sweep, run_sweep
from bezel_bench.sweep.summarize import conclude

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

    from bezel_bench.result.document import Cell
    from bezel_bench.sweep.cell_request import CellRequest
    from bezel_bench.sweep.run import Ended, Progress

GRID = Grid((64, 256, 1024, 4096, 8192), (1, 8, 32, 64, 128, 256), output_tokens=1)
NO_BOUNDS, NO_LIMITS = Bounds(), Limits()
HALF = Limits(requests=GRID.full_requests() // 2)


def saturating(context: int, users: int) -> float:
    return min(users * 2.0, 40.0 - users * 0.01) / (1 + context / 2000)


def sweep_with(
    folder: Path, oracle: Oracle, bounds: Bounds = NO_BOUNDS, limits: Limits = NO_LIMITS, *, full: bool = False
) -> tuple[Ended, list[Progress]]:
    shown: list[Progress] = []
    with Journal(folder / "journal", {}, "run") as journal:
        sweep = Sweep(GRID, bounds, limits, RATE, full=full)
        return run_sweep(sweep, oracle.measure, journal, oracle.clock, shown.append), shown


def test_a_full_sweep_asks_every_cell_once(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    ended, _ = sweep_with(tmp_path, oracle, full=True)
    assert sorted({(one.context_tokens, one.users) for one in oracle.asked}) == [
        (context, users) for context in GRID.contexts for users in GRID.users
    ]
    assert len(oracle.asked) == len(GRID.places())
    conclusion = conclude(ended)
    assert not conclusion.inferred
    assert len(conclusion.cells) == len(GRID.places())


def test_an_adaptive_sweep_asks_few_requests_and_infers_the_rest(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    ended, _ = sweep_with(tmp_path, oracle, limits=HALF)
    conclusion = conclude(ended)
    assert sum(one.requests for one in oracle.asked) <= 0.5 * GRID.full_requests()
    assert len(conclusion.cells) + len(conclusion.inferred) == len(GRID.places()), "each cell is there once"
    assert conclusion.inferred
    errors = sorted(abs(one.value / saturating(one.context_tokens, one.users) - 1) for one in conclusion.inferred)
    assert errors[len(errors) // 2] < 0.15, "between contexts four steps of two apart the throughput bends"
    knees = {one.numbers["context_tokens"]: one.numbers["users"] for one in conclusion.findings if one.name == "knee"}
    assert set(knees) >= {64, 1024, 8192}, "those that are measured at each number of users"
    assert all(users in (8, 32, 64) for users in knees.values())


RISING = {
    (64, 1): 24.5, (64, 8): 87.5, (64, 32): 159.0,
    (256, 1): 243.0, (256, 8): 926.0,
    (1024, 32): 2872.0,
}  # fmt: skip


def test_where_throughput_still_rises_no_knee_is_named_and_that_is_said() -> None:
    places = {(GRID.contexts.index(context), GRID.users.index(users)): value
              for (context, users), value in RISING.items()}  # fmt: skip
    findings = knees(GRID, RATE, places)
    assert not [one for one in findings if one.name == "knee"]
    texts = {one.numbers["context_tokens"]: one.text for one in findings if one.name == "no_plateau"}
    assert set(texts) == {64, 256, 1024}
    assert "24.5 at 1 user, 87.5 at 8 users, 159 at 32 users" in texts[64]
    assert "only 1 of 3 numbers of users up to 32 were measured" in texts[1024]
    cells = [cell_of(GRID.request(place), **{RATE: value}) for place, value in places.items()]
    shown = text_of(
        grid_blocks(
            Result(kind="sweep", nature="measured", manifest=manifest("rising"), cells=cells, findings=findings), RATE
        )
    )
    assert "no plateau was seen" in shown
    assert "of the plateau" not in shown


def test_a_context_has_a_knee_where_its_own_cells_show_the_plateau_only() -> None:
    flat = {column: min(2.0 * users, 40.0) for column, users in enumerate(GRID.users)}
    rising = {(1, 0): 2.0, (1, 1): 16.0}

    def contexts_with_knees(*rows: int) -> list[object]:
        values = rising | {(row, column): value for row in rows for column, value in flat.items()}
        return [one.numbers["context_tokens"] for one in knees(GRID, RATE, values) if one.name == "knee"]

    assert contexts_with_knees() == []
    assert contexts_with_knees(0, 2) == [64, 1024]


def test_what_a_limit_left_out_was_not_asked_and_is_not_called_impossible(tmp_path: Path) -> None:
    conclusion = conclude(sweep_with(tmp_path, Oracle(saturating), limits=Limits(seconds=12.0), full=True)[0])
    unasked = [cell for cell in conclusion.cells if not cell.requests]
    assert unasked
    assert {cell.state for cell in unasked} == {"not_asked"}
    assert all(cell.reason.startswith("not requested: the limits allow no further cell") for cell in unasked)
    result = Result(kind="sweep", nature="measured", manifest=manifest("cut"), cells=conclusion.cells)
    table = text_of(grid_blocks(result, RATE)).splitlines()
    assert sum(line.split().count("?") for line in table[:9]) == len(unasked)
    assert not [line for line in table[3:9] if "-" in line.split()]


@pytest.mark.slow
def test_users_that_the_client_cannot_send_for_are_measured_no_further_up(tmp_path: Path) -> None:
    """The sweep continues below them, and at contexts at which users send less often."""

    class Busy(Oracle):
        def measure(self, wanted: CellRequest) -> Cell:
            cell = super().measure(wanted)
            late = {"state": "client_limited", "reason": "requests left late"}
            busy = wanted.context_tokens <= 256 and (wanted.users or 0) >= 64
            return cell.model_copy(update=late) if busy else cell

    oracle = Busy(lambda context, users: users * 2.0 / (1 + context / 2000) / (1 + users / 500))
    conclusion = conclude(sweep_with(tmp_path, oracle)[0])
    limited = [cell for cell in conclusion.cells if cell.state == "client_limited"]
    assert 1 <= len(limited) <= 4
    spared = [cell for cell in conclusion.cells if "was too much for the client already" in cell.reason]
    assert {cell.state for cell in spared} == {"not_asked"}
    assert {cell.context_tokens for cell in spared} <= {64, 256}
    assert [cell for cell in conclusion.cells if cell.state == "ok" and (cell.context_tokens or 0) <= 256]
    assert not [one for one in conclusion.inferred if one.context_tokens == 64 and one.users > 64]


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("http://x takes no connection.")])
def test_a_sweep_that_is_ended_or_loses_its_server_tells_what_it_has(tmp_path: Path, error: BaseException) -> None:
    class Ends(Oracle):
        left = 3

        def measure(self, wanted: CellRequest) -> Cell:
            self.left -= 1
            if self.left < 0:
                raise error
            return super().measure(wanted)

    ended, _ = sweep_with(tmp_path, Ends(saturating), full=True)
    assert ended.early
    conclusion = conclude(ended)
    assert [cell.state for cell in conclusion.cells].count("ok") == 3
    assert [cell.state for cell in conclusion.cells].count("not_asked") == len(GRID.places()) - 3
    assert str(error).rstrip(".") in conclusion.notes[0]
    whole, _ = sweep_with(tmp_path, Oracle(saturating), full=True)
    assert not whole.early
    assert {cell.state for cell in conclude(whole).cells} == {"ok"}
    oracle = Ends(saturating)
    oracle.left = 0
    (tmp_path / "other").mkdir()
    with pytest.raises(type(error)):
        sweep_with(tmp_path / "other", oracle, full=True)


def test_every_second_context_is_asked_fewest_users_first(tmp_path: Path) -> None:
    """The contexts between take turns, one at each number of users."""
    oracle = Oracle(saturating)
    sweep_with(tmp_path, oracle, limits=HALF)
    asked = [(one.context_tokens, one.users) for one in oracle.asked]
    assert asked[:4] == [(64, 1), (1024, 1), (8192, 1), (256, 1)]
    assert asked[4:8] == [(64, 8), (1024, 8), (8192, 8), (4096, 8)], "the contexts between take turns"
    assert [users for _, users in asked] == sorted(users for _, users in asked)


def test_an_even_number_of_contexts_has_its_last_one_asked() -> None:
    """Without it, the longest context would have no figure: nothing is carried beyond what was measured."""
    order = sweep_order([(row, column) for row in range(6) for column in range(4)])
    assert {(5, column) for column in range(4)} <= set(order)
    assert {row for row, _ in order} == set(range(6))
    assert len(order) == 4 * 5
    kept_out = sweep_order([(row, column) for row in (1, 3, 4) for column in range(2) if (row, column) != (4, 1)])
    assert set(kept_out) == {(1, 0), (4, 0), (3, 0), (1, 1), (3, 1)}, "of the contexts that fit, and no other cell"


def test_a_sweep_of_all_requests_measures_the_cells_between_too(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    conclusion = conclude(sweep_with(tmp_path, oracle, limits=Limits(requests=GRID.full_requests()))[0])
    assert len(oracle.asked) == len(GRID.places())
    assert not conclusion.inferred


def test_a_cell_without_a_measured_neighbour_on_each_side_says_so(tmp_path: Path) -> None:
    oracle = Oracle(lambda context, users: None if (context, users) == (8192, 8) else saturating(context, users))
    conclusion = conclude(sweep_with(tmp_path, oracle, limits=HALF)[0])
    (cell,) = [one for one in conclusion.cells if (one.context_tokens, one.users) == (4096, 256)]
    assert cell.state == "not_asked"
    assert "no measured cell beside it on both sides, so it is not inferred" in cell.reason
    asked = {(one.context_tokens, one.users) for one in oracle.asked}
    for point in conclusion.inferred:
        at_users = [context for context, users in asked if users == point.users]
        at_context = [users for context, users in asked if context == point.context_tokens]
        assert (min(at_users) < point.context_tokens < max(at_users)) or (
            min(at_context) < point.users < max(at_context)
        )


def test_ranges_are_told_and_a_figure_without_one_says_why(tmp_path: Path) -> None:
    conclusion = conclude(sweep_with(tmp_path, Oracle(saturating), limits=HALF)[0])
    (surface,) = [one for one in conclusion.findings if one.name == "surface"]
    ranged = [one for one in conclusion.inferred if one.low is not None]
    bare = [one for one in conclusion.inferred if one.low is None]
    assert surface.numbers["with_range"] == len(ranged)
    assert all("a 90 % range needs 9" in one.why for one in bare)
    assert not [one for one in ranged if one.why]
    assert {one.errors >= 9 for one in ranged} <= {True}
    (tmp_path / "few").mkdir()
    few = conclude(sweep_with(tmp_path / "few", Oracle(saturating), limits=Limits(requests=300))[0])
    assert few.inferred
    assert {one.low for one in few.inferred} == {None}
    result = Result(
        kind="sweep", nature="measured", manifest=manifest("few"), cells=few.cells, inferred=few.inferred,
        findings=few.findings,
    )  # fmt: skip
    shown = text_of(grid_blocks(result, RATE))
    assert "~~" in shown.partition("~ inferred;")[0]
    assert "fewer than 9 cells were measured between others" in " ".join(shown.split())


@pytest.mark.parametrize("full", [True, False])
def test_a_cell_that_cannot_be_is_never_asked_and_says_the_rule(tmp_path: Path, full: bool) -> None:
    oracle = Oracle(saturating)
    bounds = Bounds(max_model_len=8192, kv_tokens=5000, capacity=64, unmakable={64: "too short"})
    conclusion = conclude(sweep_with(tmp_path, oracle, bounds, full=full)[0])
    assert {one.context_tokens for one in oracle.asked} == {256, 1024, 4096}
    assert max(one.users or 0 for one in oracle.asked) == 64
    reasons = {(cell.context_tokens, cell.users): cell for cell in conclusion.cells}
    assert "8192 prompt + 1 output tokens = 8193 > max_model_len 8192" in reasons[8192, 1].reason
    assert reasons[64, 1].reason == "too short"
    assert (reasons[256, 128].state, reasons[8192, 1].state) == ("queueing", "infeasible")
    assert "64" in reasons[256, 128].reason
    assert not [one for one in conclusion.inferred if one.users > 64 or one.context_tokens in (64, 8192)]


def test_what_just_fits_is_asked(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    sweep_with(tmp_path, oracle, Bounds(max_model_len=8193, kv_tokens=8193, capacity=256), full=True)
    assert len(oracle.asked) == len(GRID.places())


def test_an_invalid_cell_is_left_out_and_listed(tmp_path: Path) -> None:
    def rate_undrained(context: int, users: int) -> float:
        return 0.05 if (context, users) == (1024, 1) else saturating(context, users)

    conclusion = conclude(sweep_with(tmp_path, Oracle(rate_undrained), full=True)[0])
    (excluded,) = [one for one in conclusion.findings if one.name == "excluded"]
    assert excluded.cells == ["c1024-u1"]
    assert "as much for each of more users" in excluded.text
    clean = tmp_path / "clean"
    clean.mkdir()
    assert not [
        one for one in conclude(sweep_with(clean, Oracle(saturating), full=True)[0]).findings if one.name == "excluded"
    ]


def test_heavier_loads_than_one_that_failed_are_not_asked(tmp_path: Path) -> None:
    oracle = Oracle(lambda context, users: None if context >= 1024 and users >= 64 else saturating(context, users))
    conclusion = conclude(sweep_with(tmp_path, oracle)[0])
    failed = [cell for cell in conclusion.cells if cell.state == "failed"]
    assert 2 <= len(failed) <= 5
    spared = [cell for cell in conclusion.cells if "failed already" in cell.reason]
    assert spared
    assert not [one for one in conclusion.inferred if one.context_tokens >= 1024 and one.users >= 64 and spared and
                (one.context_tokens, one.users) in {(cell.context_tokens, cell.users) for cell in spared}]  # fmt: skip


def test_a_failure_that_a_heavier_load_disproves_keeps_nothing_out(tmp_path: Path) -> None:
    oracle = Oracle(lambda context, users: None if (context, users) == (64, 8) else saturating(context, users))
    conclusion = conclude(sweep_with(tmp_path, oracle, limits=HALF)[0])
    assert not [cell for cell in conclusion.cells if "failed already" in cell.reason]
    assert len(conclusion.inferred) == 5


def test_requests_that_are_left_go_to_cells_that_cannot_be_inferred() -> None:
    places = {(row, column) for row in range(3) for column in range(3)}
    asked = {place for place in places if place[1] == 0 or place == (0, 1)} - {(1, 0)}
    known_cells = KnownCells({}, (), asked, places)
    assert next_cell(known_cells, {(1, 0), (1, 1)}, inferable={(1, 0)}) == (1, 0), "in the order"
    known_cells = KnownCells({}, (), asked | {(1, 0)}, places)
    assert next_cell(known_cells, {(1, 2)}, inferable={(1, 2)}) == (1, 2)


def test_failures_of_single_users_keep_no_larger_number_out(tmp_path: Path) -> None:
    """A client's first cell may fail at every context: that says nothing of eight users."""
    oracle = Oracle(lambda context, users: None if users == 1 and context >= 256 else saturating(context, users))
    conclusion = conclude(sweep_with(tmp_path, oracle, limits=HALF)[0])
    assert not [cell for cell in conclusion.cells if "failed already" in cell.reason]
    assert [one for one in oracle.asked if one.context_tokens == 8192 and one.users == 32]


def test_a_limit_of_time_is_kept_and_no_cell_begun_that_would_break_it(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    ended, shown = sweep_with(tmp_path, oracle, limits=Limits(seconds=120.0), full=True)
    assert oracle.now <= 120.0
    assert "120" in ended.reason.replace("2 minutes", "120")
    assert len(oracle.asked) < len(GRID.places())
    assert shown[-1].seconds_left == 0.0


def test_a_limit_in_dollars_is_that_of_time_at_the_price(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    ended, shown = sweep_with(tmp_path, oracle, limits=Limits(usd=0.05, usd_per_hour=1.5), full=True)
    assert 0 < oracle.now <= 120.0
    assert (shown[-1].usd or 0) <= 0.05
    assert "USD" in ended.reason


def test_an_unknown_price_limits_nothing_and_is_said(tmp_path: Path) -> None:
    ended, shown = sweep_with(tmp_path, Oracle(saturating), limits=Limits(usd=0.0001), full=True)
    assert len(ended.status.cells) == len(GRID.places())
    assert shown[-1].usd is None
    assert any("is unknown" in note for note in conclude(ended).notes)


def test_the_share_of_requests_is_kept(tmp_path: Path) -> None:
    oracle = Oracle(saturating)
    most = GRID.full_requests() // 5
    sweep_with(tmp_path, oracle, limits=Limits(requests=most))
    assert sum(one.requests for one in oracle.asked) <= most


def test_a_server_that_is_gone_ends_the_sweep(tmp_path: Path) -> None:
    oracle = Oracle(lambda _context, _users: None)
    ended, _ = sweep_with(tmp_path, oracle, full=True)
    assert LOST in ended.reason
    assert len(oracle.asked) == 6
    conclusion = conclude(ended)
    assert not conclusion.inferred, "of nothing follows nothing"
    assert len(conclusion.cells) == len(GRID.places())


def test_a_server_that_hangs_ends_the_sweep_sooner(tmp_path: Path) -> None:
    """Each such cell takes as long as a request may."""
    asked = []

    def hangs(wanted: CellRequest) -> Cell:
        asked.append(wanted)
        client = client_figures(ClientHealth(silent_seconds=300.0), Columns.of([]))
        return cell_of(wanted, reason="the server hangs").model_copy(update={"client": client})

    with Journal(tmp_path / "journal", {}, "run") as journal:
        ended = run_sweep(Sweep(GRID, Bounds(), Limits(), RATE, None), hangs, journal, float, lambda _: None)
    assert LOST in ended.reason
    assert len(asked) == 2


def test_only_cells_that_nobody_answered_are_asked_again_by_the_next_run(tmp_path: Path) -> None:
    def down(wanted: CellRequest) -> Cell:
        return cell_of(wanted, reason="refused").model_copy(update={"failures": {"refused": wanted.requests}})

    sweep = Sweep(GRID, Bounds(), Limits(), RATE, full=True)
    late = Oracle(lambda context, users: None if users == 256 else saturating(context, users))
    with Journal(tmp_path / "journal", {}, "run") as journal:
        ended = run_sweep(sweep, down, journal, late.clock, lambda _: None)
    assert LOST in ended.reason
    for expected in (len(GRID.places()), 0):
        late.asked.clear()
        with Journal(tmp_path / "journal", {}, "run") as journal:
            ended = run_sweep(sweep, late.measure, journal, late.clock, lambda _: None)
        assert len(late.asked) == expected, "a load that timed out has its figure, one that found no server has none"
    assert sum(cell.state == "failed" for cell in ended.status.cells.values()) == len(GRID.contexts)


def test_no_two_cells_and_no_second_attempt_send_the_same_prompts(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    oracle = Oracle(saturating)

    def stops(wanted: CellRequest) -> object:
        oracle.measure(wanted)
        if len(oracle.asked) == 4:
            raise StoppedError
        return cell_of(wanted, **{RATE: saturating(wanted.context_tokens, wanted.users or 0)})

    sweep = Sweep(GRID, Bounds(), Limits(), RATE, full=True)
    with pytest.raises(StoppedError), Journal(tmp_path / "journal", {}, "run") as journal:
        run_sweep(sweep, stops, journal, oracle.clock, lambda _: None)  # type: ignore[arg-type]
    with Journal(tmp_path / "journal", {}, "run") as journal:
        run_sweep(sweep, oracle.measure, journal, oracle.clock, lambda _: None)
    runs = [one.run for one in oracle.asked]
    assert len(runs) == len(GRID.places()) + 1
    assert len(set(runs)) == len(runs)


def test_a_cell_is_begun_while_its_estimate_fits_into_what_is_left() -> None:
    limits = Limits(seconds=600.0, usd=1.0, usd_per_hour=12.0)  # 300 s for a dollar: the tighter of both
    assert limits.keeps_out(290.0, 0, 10.0, 1) == ""
    assert "about 11 s, with 10 s left" in limits.keeps_out(290.0, 0, 11.0, 1)
    assert limits.keeps_out(290.0, 0, None, 1) == "", "unknown, and something is left"
    assert "an unknown time" in limits.keeps_out(300.0, 0, None, 1)
    assert "600 s left of 10 minutes" in Limits(seconds=600.0, usd=1.0).keeps_out(0.0, 0, 601.0, 1)
    assert Limits(usd=1.0).keeps_out(1e9, 0, 1e9, 1) == "", "a price that is not known limits nothing"
    assert Limits(requests=100).keeps_out(0.0, 90, 1.0, 10) == ""
    assert "11 requests more" in Limits(requests=100).keeps_out(0.0, 90, 1.0, 11)


LATE = {"state": "client_limited", "reason": "its event loop lagged by 11.2 ms (p99), above 10 ms"}
BUSY = {"state": "busy_machine", "reason": "measured on a busy machine"}


class Disturbed(Oracle):
    """An oracle whose client is disturbed during some of its loads, by their number from 1."""

    def __init__(self, figures: Callable[[int, int], float | None], loads: Container[int], how: dict[str, str]) -> None:
        super().__init__(figures)
        self.loads, self.how = loads, how

    def measure(self, wanted: CellRequest) -> Cell:
        cell = super().measure(wanted)
        return cell.model_copy(update=self.how) if len(self.asked) in self.loads else cell


@pytest.mark.slow
@pytest.mark.parametrize("how", [LATE, BUSY])
@pytest.mark.parametrize("full", [True, False])
def test_a_passing_disturbance_costs_a_sweep_no_cell(tmp_path: Path, how: dict[str, str], full: bool) -> None:
    oracle = Disturbed(saturating, {1, 2, 5, 6, 9}, how)
    ended, _ = sweep_with(tmp_path, oracle, full=full)
    conclusion = conclude(ended)
    assert {cell.state for cell in conclusion.cells} == {"ok"}
    assert len(conclusion.cells) == len(GRID.places())
    assert len(oracle.asked) == len(GRID.places()) + 5
    assert (ended.early, ended.reason) == (False, "every feasible cell is measured")
    prompts = [one.run for one in oracle.asked]
    assert len(set(prompts)) == len(prompts), "a second try has other prompts"
    loads = [(one.context_tokens, one.users) for one in oracle.asked]
    assert all(first not in loads[place + 1 : place + 4] for place, first in enumerate(loads[:6])), "tried later"


@pytest.mark.parametrize("full", [True, False])
def test_a_limit_of_the_client_needs_two_tries_and_is_said(tmp_path: Path, full: bool) -> None:
    class Limited(Oracle):
        def measure(self, wanted: CellRequest) -> Cell:
            cell = super().measure(wanted)
            return cell.model_copy(update=LATE) if (wanted.users or 0) >= 128 else cell

    oracle = Limited(lambda context, users: users * 2.0 / (1 + context / 2000) / (1 + users / 500))
    ended, _ = sweep_with(tmp_path, oracle, full=full)
    tries = Counter((one.context_tokens, one.users) for one in oracle.asked)
    assert {tries[context, 128] for context in GRID.contexts} == {2}
    assert {tries[context, users] for context in GRID.contexts for users in (1, 8, 32, 64)} == {1}
    assert ended.early, "the next run of the command tries them anew"
    assert "not all are measured" in ended.reason
    conclusion = conclude(ended)
    assert any("tried anew by the next run of the same command" in note for note in conclusion.notes)
    assert not [one for one in conclusion.inferred if one.users >= 128]
    assert {cell.state for cell in conclusion.cells if (cell.users or 0) < 128} == {"ok"}


def test_a_busy_machine_ends_a_sweep_and_the_next_run_goes_on(tmp_path: Path) -> None:
    busy = Disturbed(saturating, range(4, 1000), BUSY)
    ended, _ = sweep_with(tmp_path, busy, full=True)
    assert len(busy.asked) == 9
    assert ended.early
    assert "busy during the last 6 loads" in ended.reason
    idle = Oracle(saturating)
    ended, _ = sweep_with(tmp_path, idle, full=True)
    assert len(idle.asked) == len(GRID.places()) - 3, "what was measured is not measured again"
    assert (ended.early, {cell.state for cell in conclude(ended).cells}) == (False, {"ok"})


def test_second_tries_stay_within_the_share_of_requests(tmp_path: Path) -> None:
    oracle = Disturbed(saturating, {2, 3}, LATE)
    most = GRID.full_requests() // 5
    ended, _ = sweep_with(tmp_path, oracle, limits=Limits(requests=most))
    assert ended.status.sent_requests <= most
    assert not [cell for cell in ended.status.cells.values() if cell.state != "ok"]
