"""The cost of a list of resources: what is paid once counts once, and what is unknown is never 0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pulumi_policy import proxy

from bezel.planner.base.money import Priced, Unpriced
from bezel.resource_cost.stack_cost import UNKNOWN_MARKS, StateResource, resources_in, stack_cost
from tests.support.policies.harness import INSTANCE, LEASE, QUEUE, SERVICE, TPU_VM, instance, queue, request, service

MOST, LEAST = "template.scaling.maxInstanceCount", "template.scaling.minInstanceCount"
UNKNOWN = next(iter(UNKNOWN_MARKS))
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:planted"}


def of(token: str, inputs: dict[str, Any], name: str = "it", *, custom: bool = True) -> StateResource:
    return StateResource(name, token, inputs, custom)


def amounts(*resources: StateResource) -> tuple[Decimal | str, ...]:
    cost = stack_cost(resources)
    return tuple(
        amount.usd.quantize(Decimal("0.01")) if isinstance(amount, Priced) else "unknown"
        for amount in (cost.hourly, cost.monthly, cost.idle_hourly)
    )


@pytest.mark.parametrize(
    ("resources", "hourly", "monthly", "idle"),
    [
        ([], "0.00", "0.00", "0.00"),
        ([of(SERVICE, service())], "1.05", "763.96", "0.00"),
        ([of(SERVICE, service({MOST: 2.0, LEAST: 1.0}))], "2.09", "1527.92", "1.05"),
        ([of(SERVICE, service()), of(SERVICE, service(), "other")], "2.09", "1527.92", "0.00"),
        ([of("gcp:storage/bucket:Bucket", {"location": "us"})], "0.00", "0.00", "0.00"),
        # Four hours of four chips: a lease costs the same with and without traffic.
        ([of(INSTANCE, instance())], "5.40", "21.60", "5.40"),
        ([of(LEASE, request("queued_resource"))], "5.40", "21.60", "5.40"),
    ],
)
def test_hour_month_and_idle_are_those_of_the_planner(resources, hourly, monthly, idle) -> None:
    assert amounts(*resources) == (Decimal(hourly), Decimal(monthly), Decimal(idle))


def test_the_request_for_a_lease_and_the_wait_for_it_count_once() -> None:
    asked = of(LEASE, request("queued_resource"), "l-request")
    waited = of(LEASE, {**request("queued_resource"), "patience": 5}, "l-node")
    assert amounts(asked, waited) == amounts(asked)
    other = of(LEASE, {**request("queued_resource"), "name": "m"}, "m-request")
    assert amounts(asked, other) != amounts(asked)


def test_a_gateway_is_named_as_left_out_beside_leases_alone() -> None:
    gateway = of(SERVICE, {"location": "us-east4", "template": {"containers": [{"image": "haproxy"}]}}, "gateway")
    lease, gpu = of(INSTANCE, instance()), of(SERVICE, service())
    assert [stack_cost(each).left_out for each in ([lease, gateway], [gateway], [lease, gpu], [lease])] == [1, 0, 0, 0]
    assert amounts(lease, gateway) == amounts(lease)


def test_a_component_is_nothing_in_the_cloud() -> None:
    component = of("team:index:Server", {"accelerator": "nvidia-l4"}, custom=False)
    assert amounts(component, of(SERVICE, service())) == amounts(of(SERVICE, service()))
    assert amounts(of("team:index:Server", {"accelerator": "nvidia-l4"}))[0] == "unknown"


@pytest.mark.parametrize(
    ("resource", "missing"),
    [
        (
            of(SERVICE, service({"location": "asia-southeast1"})),
            "cloud-run, gpu nvidia-l4 no zonal redundancy, asia-southeast1",
        ),
        (of(SERVICE, service({MOST: UNKNOWN})), f"{MOST} = (not known before the deploy) of it"),
        (of(SERVICE, service({MOST: SECRET})), f"{MOST} = (not known before the deploy) of it"),
        (of(SERVICE, service({MOST: None})), f"{MOST} = (not set) of it"),
        (of("gcp:container/nodePool:NodePool", {"guestAccelerators": [{"type": "nvidia-l4"}]}), "NodePool"),
        (of(TPU_VM, {"zone": "us-east5-b", "acceleratorType": "v9-4"}), "v9-4"),
        (of(QUEUE, queue({"tpu.nodeSpec.0.parent": UNKNOWN})), "parent"),
    ],
)
def test_one_unknown_part_makes_the_sum_unknown_and_is_named(resource: StateResource, missing: str) -> None:
    cost = stack_cost([of(SERVICE, service(), "priced"), resource])
    for amount in (cost.hourly, cost.monthly, cost.idle_hourly):
        assert isinstance(amount, Unpriced)
    assert any(missing in part for part in cost.missing), cost.missing
    assert cost.as_json()["hourly_usd"] is None
    assert "planted" not in str(cost)
    assert cost.count == 2


def test_a_state_is_read_without_what_it_does_not_manage() -> None:
    inputs = {"__provider": "gASV...accelerator=nvidia-l4", **service()}
    urn = f"urn:pulumi:dev::p::{SERVICE}::"
    state = [
        {"urn": "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev", "type": "pulumi:pulumi:Stack"},
        {"urn": f"{urn}own", "type": SERVICE, "custom": True, "inputs": inputs},
        {"urn": f"{urn}read", "type": SERVICE, "custom": True, "external": True, "inputs": inputs},
        {"urn": f"{urn}own", "type": SERVICE, "custom": True, "delete": True, "inputs": inputs},
        {"urn": "urn:pulumi:dev::p::a:b:C::c", "type": "a:b:C", "inputs": {"gpu": 1}},
        {"urn": f"{urn}empty", "type": "gcp:storage/bucket:Bucket", "custom": True},
    ]
    resources = resources_in(state)
    assert [resource.name for resource in resources] == ["own", "own", "empty"]
    assert amounts(*resources)[0] == Decimal("2.09")  # one is still to be deleted: it runs, and costs


def test_unknown_values_are_marked_as_the_engines_library_marks_them() -> None:
    assert {value for name, value in vars(proxy).items() if name.startswith("UNKNOWN_")} == UNKNOWN_MARKS
