"""Invariants of a sweep's journal: nothing lost, nothing twice, nothing mixed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench_support.oracle import RATE, cell_of
from bench_support.results import manifest
from bezel_base.errors import UserError
from bezel_bench.result.records import ServedBy
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.measurement.journal import Journal, Server, Taken

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"url": "http://127.0.0.1:1", "users": [1, 8], "contexts": (4, 8)}
WANTED = CellRequest(64, 128, 16, users=8)
CELL = cell_of(WANTED, **{RATE: 3.25})


def begin_journal(folder: Path) -> Path:
    path = folder / "journal"
    with Journal(path, SETTINGS, "run") as journal:
        journal.begin(WANTED.id, None)
        journal.end(Taken(CELL, 7.5))
    return path


def test_a_cell_is_there_as_it_was(tmp_path: Path) -> None:
    with Journal(begin_journal(tmp_path), SETTINGS, "run") as journal:
        assert journal.taken == [Taken(CELL, 7.5)]
        assert journal.lost_seconds == 0


@pytest.mark.parametrize("torn", [1, 2, 20])
def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path: Path, torn: int) -> None:
    path = begin_journal(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:-torn])
    with Journal(path, SETTINGS, "run") as journal:
        assert len(journal.taken) == 1
        assert path.read_bytes() == whole
        journal.begin("another", 1.0)
    assert [json.loads(line) for line in path.read_bytes().splitlines()][-1] == {"begin": "another", "seconds": 1.0}


def test_a_damaged_line_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = begin_journal(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:5] + b"\n", *lines[2:]]))
    with pytest.raises(UserError, match="line 2"):
        Journal(path, SETTINGS, "run")


@pytest.mark.parametrize("strange", [{"cell": {"id": "x"}, "seconds": 1.0, "cut": False}, {"cell": 3}, {"a": 1}])
def test_a_record_of_another_kind_is_refused(tmp_path: Path, strange: dict[str, object]) -> None:
    path = begin_journal(tmp_path)
    path.write_bytes(path.read_bytes() + json.dumps(strange).encode() + b"\n")
    with pytest.raises(UserError, match="line 4 is not a record"):
        Journal(path, SETTINGS, "run")


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"schema": "bezel.bench/1"}\n')
    with pytest.raises(UserError, match="line 1 is not a record"):
        Journal(path, SETTINGS, "run")
    assert path.read_text() == '{"schema": "bezel.bench/1"}\n'


def test_other_settings_are_refused_with_what_differs_and_nothing_else(tmp_path: Path) -> None:
    path = begin_journal(tmp_path)
    with pytest.raises(UserError) as refused:
        Journal(path, SETTINGS | {"users": [1, 16]}, "run")
    assert "users = [1, 16]\n   it was [1, 8]" in str(refused.value)
    assert "url" not in str(refused.value)
    with Journal(path, SETTINGS, "run") as journal:
        assert len(journal.taken) == 1


def test_two_commands_never_write_one_journal(tmp_path: Path) -> None:
    path = begin_journal(tmp_path)
    with Journal(path, SETTINGS, "run"), pytest.raises(UserError, match="another command"):
        Journal(path, SETTINGS, "run")
    with Journal(path, SETTINGS, "run"):
        pass


def test_what_a_kill_interrupted_counts_as_estimated(tmp_path: Path) -> None:
    path = begin_journal(tmp_path)
    with Journal(path, SETTINGS, "run") as journal:
        assert journal.begin("x", 30.0) == 0
        assert journal.begin("x", 31.0) == 1
        journal.begin("y", None)
    with Journal(path, SETTINGS, "run") as journal:
        assert journal.lost_seconds == 61.0
        assert journal.begun == {WANTED.id: 1, "x": 2, "y": 1}


def test_another_server_in_the_same_place_is_refused(tmp_path: Path) -> None:
    """The same one is not, also where it states less."""

    def server_of(**fields: object) -> Server:
        return Server(manifest("a comparison").model_copy(update={"served_by": ServedBy.model_validate(fields)}), False)

    first, silent = server_of(vllm_version="0.10", max_model_len=64), server_of(vllm_version="0.10")
    other = server_of(vllm_version="0.11")
    with Journal(tmp_path / "journal", SETTINGS, "run") as journal:
        journal.meet("plain", first)
    with Journal(tmp_path / "journal", SETTINGS, "run") as journal:
        assert journal.servers == {"plain": first}
        journal.meet("plain", first)
        journal.meet("plain", silent)
        journal.meet("mtp", other)
        with pytest.raises(UserError) as refused:
            journal.meet("plain", other)
    assert 'vllm_version = "0.11"\n   it was "0.10"' in str(refused.value)
    assert "max_model_len" not in str(refused.value)


def test_a_folder_that_is_missing_is_reported_plainly(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="journal"):
        Journal(tmp_path / "nowhere" / "journal", SETTINGS, "run")
