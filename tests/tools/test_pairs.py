"""Times in pairs: two checkouts run in turn, and a command that fails ends the measurement with its output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.measure.pairs import row

ROOT = Path(__file__).parents[2]


def test_a_row_shows_least_median_and_ratio_of_the_pairs() -> None:
    assert row("plan", [(1.0, 2.0), (2.0, 2.0), (4.0, 6.0)]).split() == [
        *("plan", "1.000", "2.000", "2.000", "2.000", "1.500")
    ]


def checkout(folder: Path, log: Path, code: int = 0) -> Path:
    """A checkout whose `bezel` notes its run and prints a line."""
    command = folder / ".venv" / "bin" / "bezel"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho {folder.name} >> {log}\necho said by {folder.name}\nexit {code}\n")
    command.chmod(0o755)
    return folder


def measure(temporary: Path, *folders: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tools.measure.pairs", *folders, "--only", "help", "--runs", "3"]
    variables = os.environ | {"TMPDIR": str(temporary)}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=110)


@pytest.mark.slow
def test_checkouts_run_in_turn_and_leave_no_folder(tmp_path: Path) -> None:
    log, temporary = tmp_path / "log", tmp_path / "temporary"
    temporary.mkdir()
    ended = measure(temporary, checkout(tmp_path / "a", log), checkout(tmp_path / "b", log))
    assert log.read_text().split() == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert re.search(r"^help( +\d+\.\d{3}){5}$", ended.stdout, re.MULTILINE)
    assert ended.returncode == 0
    assert [*temporary.glob("bezel-measure-*")] == []


@pytest.mark.slow
def test_a_failed_command_ends_the_measurement_with_its_output(tmp_path: Path) -> None:
    log, temporary = tmp_path / "log", tmp_path / "temporary"
    temporary.mkdir()
    ended = measure(temporary, checkout(tmp_path / "a", log), checkout(tmp_path / "b", log, code=7))
    assert log.read_text().split() == ["a", "b"]
    assert "ended with 7:\nsaid by b" in ended.stderr
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    assert [*temporary.glob("bezel-measure-*")] == []
