"""A run that is ended while it makes a project's folder leaves no half of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bezel.cli.new.folder import make_folder
from bezel.cli.new.unfinished import PREFIX, remove_abandoned, unfinished_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
SECONDS = 60
PROGRAM = """
import os, sys
from collections import UserDict
from pathlib import Path
from bezel.cli.new.folder import make_folder
from bezel_base.command_line.program import run_program

class Files(UserDict):
    def items(self):
        yield "first", "written"
        os.kill(os.getpid(), int(sys.argv[2]))
        yield "second", "written"

def run(_):
    make_folder(Path(sys.argv[1]), Files(), with_git=False)
    return 0

sys.exit(run_program("bezel", [], run))
"""
REMOVE = """
import sys
from pathlib import Path
from bezel.cli.new.unfinished import remove_abandoned
print(remove_abandoned(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda ending: ending.name)
def test_a_killed_run_leaves_no_folder_of_the_project(tmp_path: Path, ending: signal.Signals) -> None:
    target = tmp_path / "chat"
    command = [sys.executable, "-c", PROGRAM, str(target), str(int(ending))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode != 0
    assert not target.exists()
    if ending is not signal.SIGKILL:
        assert [*tmp_path.iterdir()] == []
    make_folder(target, {"first": "again"}, with_git=False)
    assert [*tmp_path.iterdir()] == [target], "what a killed run left is removed by the next one"
    assert [(file.name, file.read_text()) for file in target.iterdir()] == [("first", "again")]


def test_what_a_live_run_makes_and_what_others_made_stays(tmp_path: Path) -> None:
    mine = tmp_path / ".chat.abcdefgh"
    mine.mkdir()
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(mine)
    kept = {*tmp_path.iterdir()}
    with unfinished_folder(tmp_path) as part:
        command = [sys.executable, "-c", REMOVE, str(tmp_path)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr
        make_folder(tmp_path / "chat", {"first": "written"}, with_git=False)
        assert part.is_dir()
    assert {*tmp_path.iterdir()} == {*kept, tmp_path / "chat"}


def test_a_folder_without_a_lock_is_removed_and_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    part = tmp_path / f"{PREFIX}abcdefgh"
    (part / "below").mkdir(parents=True)
    make_folder(tmp_path / "chat", {"first": "written"}, with_git=False)
    assert f"removed {part.name}, which a killed run left" in capfd.readouterr().err
    assert remove_abandoned(tmp_path) == []
    assert [*tmp_path.iterdir()] == [tmp_path / "chat"]
