"""A sweep killed at every change of a file goes on with no cell lost and none measured twice."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from bench_sweep_victim import GRID, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# Of one write three moments and of one sync two; the settings (and their folder), then begin and end of each cell.
CHANGES = 7 + len(GRID.places()) * 2 * 5
KILLED = -9


def records(folder: Path) -> list[str]:
    lines = (folder / "journal").read_bytes().splitlines()
    return [record["cell"]["id"] for line in lines if "cell" in (record := json.loads(line))]


def test_no_boundary_loses_a_cell_or_measures_it_twice(tmp_path: Path) -> None:
    ids = {GRID.wanted(place).id for place in GRID.places()}
    again = 0
    for change in range(1, CHANGES + 1):
        folder = tmp_path / str(change)
        folder.mkdir()
        assert run(folder, change) == KILLED, f"change {change}"
        kept = (folder / "journal").read_bytes().count(b'"cell"') if (folder / "journal").exists() else 0
        assert run(folder, 10**6) == 0, f"change {change}: it goes on"
        assert sorted(records(folder)) == sorted(ids), f"change {change}: each cell has one record"
        measured = [line.split() for line in (folder / "measured").read_text().splitlines()]
        twice = [name for name, count in Counter(name for name, _ in measured).items() if count > 1]
        again += len(twice)
        assert len(twice) <= 1, f"change {change}: at most the cell that was under way"
        assert kept <= len(records(folder))
        runs = [run_id for _, run_id in measured]
        assert len(set(runs)) == len(runs), f"change {change}: a second attempt sends other prompts"
    # Only between the end of a load and its record on disk: the write's begin and middle, its end and the sync.
    assert again <= 4 * len(GRID.places())


def test_a_sweep_that_nobody_kills_has_so_many_changes(tmp_path: Path) -> None:
    assert run(tmp_path, CHANGES + 1) == 0
    assert len(records(tmp_path)) == len(GRID.places())
