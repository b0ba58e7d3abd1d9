"""Each of `killable_sweep.WORKS`, killed at every change of a file, continues: no cell lost, none measured twice."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from bench_support.killable_sweep import WORKS, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[[Path, int, str], int]

pytestmark = pytest.mark.slow

# Of one write three moments and of one sync two: of the settings (and their folder); of each cell's begin and end.
AT_BEGIN, OF_A_CELL = 7, 2 * 5
KILLED, NEVER = -9, 10**6
EACH_WORK = pytest.mark.parametrize("work", WORKS)


def records(folder: Path) -> list[str]:
    lines = (folder / "journal").read_bytes().splitlines()
    return [record["cell"]["id"] for line in lines if "cell" in (record := json.loads(line))]


def measured_cells(folder: Path) -> list[tuple[str, str]]:
    return [(line.split()[0], line.split()[1]) for line in (folder / "measured").read_text().splitlines()]


def result(folder: Path) -> list[str]:
    return (folder / "result").read_text().splitlines()


def boundaries(cells: int, work: str) -> list[int]:
    """The changes at which a work is killed: of a sweep all, of the others the begin, the first and the last cell's."""
    end = AT_BEGIN + cells * OF_A_CELL
    return [
        change
        for change in range(1, end + 1)
        if work == "sweep" or change <= AT_BEGIN + OF_A_CELL or change > end - OF_A_CELL
    ]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run a work until it is killed at a change of a file, or to its end; its exit code."""
    runner = Runner()
    yield runner.run
    runner.end()


@pytest.fixture
def whole(tmp_path: Path, work: str, run: Run) -> list[str]:
    """The cells of who is not killed, in their order."""
    folder = tmp_path / "whole"
    folder.mkdir()
    assert run(folder, NEVER, work) == 0
    assert records(folder) == result(folder)
    return result(folder)


@pytest.mark.wide_except("sweep")
@EACH_WORK
def test_no_boundary_loses_a_cell_or_measures_it_twice(tmp_path: Path, work: str, run: Run, whole: list[str]) -> None:
    assert len(whole) >= 4
    again = 0
    for change in boundaries(len(whole), work):
        folder = tmp_path / str(change)
        folder.mkdir()
        assert run(folder, change, work) == KILLED, f"change {change}"
        assert run(folder, NEVER, work) == 0, f"change {change}: it continues"
        assert records(folder) == whole, f"change {change}: each cell has one record, in the order of who is not killed"
        assert result(folder) == whole, f"change {change}: and so the result"
        twice = [name for name, count in Counter(name for name, _ in measured_cells(folder)).items() if count > 1]
        again += len(twice)
        assert len(twice) <= 1, f"change {change}: at most the cell that was under way"
    # Only between the end of a load and its record on disk: the write's begin and middle, its end and the sync.
    assert again <= 4 * len(whole)


@pytest.mark.wide_except("sweep")
@EACH_WORK
def test_a_second_attempt_sends_other_prompts_and_all_else_the_same(
    tmp_path: Path, work: str, run: Run, whole: list[str]
) -> None:
    for cell in range(len(whole)):
        folder = tmp_path / str(cell)
        folder.mkdir()
        # Before the last write of a cell: it was measured, and is not on disk.
        run(folder, AT_BEGIN + cell * OF_A_CELL + 6, work)
        assert run(folder, NEVER, work) == 0
        prompts: dict[str, list[str]] = defaultdict(list)
        for name, prompt in measured_cells(folder):
            prompts[name].append(prompt)
        assert [name for name, sent in prompts.items() if len(sent) > 1] == [whole[cell]]
        assert len(set(prompts[whole[cell]])) == 2
        if work == "comparison":
            rounds = [{sent[0] for name, sent in prompts.items() if turn_of(name) == turn} for turn in range(3)]
            assert [len(one) for one in rounds] == [1, 1, 1], "the arms of a round have the same, kill or no kill"
        else:
            every = [one for sent in prompts.values() for one in sent]
            assert len(set(every)) == len(every)


@EACH_WORK
def test_who_is_not_killed_makes_so_many_changes(tmp_path: Path, work: str, run: Run, whole: list[str]) -> None:
    assert run(tmp_path, AT_BEGIN + len(whole) * OF_A_CELL + 1, work) == 0


def turn_of(name: str) -> int:
    return int(name.rpartition("-r")[2]) if "-r" in name else 0
