"""The sums of a stack count its load balancers, with the data that the limits state; else their price is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.policies.harness import LABELS, SERVICE, service, stack_violations

RULE = "gcp:compute/globalForwardingRule:GlobalForwardingRule"
REGIONAL = "gcp:compute/forwardingRule:ForwardingRule"
GROUP = ("gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup", {"region": "us-central1"})
ONE = (RULE, {"loadBalancingScheme": "EXTERNAL_MANAGED", "labels": LABELS})
MONTHLY, HOURLY = "stack-monthly-ceiling", "stack-hourly-ceiling"


def judge(policy: str, limit: float, *parts: tuple[str, Any], **keys: Any) -> list[str]:
    return stack_violations(policy, [*parts, GROUP], {"limits": {"dev": limit}, **keys})


@pytest.mark.parametrize(
    ("policy", "limit", "gib", "cost"),
    [
        (MONTHLY, 18.25, 0, ""),
        (MONTHLY, 18.24, 0, "18.2500 USD a month"),
        # 18.25 for the rule and 100 GiB at 0.008.
        (MONTHLY, 19.05, 100, ""),
        (MONTHLY, 19.04, 100, "19.0500 USD a month"),
        (HOURLY, 0.0261, 100, ""),
        (HOURLY, 0.026, 100, "0.0261 USD an hour"),
    ],
)
def test_a_sum_has_the_rule_and_the_data_that_the_limits_state(
    policy: str, limit: float, gib: float, cost: str
) -> None:
    texts = judge(policy, limit, ONE, traffic_gib=gib)
    assert [cost in text and "and 1 of load balancers" in text for text in texts] == ([True] if cost else [])


@pytest.mark.parametrize("policy", [MONTHLY, HOURLY])
def test_data_that_no_limit_states_is_unknown_and_refused(policy: str) -> None:
    (text,) = judge(policy, 5000, ONE, (SERVICE, service()))
    assert "1 resource with accelerators and 1 of load balancers" in text
    assert "Missing: the data through the load balancer" in text
    assert '`"traffic_gib": 100`' in text
    assert judge(policy, 5000, (SERVICE, service())) == []


def test_a_rule_of_a_region_is_refused_unless_its_type_is_exempt() -> None:
    regional = (REGIONAL, {"region": "us-east4", "labels": LABELS})
    (text,) = judge(MONTHLY, 5000, regional, traffic_gib=1)
    assert "first five forwarding rules, us-east4" in text
    assert REGIONAL in text
    assert judge(MONTHLY, 5000, regional, traffic_gib=1, exempt=[REGIONAL]) == []


@pytest.mark.parametrize("gib", [-1, "many"])
def test_a_wrong_statement_of_data_lets_nothing_pass(gib: object) -> None:
    (text,) = judge(MONTHLY, 5000, ONE, traffic_gib=gib)
    assert f"{MONTHLY}.traffic_gib = {gib}" in text
