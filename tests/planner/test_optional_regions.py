"""Regions without quota: an optional one is left out with a warning, a required one refuses the stack by its name."""

from typing import Any

import pytest

from bezel.planner import Plan, Problem, make_plan
from bezel.planner.assemble.left_out import without_regions
from bezel.planner.assemble.quota import service_needs, shortage
from bezel.planner.assemble.region_quota import judge_shortages
from bezel.planner.base.money import Priced
from tests.support.planner.l4_stack import with_changes

THREE = {"region": "", "regions": ["us-east4", "europe-west4", "europe-west1"]}
KEPT = {"scaling": {"min_instances": 1}, "environment": "prod", "cost": {"max_hourly_usd": 9}}


def plan_of(*optional: str, **changes: Any) -> Plan:
    address = {"address": {"domain": "llm.acme.example"}}
    config = with_changes({**THREE, **KEPT, **address, "optional_regions": [*optional], **changes})
    plan = make_plan(config, project="acme-llm", stack="l4-qat")
    assert isinstance(plan, Plan)
    return plan


def shortages(plan: Plan, *regions: str) -> dict[str, list[Problem]]:
    """The problem of each service without a GPU in its region."""
    return {
        each.region: [shortage(service_needs(each, gated=False)[0], 0, project="acme-llm")]
        if each.region in regions
        else []
        for each in plan.services
    }


def test_an_optional_region_is_left_out_and_named() -> None:
    plan = plan_of("europe-west4")
    refused, reasons = judge_shortages(plan, shortages(plan, "europe-west4"))
    assert refused == ()
    rest = without_regions(plan, reasons)
    assert [each.region for each in rest.services] == ["us-east4", "europe-west1"]
    (warning,) = [text for text in rest.warnings if "left out" in text]
    assert warning.startswith("europe-west4 is left out: 1 instance may need 1 of NvidiaL4Gpu")
    assert "--preferred-value=1" in warning
    assert warning.endswith("The stack runs in us-east4, europe-west1 only.")
    assert rest.total.hourly_at_max == Priced(2 * plan.cost.hourly.usd + plan.address.cost.hourly.usd, derived=True)  # type: ignore[union-attr]


@pytest.mark.parametrize("region", ["us-east4", "europe-west1"])
def test_a_required_region_refuses_with_its_name(region: str) -> None:
    plan = plan_of("europe-west4")
    (problem,), reasons = judge_shortages(plan, shortages(plan, region))
    assert reasons == {}
    assert (problem.key, problem.value) == (f"bezel:regions.{THREE['regions'].index(region)}", region)
    assert f"this project has 0 in {region}" in problem.consequence
    assert ("`bezel:optional_regions`" in problem.repair) is (region != "us-east4")


def test_a_shortage_of_one_region_is_worded_as_before() -> None:
    plan = plan_of(region="us-east4", regions=[])
    short = shortages(plan, "us-east4")
    assert judge_shortages(plan, short) == (tuple(short["us-east4"]), {})
    assert judge_shortages(plan, shortages(plan)) == ((), {})


def test_the_failover_is_that_of_the_regions_that_are_left() -> None:
    plan = plan_of("europe-west4", "europe-west1")
    assert plan.address
    assert plan.address.failover == "service health"
    alone = without_regions(plan, dict.fromkeys(("europe-west4", "europe-west1"), "No quota."))
    assert alone.address
    assert (alone.address.failover, alone.address.detection_seconds) == ("none", None)
    assert alone.service.readiness_probe is None
    assert list(alone.address.cost.data) == ["us-east4"]
    asleep = plan_of("europe-west4", environment="dev", scaling={"min_instances": 0})
    assert (
        without_regions(asleep, {"europe-west4": "No quota."}).address
        == plan_of(environment="dev", scaling={"min_instances": 0}, regions=["us-east4", "europe-west1"]).address
    )


def test_a_required_region_cannot_be_left_out() -> None:
    plan = plan_of("europe-west4")
    assert without_regions(plan, {}) is plan
    with pytest.raises(ValueError, match="not optional in l4-qat: europe-west1, us-east4"):
        without_regions(plan, {"us-east4": "No quota.", "europe-west1": "No quota."})
