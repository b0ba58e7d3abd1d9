"""Resources of a state of before are those of today: each has its earlier name as an alias, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.engine.project.project import Project
from bezel.planner import make_plan
from bezel_stacks.dispatch import deploy
from tests.support.components.earlier_names import COMPONENTS, Earlier, earlier_stacks, earlier_urn
from tests.support.components.fake_engine import Declared, declare

if TYPE_CHECKING:
    from tests.support.components.fake_cloud_run import FakeRun

PROJECT = Project(Path(__file__).parents[2])
STACKS = earlier_stacks()


def declare_stack(earlier: Earlier) -> list[Declared]:
    """What the program of today declares for a stack of the table."""
    settings = PROJECT.configuration(earlier.stack) | earlier.changes
    plan = make_plan(settings, project="acme-llm", stack=earlier.stack)
    return [one for one in declare(lambda: deploy(plan), preview=True).all if one.type != "pulumi:pulumi:Stack"]


def types_of(one: Declared, by_urn: dict[str, Declared]) -> str:
    """Types of a resource's parents and its own, as a URN has them."""
    parent = by_urn.get(one.parent)
    return one.type if parent is None else f"{types_of(parent, by_urn)}${one.type}"


@pytest.mark.slow
@pytest.mark.parametrize("name", STACKS)
def test_resources_have_the_names_of_earlier_states(run: FakeRun, name: str) -> None:
    run.quota = 200
    earlier = STACKS[name]
    resources = declare_stack(earlier)
    (component,) = [one for one in resources if one.type in COMPONENTS]
    children = [one for one in resources if one is not component]
    by_urn = {one.urn: one for one in resources}
    names = [earlier_urn(f"urn:pulumi:test::bezel::{types_of(one, by_urn)}::{one.name}") for one in children]
    assert sorted(name.partition("::bezel::")[2] for name in names) == earlier.resources
    for one in children:
        if one.parent == component.urn:
            assert one.top_aliases == (one.name.removeprefix("vllm-"),)
        else:  # the engine derives an alias from that of the parent, by the part of the name that they share
            assert one.top_aliases == ()
            assert one.name.startswith(by_urn[one.parent].name)
    assert component.top_aliases == ()


def test_a_resource_outside_of_the_component_keeps_its_urn() -> None:
    urn = "urn:pulumi:dev::bezel::gcp:storage/bucket:Bucket::vllm-data"
    assert earlier_urn(urn) == urn
    component = "urn:pulumi:dev::bezel::bezel:services:VllmService::vllm"
    assert earlier_urn(component) == component
    child = component.replace("VllmService::vllm", "VllmService$smoke:HealthCheck::vllm-health")
    assert earlier_urn(child) == "urn:pulumi:dev::bezel::smoke:HealthCheck::health"
