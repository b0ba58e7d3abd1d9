"""A run that is ended while it makes a project's folder leaves no half of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bezel.cli.new.folder import make_folder

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
    assert [(file.name, file.read_text()) for file in target.iterdir()] == [("first", "again")]
