"""The table of all stacks says what their plans say, and a stack file stays a page that is read at a glance."""

import subprocess
import sys

import pytest
import yaml

from bezel.engine.project.project import Project
from bezel.planner import Plan, make_plan
from tests.support.docs.markdown import ROOT, between, blocks

STACKS = Project(ROOT).stacks()


@pytest.mark.slow
def test_the_table_of_stacks_is_that_of_their_plans() -> None:
    command = [sys.executable, "-m", "tools.docs.planner.stacks"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    shown = between(ROOT / "docs" / "stacks.md", "made by: .venv/bin/python -m tools.docs.planner.stacks")
    assert shown == printed, "run `python -m tools.docs.planner.stacks --write`"
    assert all(f"| `{stack}` |" in printed for stack in STACKS)


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_file_has_at_most_25_lines(stack: str) -> None:
    assert len((ROOT / f"Pulumi.{stack}.yaml").read_text().splitlines()) <= 25


def test_the_settings_that_it_shows_are_accepted() -> None:
    (shown,) = blocks(ROOT / "docs" / "stacks.md", "yaml")
    settings = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(shown).items()}
    plan = make_plan(Project(ROOT).configuration("l4-qat") | settings, project="my-project", stack="l4-qat")
    assert isinstance(plan, Plan)
    assert (plan.service.ingress, plan.service.vpc and plan.service.vpc.network) == ("internal", "llm")
