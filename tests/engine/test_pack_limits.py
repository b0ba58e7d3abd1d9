"""A repair of a plan that failed is one that the policy packs allow: the packs themselves judge it here."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from pulumi_policy import ResourceValidationPolicy

from bezel.engine.changes.limits import bounds_of, instance_hourly, limits_in
from bezel.engine.changes.preview import keep_to_limits
from bezel.engine.changes.report import ChangeReport
from bezel.planner import make_plan
from bezel_base.errors import UserError
from tests.support.components.fake_cloud_run import running
from tests.support.gitops.documents import PROJECT, declare_stack
from tests.support.policies.harness import POLICIES, ROOT, example, violations

COSTS = ("hourly-ceiling", "monthly-ceiling", "most-instances", "always-on")


@pytest.fixture(autouse=True)
def cloud_run(monkeypatch):
    with running(monkeypatch) as fake:
        fake.quota = 2000
        yield


def files(environment: str) -> list[Path]:
    return [ROOT / "policies" / f"{pack}.{environment}.json" for pack in ("hardware_cost", "security")]


def report_of(stack: str, changes: dict) -> ChangeReport:
    """The report of a preview whose plan fails."""
    configuration = PROJECT.configuration(stack) | changes
    with pytest.raises(UserError) as failed:
        make_plan(configuration, project="acme-llm", stack=stack)
    made = ChangeReport("preview", stack, "a" * 40, "b" * 40, problems=[str(failed.value)])
    keep_to_limits(made, configuration, files(str(configuration["environment"])))
    return made


def refusals(stack: str, changes: dict) -> list[str]:
    """What the packs say of a stack with changed settings."""
    resources, environment = declare_stack(stack, json.dumps(changes))
    limits = example("hardware_cost", environment)
    return [
        message
        for name, policy in POLICIES.items()
        if name in COSTS and isinstance(policy, ResourceValidationPolicy)
        for made in resources
        for message in violations(name, made.type, made.inputs, limits.get(name, {}))
    ]


# Plans that fail at their own limits, and could be repaired beyond those of the packs.
@pytest.mark.slow
@pytest.mark.wide_except("l4-qat-*", "rtx6000-mtp-*")
@pytest.mark.parametrize(("stack", "limit"), [("l4-qat", 40), ("l4-fp8", 40), ("rtx6000-mtp", 26), ("rtx6000-31b", 26)])
def test_repair_of_a_plan_passes_the_packs(stack, limit):
    scaling = {"min_instances": 0, "max_instances": 60}
    (problem,) = report_of(stack, {"scaling": scaling, "cost": {"max_hourly_usd": limit}}).problems
    number = re.search(r"Repair: lower `bezel:scaling.max_instances` to (\d+)\.$", problem)
    assert number, problem
    repaired = {"scaling": {"min_instances": 0, "max_instances": int(number[1])}, "cost": {"max_hourly_usd": limit}}
    assert refusals(stack, repaired) == []
    # One more would not have passed.
    repaired["scaling"]["max_instances"] = int(number[1]) + 1
    assert refusals(stack, repaired)


def test_repair_within_the_limits_stays_as_it_is():
    report = report_of("l4-qat", {"scaling": {"max_instances": 2}, "cost": {"max_hourly_usd": 1.5}})
    assert (
        "raise `bezel:cost.max_hourly_usd` to 2.10, or lower `bezel:scaling.max_instances` to 1." in report.problems[0]
    )
    assert report.notes[0].startswith("limits of dev that the policies compare next: allowed-accelerators nvidia-l4 or")


def test_idle_cost_is_not_raised_where_nothing_may_run_without_traffic():
    changes = {"scaling": {"min_instances": 1, "max_instances": 1}}
    (problem,) = report_of("l4-qat", changes).problems
    assert problem.endswith("lower `bezel:scaling.min_instances` to 0, or set the environment to prod.")


def test_limits_of_a_month_bound_no_lease():
    assert "bezel:cost.max_hourly_usd" not in bounds_of({"monthly-ceiling": 1600}, None)
    assert bounds_of({"monthly-ceiling": 1600}, Decimal(1))["bezel:scaling.max_instances"] == 2
    assert instance_hourly(PROJECT.configuration("v6e4-moe"), "v6e4-moe") is None


def test_an_instance_costs_its_collector_and_no_door() -> None:
    plain = PROJECT.configuration("l4-qat")
    instance = instance_hourly(plain, "l4-qat")
    assert instance is not None
    assert instance_hourly({**plain, "access": {"keys": True}}, "l4-qat") == instance
    assert instance_hourly({**plain, "observability": {"metrics": True}}, "l4-qat") == instance + Decimal("0.072")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"a": 1}', '{"a": {"limits": []}}', "[" * 5000])
def test_odd_configuration_bounds_nothing(tmp_path, text):
    (tmp_path / "pack.json").write_text(text)
    assert limits_in([tmp_path / "pack.json", tmp_path / "missing.json"], "dev") == {}
