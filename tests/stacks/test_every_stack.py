"""Every stack file: its resources are declared, and both policy packs let them pass. None of it needs the engine.

What is deployed, served and measured with the engine is told by tests/e2e/test_all_stacks.py and test_lease_stacks.py.
"""

from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy

from bezel.planner import LeasePlan, Plan, make_plan
from bezel.pulumi_engine.project import Project
from stacks.dispatch import deploy
from tests.support.components.fake_engine import Declarations, Declared, declare
from tests.support.policies.harness import POLICIES, example, remedied, violations

PROJECT = Project(Path(__file__).parents[2])
# One of them leases a machine whose price nobody publishes, and is refused until its stack file says one.
STACKS = [stack for stack in PROJECT.stacks() if stack != "gce-l4x8"]


def declared(stack: str, **changes: Any) -> tuple[Declarations, str]:
    plan = make_plan(PROJECT.configuration(stack) | changes, project="acme-llm", stack=stack)
    return declare(lambda: deploy(plan), preview=True), plan.environment


def violations_of(resources: list[Declared], environment: str) -> list[str]:
    """What both packs say of resources, judged one by one with the limits of an environment, as in a preview."""
    limits = example("hardware_cost", environment) | example("security", environment)
    found: list[str] = []
    for name, policy in POLICIES.items():
        if isinstance(policy, ResourceValidationPolicy):
            for one in resources:
                inputs = one.inputs
                if policy.enforcement_level is EnforcementLevel.REMEDIATE:
                    inputs = remedied(name, one.type, dict(inputs), limits.get(name, {})) or inputs
                said = violations(name, one.type, inputs, limits.get(name, {}))
                found += [f"{one.name}: {name}: {message}" for message in said]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_file_is_declared_and_passes_both_packs(stack: str) -> None:
    made, environment = declared(stack)
    assert made.of("HealthCheck")
    assert violations_of(made.all, environment) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "changes", "policy"),
    [
        ("l4-qat", {"access": {"public": True}}, "no-public-invoker"),
        ("rtx6000-fp8", {"environment": "dev", "cost": {}}, "allowed-accelerators"),
        ("v6e4-moe", {"lease": {"zones": [{"zone": "us-east5-a"}], "duration": "8h"}, "cost": {}}, "run-duration"),
    ],
)
def test_one_that_may_not_be_is_not_let_pass(stack: str, changes: dict[str, Any], policy: str) -> None:
    made, environment = declared(stack, **changes)
    assert any(f": {policy}: " in violation for violation in violations_of(made.all, environment))


@pytest.mark.parametrize(
    ("stack", "arguments", "variables"),
    [
        (
            "v6e4-moe",
            {
                "--reasoning-parser=gemma4",
                '--limit-mm-per-prompt={"audio":1,"image":4}',
                "--enable-prefix-caching",
                "--kv-cache-dtype=fp8",
                "--spec-method=ngram",
                "--spec-tokens=3",
                "--max-num-seqs=256",
                "--max-num-batched-tokens=4096",
            },
            {"VLLM_TPU_BUCKET_PADDING_GAP": "256"},
        ),
        ("rtx6000-mtp", {"--async-scheduling", "--spec-method=mtp", "--spec-tokens=3", "--kv-cache-dtype=fp8"}, {}),
    ],
)
def test_a_server_is_set_as_the_one_whose_figures_are_known(
    stack: str, arguments: set[str], variables: dict[str, str]
) -> None:
    plan = make_plan(PROJECT.configuration(stack), project="acme-llm", stack=stack)
    server = plan.node if isinstance(plan, LeasePlan) else plan.service
    assert arguments - {*server.arguments} == set()
    assert variables.items() <= server.environment.items()


def test_one_stack_has_an_instance_that_always_runs_and_no_other() -> None:
    plan = make_plan(PROJECT.configuration("rtx6000-mtp"), project="acme-llm", stack="rtx6000-mtp")
    assert isinstance(plan, Plan)
    assert (plan.service.min_instances, plan.service.max_instances) == (1, 1)
