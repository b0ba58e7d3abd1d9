"""Every stack file: its resources are declared, and both policy packs let them pass. None of it needs the engine.

What is deployed, served and measured with the engine is told by tests/e2e/test_all_stacks.py and test_lease_stacks.py.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, Plan, make_plan
from bezel.planner.base.money import Priced
from bezel.resource_cost.stack_cost import StateResource, stack_cost
from bezel_components.base import granted_roles
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_engine import Declarations, Declared, declare
from tests.support.policies.harness import POLICIES, example, remedy, violations

PROJECT = Project(Path(__file__).parents[2])
# One of them leases a machine whose price nobody publishes, and is refused until its stack file says one.
STACKS = [stack for stack in PROJECT.stacks() if stack != "gce-l4x8"]


def declare_file(stack: str, **changes: Any) -> tuple[Declarations, str]:
    plan = make_plan(PROJECT.configuration(stack) | changes, project="acme-llm", stack=stack)
    return declare(lambda: deploy(plan), preview=True), plan.environment


@cache
def declare_as_written(stack: str) -> tuple[Declarations, str]:
    """Declare a stack as its file says, once for all tests that only read it."""
    return declare_file(stack)


def violations_of(resources: list[Declared], environment: str) -> list[str]:
    """What both packs say of resources, judged one by one with the limits of an environment, as in a preview."""
    limits = example("hardware_cost", environment) | example("security", environment)
    violated: list[str] = []
    for name, policy in POLICIES.items():
        if isinstance(policy, ResourceValidationPolicy):
            for one in resources:
                inputs = one.inputs
                if policy.enforcement_level is EnforcementLevel.REMEDIATE:
                    inputs = remedy(name, one.type, dict(inputs), limits.get(name, {})) or inputs
                messages = violations(name, one.type, inputs, limits.get(name, {}))
                violated += [f"{one.name}: {name}: {message}" for message in messages]
    return violated


@pytest.mark.wide_except("l4-qat", "rtx6000-26b", "v6e1-fleet", "v6e8-31b")
@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_file_is_declared_and_passes_both_packs(stack: str) -> None:
    made, environment = declare_as_written(stack)
    assert made.of("HealthCheck")
    assert violations_of(made.all, environment) == []
    assert grants_of(made.all) <= GRANTS


# Type of a grant -> the roles that the deploy account of a pipeline may grant with it.
GRANTABLE = {
    "projects/iAMMember:IAMMember": granted_roles.ON_PROJECT,
    "serviceaccount/iAMMember:IAMMember": granted_roles.ON_ACCOUNT,
    "cloudrunv2/serviceIamMember:ServiceIamMember": granted_roles.ON_SERVICE_OR_REPOSITORY,
    "artifactregistry/repositoryIamMember:RepositoryIamMember": granted_roles.ON_SERVICE_OR_REPOSITORY,
    "storage/bucketIAMMember:BucketIAMMember": granted_roles.ON_BUCKET,
    "secretmanager/secretIamMember:SecretIamMember": granted_roles.ON_SECRET,
}
GRANTS = {(kind, role) for kind, roles in GRANTABLE.items() for role in roles}


def grants_of(resources: list[Declared]) -> set[tuple[str, str]]:
    """Type and role of every grant."""
    grants = [one for one in resources if "role" in one.inputs or "Iam" in one.type or "IAM" in one.type]
    return {(one.type.partition(":")[2], one.inputs["role"]) for one in grants}


@pytest.mark.slow
def test_every_setting_grants_roles_of_the_table_only_and_each_is_granted() -> None:
    hours = {"hours": [{"start": "0 8 * * 1-5", "end": "0 10 * * 1-5", "time_zone": "Europe/Berlin"}], "duration": "2h"}
    zone = {"zones": [{"zone": "us-east5-a"}]}
    schedule = [
        {"cron": f"0 {hour} * * *", "time_zone": "Europe/Berlin", "min_instances": count}
        for hour, count in ((8, 1), (9, 0))
    ]
    cost = {"max_hourly_usd": 1.50, "max_idle_hourly_usd": 1.50}
    alerts, secrets = {"alerts": True, "metrics": True}, {"HF_TOKEN": "hf-token"}
    granted: set[tuple[str, str]] = set()
    for stack, changes in (
        ("l4-qat", {"scaling": {"schedule": schedule}, "cost": cost, "observability": alerts, "secrets": secrets}),
        ("l4-qat", {"access": {"keys": True}, "cost": cost}),
        ("l4-qat", {"access": {"public": True}}),
        ("v6e1-12b", {"lease": zone | hours, "observability": alerts}),
        ("v6e1-12b", {"lease": zone | hours | {"back_end": "flex_start_vm"}, "network": {"nat": True}}),
        ("v6e1-12b", {"lease": zone, "observability": alerts, "secrets": secrets}),
    ):
        granted |= grants_of(declare_file(stack, **changes)[0].all)
    assert granted <= GRANTS
    assert {role for _, role in granted} == {role for _, role in GRANTS}


SCHEDULE = [{"cron": "0 8 * * 1-5", "min_instances": 1}, {"cron": "0 18 * * *", "min_instances": 0}]
HOURS = {
    "zones": [{"zone": "us-east5-a", "patience": "2h"}],
    "duration": "4h",
    "hours": [{"start": "0 8 * * 1-5", "end": "0 11 * * 1-5", "time_zone": "Europe/Berlin"}],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "changes", "jobs"),
    [
        ("l4-qat", {"environment": "prod", "scaling": {"schedule": SCHEDULE}, "cost": {}}, 2),
        ("v6e4-moe", {"lease": HOURS}, 2),
        ("v6e4-moe", {"lease": {**HOURS, "back_end": "flex_start_vm"}, "network": {"nat": True}}, 2),
    ],
)
def test_the_jobs_of_our_own_are_understood_priced_and_limited(stack: str, changes: dict[str, Any], jobs: int) -> None:
    made, environment = declare_file(stack, **changes)
    assert len(made.of("cloudscheduler/job:Job")) == jobs
    assert violations_of(made.all, environment) == []
    real = [one for one in made.all if not one.type.startswith(("bezel:", "pulumi:"))]
    resources = [StateResource(one.name, one.type, one.inputs) for one in real]
    cost, without = stack_cost(resources), stack_cost([one for one in resources if not one.type.endswith(":Job")])
    assert (cost.hourly, cost.monthly, cost.idle_hourly) == (without.hourly, without.monthly, without.idle_hourly)
    assert isinstance(cost.idle_hourly, Priced)
    assert cost.idle_hourly.usd > 0
    dear = [one for one in made.of("cloudscheduler/job:Job") if one.name.endswith(("-0", "start-0"))]
    assert any(violations("always-on", one.type, one.inputs, {"limits": {environment: 0}}) for one in dear) or any(
        violations("hourly-ceiling", one.type, one.inputs, {"limits": {environment: 1}}) for one in dear
    )


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
    made, environment = declare_file(stack, **changes)
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
