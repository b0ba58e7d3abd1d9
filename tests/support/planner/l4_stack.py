"""The committed L4 stack with changes, and the problems that a change makes."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from bezel.planner import PlanError, make_plan

ROOT = Path(__file__).parents[3]
L4 = {
    key.removeprefix("bezel:"): value
    for key, value in yaml.safe_load((ROOT / "Pulumi.l4-qat.yaml").read_text(encoding="utf-8"))["config"].items()
}
RTX_COST = {"cost": {"max_hourly_usd": 4}}


def with_changes(changes):
    config = copy.deepcopy(L4)
    for key, value in changes.items():
        merged = isinstance(value, dict) and isinstance(config.get(key), dict)
        config[key] = {**config[key], **value} if merged else value
    return config


def problems_of(changes, *, project="bezel-local"):
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes(changes), project=project, stack="l4-qat")
    return caught.value.problems


def check_refused(changes, key, consequence, repair):
    """Hold a change to be one fault, which names its value, what follows from it and how to repair it."""
    problems = problems_of(changes)
    assert [problem.key for problem in problems] == [key], problems
    assert consequence in problems[0].consequence
    assert repair in problems[0].repair
    assert problems[0].value
