"""`access.keys`: off it changes nothing; on, plan and cost have a door, in front of a service or of a gateway."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from bezel.planner import LeasePlan, Plan, PlanError, make_plan
from bezel.planner.base.money import Priced, total
from bezel.planner.cost.door_cost import door_cost
from bezel.planner.render.short_summary import short_blocks
from bezel.planner.render.summary import plan_summary
from bezel.planner.team.door_plan import door_bucket, door_instances
from bezel.resource_cost.stack_cost import StateResource, stack_cost
from bezel_base.terminal.layout import lay_out
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan
from tests.support.policies.harness import SERVICE, service

KEYS = {"access": {"keys": True}}
DOOR = {"location": "us-east4", "template": {"containers": [{"image": "python"}]}}


def plan_with(stack: str = "l4-qat", project: str = "acme-llm", **changes: Any) -> Plan:
    plan = make_plan(with_changes({"cost": {"max_hourly_usd": 9}, **changes}), project=project, stack=stack)
    assert isinstance(plan, Plan)
    return plan


def usd(amount: object) -> Decimal:
    assert isinstance(amount, Priced)
    return amount.usd


def short(plan: Plan | LeasePlan) -> str:
    return "\n".join(lay_out(short_blocks(plan)))


def test_nothing_of_a_door_is_planned_unless_the_stack_file_asks() -> None:
    plan = plan_with()
    assert plan.door is None
    assert "door" not in plan.as_output()
    assert plan_summary(plan) == plan_summary(plan_with(access={"keys": False}))
    assert "door" not in plan_summary(plan) + short(plan)
    assert plan.total.is_one_service


def test_a_door_is_named_by_its_service_and_stands_in_the_first_region() -> None:
    door = plan_with(**KEYS).door
    assert door is not None
    assert (door.name, door.region, door.bucket) == ("bezel-l4-qat-door", "us-east4", "acme-llm-bezel-l4-qat-door")
    assert (door.service_account_id, door.timeout_seconds) == ("bezel-l4-qat-door", 3600)
    chosen = plan_with(**KEYS, service_name="chat", region="", regions=["europe-west4", "us-east4"]).door
    assert chosen is not None
    assert (chosen.name, chosen.region) == ("chat-door", "europe-west4")
    long = plan_with("x" * 60, **KEYS).door
    assert long is not None
    assert len(long.name) <= 49
    assert len(long.bucket) <= 63


def test_a_leased_stack_has_its_door_before_the_gateway() -> None:
    plan = lease_plan(V6E4_MOE | KEYS)
    assert plan.door is not None
    assert (plan.door.name, plan.door.region) == (f"{plan.gateway.name}-door", "us-east5")
    assert f"the gateway {plan.gateway.name}" in plan_summary(plan)
    assert plan.cost.hourly_at_max == total((lease_plan().cost.hourly_at_max, plan.door.cost.hourly_at_max))
    assert plan.cost.hourly_at_rest == lease_plan().cost.hourly_at_rest


def test_a_plan_says_what_the_use_by_team_in_a_dashboard_costs() -> None:
    text = plan_summary(plan_with(**KEYS, observability={"dashboard": True}))
    assert "0.258 USD a MiB" in text
    assert "0.258" not in plan_summary(plan_with(**KEYS)) + plan_summary(plan_with(observability={"dashboard": True}))


@pytest.mark.parametrize("project", ["acme.com:llm", "my-google-things", "p" * 30])
def test_a_bucket_that_google_would_refuse_gets_another_name(project: str) -> None:
    name = "bezel-" + "y" * 33 + "-door"
    bucket = door_bucket(project, name)
    assert bucket.startswith("bezel-door-")
    assert len(bucket) == 31
    assert bucket != door_bucket(project, f"{name}2")
    assert door_bucket("acme-llm", "chat-door") == "acme-llm-chat-door"


@pytest.mark.parametrize(("requests", "instances"), [(0, 2), (16, 2), (250, 2), (251, 3), (1000, 5), (10**6, 20)])
def test_a_door_has_instances_for_all_requests_and_one_more(requests: int, instances: int) -> None:
    assert door_instances(requests) == instances


def test_a_door_costs_nothing_without_requests_and_counts_in_the_limit() -> None:
    without, plan = plan_with(), plan_with(**KEYS)
    assert plan.door is not None
    cost = plan.door.cost
    hour = Decimal("0.000024") * 3600 + Decimal("0.0000025") * 1800
    assert usd(cost.hourly) == hour + Decimal("1.44") * (Decimal("0.005") + Decimal("0.0004"))
    assert usd(plan.total.hourly_at_max) == usd(without.total.hourly_at_max) + 2 * usd(cost.hourly)
    assert usd(plan.total.hourly_at_min) == usd(plan.total.monthly_without_traffic) == 0
    assert "us-east4 and the door" in plan_summary(plan)
    just = usd(without.total.hourly_at_max) + Decimal("0.01")
    with pytest.raises(PlanError, match="us-east4 and the door cost"):
        plan_with(**KEYS, cost={"max_hourly_usd": float(just)})
    assert plan_with(cost={"max_hourly_usd": float(just)}).door is None


def test_a_door_beside_a_gpu_is_named_as_left_out_of_a_previews_price() -> None:
    gpu, door = StateResource("it", SERVICE, service()), StateResource("door", SERVICE, DOOR)
    assert [stack_cost(each).left_out for each in ([gpu, door], [gpu], [door])] == [1, 0, 0]
    assert stack_cost([gpu, door]).hourly == stack_cost([gpu]).hourly


def test_a_region_without_a_price_of_the_door_is_unknown_and_not_free() -> None:
    cost = door_cost(region="asia-south2", max_instances=2)
    assert not isinstance(cost.hourly_at_max, Priced)
    assert len(cost.missing) == 3


def test_a_door_that_calls_an_address_waits_for_its_certificate() -> None:
    address = {"address": {"domain": "llm.acme.example"}}
    warned = plan_with(**KEYS, **address)
    assert any("until the certificate" in each for each in warned.warnings)
    assert "https://llm.acme.example" in plan_summary(warned)
    assert not any("until the certificate" in each for each in plan_with(**address).warnings)


def test_a_service_with_the_name_of_a_door_is_warned_of() -> None:
    assert any("The door of a stack chat" in each for each in plan_with("chat-door").warnings)
    assert not any("The door of a stack" in each for each in plan_with("chat").warnings)
