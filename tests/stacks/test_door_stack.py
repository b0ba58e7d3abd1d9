"""A stack with a door of keys as resources: what the door calls, and where it stands in the order of the deploy."""

from __future__ import annotations

from typing import Any

import pytest

from bezel.planner import PlanError, make_plan
from bezel_stacks.dispatch import deploy
from tests.stacks import test_lease_stack
from tests.stacks.test_regions_stack import SETTINGS, declare_regions
from tests.support.components.fake_engine import Declarations, Declared, declare

SERVICE = "cloudrunv2/service:Service"
KEYS = {"access": {"keys": True}}


def door_of(declared: Declarations) -> Declared:
    return declared.by_name("vllm-door-service")


def variables_of(door: Declared) -> dict[str, Any]:
    (container,) = door.inputs["template"]["containers"]
    return {each["name"]: each["value"] for each in container["envs"]}


def called_services(declared: Declarations) -> list[tuple[str, str]]:
    grants = [each.inputs for each in declared.of("ServiceIamMember") if each.name.startswith("vllm-door-server-")]
    return [(grant["location"], grant["name"]) for grant in grants]


@pytest.mark.slow
def test_door_of_a_lease_calls_the_gateway_after_its_checks() -> None:
    made = test_lease_stack.plan(**KEYS)
    declared = declare(lambda: deploy(made))
    door, gateway = door_of(declared), declared.by_name("vllm-gateway-service")
    assert declared.waits_for(door, gateway)
    assert declared.waits_for(door, declared.by_name("vllm-benchmark"))
    assert called_services(declared) == [(gateway.inputs["location"], gateway.inputs["name"])]
    assert variables_of(door)["DOOR_UPSTREAM"] == "https://chat.example"
    assert door.inputs["labels"] == gateway.inputs["labels"]
    assert not gateway.inputs.get("invokerIamDisabled")


@pytest.mark.slow
def test_door_calls_the_address_of_all_regions_and_is_made_after_it() -> None:
    declared = declare_regions(**KEYS, regions=["us-east4", "europe-west4"], address={"domain": "llm.acme.example"})
    door = door_of(declared)
    assert variables_of(door) == {
        "DOOR_UPSTREAM": "https://llm.acme.example",
        "DOOR_AUDIENCE": "https://llm.acme.example",
        "DOOR_BUCKET": f"acme-llm-{door.inputs['name']}",
    }
    assert [region for region, _ in called_services(declared)] == ["europe-west4", "us-east4"]
    assert declared.waits_for(door, declared.by_name("vllm-address-check"))


@pytest.mark.slow
@pytest.mark.parametrize("leased", [True, False])
def test_use_by_key_is_in_the_first_dashboard_with_metrics_of_the_door(leased: bool) -> None:
    watched = {"observability": {"dashboard": True, "alerts": True}}

    def declared_with(**more: Any) -> Declarations:
        if leased:
            return declare(lambda: deploy(test_lease_stack.plan(**watched, **more)))
        return declare_regions(**watched, **more, regions=["us-east4", "europe-west4"])

    declared = declared_with(**KEYS)
    door = door_of(declared)
    metrics = declared.of("logging/metric:Metric")
    assert len(metrics) == 3
    assert all(door.inputs["name"] in each.inputs["filter"] and declared.waits_for(each, door) for each in metrics)
    dashboards = [each.inputs["dashboardJson"] for each in declared.of("monitoring/dashboard:Dashboard")]
    assert [f"user_{metrics[0].inputs['name'].replace('-', '_')}" in text for text in dashboards].count(True) == 1
    assert declared.by_name("vllm-door-observability-errors")
    without = declared_with()
    assert without.of("logging/metric:Metric") == []
    texts = [each.inputs["dashboardJson"] for each in without.of("monitoring/dashboard:Dashboard")]
    assert len(texts) == len(dashboards)
    assert "by key" not in "".join(texts)


@pytest.mark.slow
def test_stack_without_keys_has_no_door() -> None:
    declared = declare(lambda: deploy(test_lease_stack.plan()))
    assert [each.name for each in declared.all if "door" in each.name] == []
    assert len(declared.of(SERVICE)) == 1


@pytest.mark.slow
def test_door_that_is_protected_cannot_be_left_out() -> None:
    parents, type_ = "bezel:services:VllmService$bezel:door:KeyDoor", "gcp:cloudrunv2/service:Service"
    outputs = {"location": "us-east4", "name": "bezel-l4-qat-door", "deletionProtection": True}
    state = {f"urn:pulumi:test::bezel::{parents}${type_}::vllm-door-service": {"type": type_, "outputs": outputs}}

    def deploy_stack(**more: Any) -> None:
        settings = {**SETTINGS, "region": "us-east4", "environment": "prod", **more}
        made = make_plan(settings, project="acme-llm", stack="l4-qat")
        declare(lambda: deploy(made), state=state)

    deploy_stack(**KEYS)
    with pytest.raises(PlanError, match=r"(?s)bezel-l4-qat-door in us-east4 = protected.*deletion_protection: never"):
        deploy_stack()
