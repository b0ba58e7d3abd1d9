"""Invariants of searches and comparisons with limits and over several processes: kept, gone on with, nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench_support.oracle import RATE, cell_of, run_once
from bezel_base.errors import Problem, UserError
from bezel_bench.sweep.ab import ComparisonPlan, compare
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.goodput import Search, conclude, levels, search
from bezel_bench.sweep.grid import Bounds, Grid
from bezel_bench.sweep.measurement.budget import Limits, notes
from bezel_bench.sweep.measurement.journal import Journal, Ledger
from bezel_bench.sweep.run import Sweep, run_sweep

if TYPE_CHECKING:
    from pathlib import Path

    from bezel_bench.result.document import Cell
    from bezel_bench.sweep.ab import ComparisonOutcome
    from bezel_bench.sweep.goodput import Found

PLAN = Search(CellRequest(64, 128, 60, users=1), levels(1, 64, 0.2, whole=True), {"ttft_p99": 500.0})
ARMS = ComparisonPlan(("a", "b"), CellRequest(64, 128, 16, users=2), 4)
NO_LIMITS = Limits()


class Server:
    """Answers a user in so many seconds, while a clock runs; like a real load, no cell outlasts its deadline."""

    def __init__(self, seconds: float = 1.0, least: int = 2) -> None:
        self.seconds, self.least, self.now = seconds, least, 0.0
        self.asked: list[CellRequest] = []

    def measure(self, wanted: CellRequest) -> Cell:
        self.asked.append(wanted)
        took = wanted.requests / max(self.least, wanted.users or 0) * self.seconds
        left = took if wanted.deadline_seconds is None else wanted.deadline_seconds
        self.now += min(took, left)
        cut = "timeouts" if took > left else ""
        return cell_of(wanted, reason=cut, ttft_p99=62.0 * (wanted.users or 0), **{RATE: 1.0})

    def clock(self) -> float:
        return self.now


def search_with(server: Server, ledger: Ledger, limits: Limits = NO_LIMITS, runs: int = 16) -> Found:
    return search(PLAN, run_once(server.measure, ledger, limits, server.clock), lambda _: None, runs)


def compare_with(server: Server, ledger: Ledger, limits: Limits = NO_LIMITS) -> ComparisonOutcome:
    return compare(ARMS, run_once(server.measure, ledger, limits, server.clock), lambda _: None)


def test_a_search_that_goes_on_takes_the_way_of_one_that_never_stopped(tmp_path: Path) -> None:
    whole = search_with(Server(), Ledger("whole"))
    assert len(whole.cells) > 3
    server = Server()
    for runs in (1, 3, 16, 16):
        with Journal(tmp_path / "journal", {}, "run") as journal:
            last = search_with(server, journal, runs=runs)
    assert [cell.id for cell in last.cells] == [cell.id for cell in whole.cells] == [one.id for one in server.asked]
    assert conclude(PLAN, last) == conclude(PLAN, whole), "time and figures, too"


@pytest.mark.parametrize("limits", [Limits(seconds=30.0), Limits(usd=0.01, usd_per_hour=1.2)])
def test_a_search_keeps_its_limits_over_all_processes_together(tmp_path: Path, limits: Limits) -> None:
    server = Server()
    for _ in range(3):
        with Journal(tmp_path / "journal", {}, "run") as journal:
            last = search_with(server, journal, limits)
            assert server.now == journal.spent_seconds <= 30.0
            asked = len(server.asked)
    assert 0 < asked == len(server.asked) < len(search_with(Server(), Ledger("whole")).cells)
    assert "the limits allow no further run" in last.ended
    assert "0.5 minutes" in last.ended or "0.01 USD at 1.2 USD an hour" in last.ended
    assert "It ended early" in conclude(PLAN, last).text


def test_a_search_whose_limits_hold_all_of_it_is_as_one_without() -> None:
    free, bound = search_with(Server(), Ledger("run")), search_with(Server(), Ledger("run"), Limits(seconds=3600.0))
    assert free == bound
    assert not bound.ended


def test_a_price_that_is_not_known_limits_nothing_and_is_reported() -> None:
    limits = Limits(usd=1e-9)
    last = search_with(Server(), Ledger("run"), limits)
    assert not last.ended
    assert last.usd is None
    assert "no limit in USD was applied" in notes(limits, last.lost_seconds)[0]
    assert not notes(Limits(usd=1e-9, usd_per_hour=1.0), 0.0)


def test_what_a_limit_cut_off_counts_for_nothing_and_is_asked_again(tmp_path: Path) -> None:
    server = Server(seconds=100.0)
    with Journal(tmp_path / "journal", {}, "run") as journal:
        first = search_with(server, journal, Limits(seconds=50.0))
    assert "was cut off: the limit of 0.833333 minutes is reached" in first.ended
    assert not first.cells, "its timeouts are none of the load's"
    with Journal(tmp_path / "journal", {}, "run") as journal:
        second = search_with(server, journal)
    assert not second.ended
    assert [one.users for one in server.asked[:2]] == [server.asked[0].users] * 2
    assert server.asked[0].run != server.asked[1].run
    assert second.lost_seconds == 50.0


def test_a_sweep_asks_again_what_a_limit_cut_off(tmp_path: Path) -> None:
    server, grid = Server(seconds=100.0, least=1), Grid((64,), (1, 2), output_tokens=1)
    for limits, asked in ((Limits(seconds=50.0), 1), (NO_LIMITS, 2), (NO_LIMITS, 0)):
        server.asked.clear()
        with Journal(tmp_path / "journal", {}, "run") as journal:
            sweep = Sweep(grid, Bounds(), limits, RATE, None)
            ended = run_sweep(sweep, server.measure, journal, server.clock, lambda _: None)
        assert len(server.asked) == asked
    assert {cell.state for cell in ended.status.cells.values()} == {"ok"}
    assert ended.status.lost == 50.0


def test_a_run_that_nobody_answered_ends_the_search_and_is_asked_again(tmp_path: Path) -> None:
    server = Server()

    def down(wanted: CellRequest) -> Cell:
        return cell_of(wanted, reason="refused").model_copy(update={"failures": {"refused": wanted.requests}})

    with Journal(tmp_path / "journal", {}, "run") as journal:
        ended = search(PLAN, run_once(down, journal), lambda _: None).ended
    assert "is inconclusive about the limits: the server was unreachable" in ended
    assert conclude(PLAN, search(PLAN, run_once(down, Ledger("run")), lambda _: None)).text.startswith(
        "The highest load that keeps"
    )
    with Journal(tmp_path / "journal", {}, "run") as journal:
        assert not search_with(server, journal).ended


def test_an_interrupt_ends_a_search_and_a_comparison_with_what_is_known(tmp_path: Path) -> None:
    def interrupt(after: int) -> Server:
        server = Server()
        measure = server.measure

        def stops(wanted: CellRequest) -> Cell:
            if len(server.asked) == after:
                raise KeyboardInterrupt
            return measure(wanted)

        server.measure = stops  # type: ignore[method-assign]
        return server

    early = search_with(interrupt(2), Ledger("run"))
    assert (len(early.cells), early.ended) == (2, "it was interrupted")
    assert conclude(PLAN, search_with(interrupt(0), Ledger("run"))).text.startswith("Nothing was measured (0 runs)")
    with Journal(tmp_path / "journal", {}, "run") as journal:
        first = compare_with(interrupt(3), journal)
    assert (len(first.cells), first.ended) == (3, "it was interrupted")
    server = Server()
    with Journal(tmp_path / "journal", {}, "run") as journal:
        second = compare_with(server, journal)
    assert len(second.cells) == 8
    assert len(server.asked) == 5
    assert second.again == [server.asked[0].id]
    assert second.again[0] in second.notes[0]


def test_lost_server_ends_a_search_and_a_comparison_with_what_is_known(tmp_path: Path) -> None:
    """As before the first load nothing is known, the error is the user's then."""

    def lose(after: int, *problems: str | Problem) -> Server:
        problems = problems or ("http://x takes no connection.",)
        server = Server()
        measure = server.measure

        def stops(wanted: CellRequest) -> Cell:
            if len(server.asked) == after:
                raise UserError(*problems)
            return measure(wanted)

        server.measure = stops  # type: ignore[method-assign]
        return server

    early = search_with(lose(2), Ledger("run"))
    assert len(early.cells) == 2
    assert early.ended.endswith("could not be measured: http://x takes no connection")
    problem = Problem("--url", "http://x", "it takes no connection.", "start it.")
    early = search_with(lose(2, problem), Ledger("run"))
    assert early.ended.endswith("measured: --url = http://x: it takes no connection. Repair: start it"), "on one line"
    with Journal(tmp_path / "journal", {}, "run") as journal:
        first = compare_with(lose(3), journal)
    assert len(first.cells) == 3
    with Journal(tmp_path / "journal", {}, "run") as journal:
        assert len(compare_with(Server(), journal).cells) == 8
    for ends in (search_with, compare_with):
        with pytest.raises(UserError, match="takes no connection"):
            ends(lose(0), Ledger("run"))


def test_load_is_asked_again_where_the_server_died_not_where_it_failed(tmp_path: Path) -> None:
    wanted = CellRequest(64, 16, 100, users=4)
    for failures, again in (({"refused": 8, "truncated": 8}, 1), ({"http_5xx": 20, "refused": 1}, 0)):
        with Journal(tmp_path / f"journal-{again}", {}, "run") as journal:
            broken = cell_of(wanted, reason="failed").model_copy(update={"failures": failures})
            run_once(lambda _, broken=broken: broken, journal).measure(wanted, None)  # type: ignore[misc]
            assert (wanted.id not in run_once(lambda _: broken, journal).conclusive_runs) == again  # noqa: B023


def test_a_comparison_keeps_its_limits_and_goes_on_with_higher_ones(tmp_path: Path) -> None:
    server = Server()
    with Journal(tmp_path / "journal", {}, "run") as journal:
        first = compare_with(server, journal, Limits(usd=0.01, usd_per_hour=1.2))  # 30 s, a turn takes 8
    assert (len(first.cells), server.now) == (3, 24.0)
    assert first.notes[0].startswith("The comparison ended early: the limits allow no further turn")
    with Journal(tmp_path / "journal", {}, "run") as journal:
        second = compare_with(server, journal, Limits(seconds=64.0))
    assert not second.notes
    assert [one.id for one in server.asked] == [cell.id for cell in second.cells]
    assert [[one.run for one in server.asked if one.repeat == turn] for turn in range(4)] == [
        [f"run-{turn}-0"] * 2 for turn in range(4)
    ], "both arms of a round have the same prompts, also those of another process"


def test_notes_and_servers_outlast_the_process(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal", {}, "first") as journal:
        for _ in range(2):
            journal.note("prompt lengths are approximate")
    with Journal(tmp_path / "journal", {}, "second") as journal:
        assert list(journal.notes) == ["prompt lengths are approximate"]
        assert journal.run == "first", "its prompts go on"
    assert (tmp_path / "journal").read_text().count("approximate") == 1
