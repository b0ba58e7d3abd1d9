"""Invariants of a sweep's journal: nothing lost, nothing twice, nothing mixed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from bench_oracle import RATE, cell_of

from bezel.bench.sweep.journal import Journal
from bezel.bench.sweep.wanted import CellWanted
from bezel.told import UserError

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"url": "http://127.0.0.1:1", "users": [1, 8], "contexts": (4, 8)}
WANTED = CellWanted(64, 128, 16, users=8)
CELL = cell_of(WANTED, **{RATE: 3.25})


def begun(folder: Path) -> Path:
    path = folder / "journal"
    with Journal(path, SETTINGS) as journal:
        journal.begin(WANTED.id, None)
        journal.end(CELL, 7.5)
    return path


def test_a_cell_is_there_as_it_was(tmp_path: Path) -> None:
    with Journal(begun(tmp_path), SETTINGS) as journal:
        (taken,) = journal.taken
        assert (taken.cell, taken.seconds) == (CELL, 7.5)
        assert journal.lost_seconds == 0


@pytest.mark.parametrize("torn", [1, 2, 20])
def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path: Path, torn: int) -> None:
    path = begun(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:-torn])
    with Journal(path, SETTINGS) as journal:
        assert len(journal.taken) == 1
        assert path.read_bytes() == whole
        journal.begin("another", 1.0)
    assert [json.loads(line) for line in path.read_bytes().splitlines()][-1] == {"begin": "another", "seconds": 1.0}


def test_a_damaged_line_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = begun(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:5] + b"\n", *lines[2:]]))
    with pytest.raises(UserError, match="line 2"):
        Journal(path, SETTINGS)


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"schema": "bezel.bench/1"}\n')
    with pytest.raises(UserError, match="no record"):
        Journal(path, SETTINGS)
    assert path.read_text() == '{"schema": "bezel.bench/1"}\n'


def test_other_settings_are_refused_with_what_differs_and_nothing_else(tmp_path: Path) -> None:
    path = begun(tmp_path)
    with pytest.raises(UserError) as refused:
        Journal(path, SETTINGS | {"users": [1, 16]})
    assert "users: [1, 8] then, [1, 16] now" in str(refused.value)
    assert "url" not in str(refused.value)
    with Journal(path, SETTINGS) as journal:
        assert len(journal.taken) == 1


def test_two_sweeps_never_write_one_journal(tmp_path: Path) -> None:
    path = begun(tmp_path)
    with Journal(path, SETTINGS), pytest.raises(UserError, match="another sweep"):
        Journal(path, SETTINGS)
    with Journal(path, SETTINGS):
        pass


def test_what_a_kill_interrupted_counts_as_estimated(tmp_path: Path) -> None:
    path = begun(tmp_path)
    with Journal(path, SETTINGS) as journal:
        assert journal.begin("x", 30.0) == 0
        assert journal.begin("x", 31.0) == 1
        journal.begin("y", None)
    with Journal(path, SETTINGS) as journal:
        assert journal.lost_seconds == 61.0
        assert journal.begun == {WANTED.id: 1, "x": 2, "y": 1}


def test_a_folder_that_is_missing_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="journal"):
        Journal(tmp_path / "nowhere" / "journal", SETTINGS)
