"""The table of all stacks says what their plans say, and a stack file stays a page that is read at a glance."""

import subprocess
import sys

import pytest
from markdown import ROOT, between

from bezel.ops.project import Project

STACKS = Project(ROOT).stacks()


def test_the_table_of_stacks_is_that_of_their_plans() -> None:
    command = [sys.executable, str(ROOT / "tools" / "stacks_table.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    shown = between(ROOT / "docs" / "stacks.md", "made by: .venv/bin/python tools/stacks_table.py")
    assert shown == printed, "run `python tools/stacks_table.py --write`"
    assert all(f"| `{stack}` |" in printed for stack in STACKS)


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_file_stays_under_25_lines(stack: str) -> None:
    assert len((ROOT / f"Pulumi.{stack}.yaml").read_text().splitlines()) < 25
