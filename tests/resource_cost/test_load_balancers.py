"""The cost of load balancers: five rules at one price, addresses without a use, data by the region it goes through."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from bezel.planner.base.money import Priced, Unpriced
from bezel.resource_cost.price_line import cost_of_json, price_line, price_now
from bezel.resource_cost.stack_cost import UNKNOWN_MARKS, StackCost, StateResource, stack_cost
from tests.support.policies.harness import SERVICE, service

UNKNOWN = next(iter(UNKNOWN_MARKS))
RULE = "gcp:compute/globalForwardingRule:GlobalForwardingRule"
REGIONAL = "gcp:compute/forwardingRule:ForwardingRule"
ADDRESS = "gcp:compute/globalAddress:GlobalAddress"
GROUP = "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup"


def cost_of(*parts: tuple[str, dict[str, Any]]) -> StackCost:
    return stack_cost([StateResource(f"it-{number}", *part) for number, part in enumerate(parts)])


def rule(**inputs: Any) -> tuple[str, dict[str, Any]]:
    return (RULE, {"loadBalancingScheme": "EXTERNAL_MANAGED", "ipAddress": "127.250.0.2", **inputs})


def address(**inputs: Any) -> tuple[str, dict[str, Any]]:
    return (ADDRESS, {"name": "ip", "address": "127.250.0.2", **inputs})


@pytest.mark.parametrize(
    ("parts", "usd"),
    [
        ([rule()], "0.025"),
        ([rule()] * 5, "0.025"),
        ([rule()] * 7, "0.045"),
        ([rule(), address()], "0.025"),
        ([rule(ipAddress="projects/p/global/addresses/ip"), address(address=UNKNOWN)], "0.025"),
        ([rule(ipAddress=UNKNOWN), address(address=UNKNOWN)], "0.025"),
        ([rule(), address(), address(name="spare", address="127.250.0.3")], "0.035"),
        ([rule(ipAddress=UNKNOWN), address(), address(name="spare")], "0.035"),
        ([rule(), address(address=None)], "0.025"),
        ([rule(), address(address=None), address(name="spare", address=None)], "0.035"),
        ([address()], "0.01"),
        ([address(addressType="INTERNAL")], "0"),
        ([address(ipVersion="IPV6")], "0"),
        ([rule(loadBalancingScheme="")], "0"),
        ([rule(loadBalancingScheme=UNKNOWN)], "0.025"),
    ],
)
def test_rules_and_unused_addresses_cost_by_the_hour(parts: list[tuple[str, dict[str, Any]]], usd: str) -> None:
    cost = cost_of(*parts)
    hourly = Priced(Decimal(usd))
    assert (cost.hourly, cost.idle_hourly) == (hourly, hourly)
    assert cost.monthly == Priced(Decimal(usd) * 730)
    assert (cost.count > 0) is (usd != "0")


def test_a_gib_has_its_dearest_region_s_price_beside_the_sums() -> None:
    parts = [rule(), (GROUP, {"region": "us-east4"}), (GROUP, {"region": "europe-west4"})]
    cost = cost_of(*parts, (SERVICE, service()))
    assert cost.gib == Priced(Decimal("0.008"), derived=True)
    assert price_now(cost) == (
        "1.07 USD/h, 782.21 USD/month at most, idle 0.03 USD/h; "
        "data through the load balancer: unknown, 0.008 USD a GiB in and out each"
    )
    assert cost_of_json(cost.as_json()) is not None
    assert price_line(cost_of_json(cost.as_json()), None).endswith("each; unknown: the price was not determined")
    assert cost.missing == ()
    assert "gib_usd" not in cost_of((SERVICE, service())).as_json()


@pytest.mark.parametrize("parts", [[rule()], [rule(), (GROUP, {"region": "asia-southeast1"})]])
def test_data_of_a_region_without_a_row_is_unknown(parts: list[tuple[str, dict[str, Any]]]) -> None:
    cost = cost_of(*parts)
    assert isinstance(cost.gib, Unpriced)
    assert "unknown, unknown USD a GiB" in price_now(cost)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"region": "us-east4"}, "load-balancing, first five forwarding rules, us-east4, premium"),
        ({}, "region = (not set) of a load balancer"),
        ({"region": UNKNOWN}, "region = (not known before the deploy) of a load balancer"),
    ],
)
def test_a_rule_of_a_region_has_no_price_and_is_named(inputs: dict[str, Any], reason: str) -> None:
    cost = cost_of((REGIONAL, {"loadBalancingScheme": "EXTERNAL", **inputs}))
    assert cost.missing == (reason,)
    assert isinstance(cost.hourly, Unpriced)
