"""Where a service is reached, what it sends through, its reserve and its boost: planned, priced and told."""

from decimal import Decimal

import pytest

from bezel.planner import Plan, make_plan, plan_summary
from bezel.planner.base.money import Priced
from bezel.planner.rules.network_checks import check_subnetwork, subnetwork_name
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan, lease_problems, with_lease_changes


def plan_with_changes(**changes: object) -> Plan:
    plan = make_plan(with_changes(changes), project="bezel-local", stack="l4-qat")
    assert isinstance(plan, Plan)
    return plan


def test_what_is_not_said_is_as_the_platform_has_it() -> None:
    service = plan_with_changes().service
    assert (service.ingress, service.vpc, service.zonal_redundancy, service.cpu_boost) == ("all", None, False, False)


def test_a_network_is_planned_as_it_is_written() -> None:
    vpc = plan_with_changes(vpc={"subnetwork": "llm-east", "tags": ["llm"]}).service.vpc
    assert vpc is not None
    assert (vpc.network, vpc.subnetwork, vpc.egress, vpc.tags) == (None, "llm-east", "private-ranges-only", ("llm",))


def test_a_reserve_in_another_zone_has_its_own_price() -> None:
    """0.0002909 instead of 0.0001867 USD for a second of an L4 (prices.csv)."""
    dear = plan_with_changes(scaling={"zonal_redundancy": True}, cost={"max_hourly_usd": 1.5}).cost.hourly
    plain = plan_with_changes().cost.hourly
    assert isinstance(dear, Priced)
    assert isinstance(plain, Priced)
    assert dear.usd - plain.usd == (Decimal("0.0002909") - Decimal("0.0001867")) * 3600


def test_a_boost_is_paid_for_while_an_instance_starts_and_not_afterwards() -> None:
    boosted, plain = plan_with_changes(resources={"cpu_boost": True}), plan_with_changes()
    assert boosted.cost.hourly == plain.cost.hourly
    a_start, a_plain_start = boosted.cost.start(3600), plain.cost.start(3600)
    assert isinstance(a_start, Priced)
    assert isinstance(a_plain_start, Priced)
    (cpu,) = [line for line in plain.cost.lines if line.item == "vcpu"]
    assert isinstance(cpu.hourly, Priced)
    assert a_start.usd - a_plain_start.usd == cpu.hourly.usd  # four more beside its four


def test_the_summary_says_what_is_not_as_usual() -> None:
    text = plan_summary(
        plan_with_changes(
            access={"ingress": "internal"},
            smoke={"inside": True},
            vpc={"network": "llm"},
            resources={"cpu_boost": True},
        )
    )
    assert [word in text for word in ("internal", "startup CPU boost", "llm, private-ranges-only")] == [True] * 3
    assert "CPU boost" not in plan_summary(plan_with_changes())


def test_a_gateway_of_leases_has_its_ingress_and_machines_own_a_network() -> None:
    inside = with_lease_changes(V6E4_MOE, access={"ingress": "internal"}, smoke={"inside": True})
    assert lease_plan(inside).gateway.ingress == "internal"
    (shut_out,) = lease_problems(with_lease_changes(V6E4_MOE, access={"ingress": "internal"}))
    assert shut_out.key == "bezel:access.ingress"
    (of_another,) = lease_problems(with_lease_changes(V6E4_MOE, vpc={"network": "llm"}))
    assert (of_another.key, "no effect" in of_another.consequence) == ("bezel:vpc", True)


OWN = "projects/bezel-local/regions/us-east4/subnetworks"


@pytest.mark.parametrize(
    ("vpc", "name"),
    [
        ({"network": "llm"}, f"{OWN}/llm"),
        ({"subnetwork": "east"}, f"{OWN}/east"),
        ({"network": "llm", "subnetwork": "east"}, f"{OWN}/east"),
        ({"network": "projects/host/global/networks/llm"}, "projects/host/regions/us-east4/subnetworks/llm"),
        (
            {"network": "projects/host/global/networks/llm", "subnetwork": "east"},
            "projects/host/regions/us-east4/subnetworks/east",
        ),
        (
            {"subnetwork": "projects/host/regions/us-east4/subnetworks/a"},
            "projects/host/regions/us-east4/subnetworks/a",
        ),
    ],
)
def test_a_service_sends_from_the_subnetwork_named_or_that_of_its_network(vpc: dict[str, str], name: str) -> None:
    service = plan_with_changes(vpc=vpc).service
    assert service.vpc is not None
    assert subnetwork_name(service.vpc, "bezel-local", "us-east4") == name


@pytest.mark.parametrize(
    ("vpc", "subnetwork", "consequence"),
    [
        ({}, None, "does not exist"),
        ({}, {"ipCidrRange": "10.0.0.0/27"}, "its range is a /27"),
        ({"egress": "all-traffic"}, {"ipCidrRange": "10.0.0.0/24"}, "no Private Google Access"),
        ({"egress": "all-traffic"}, {"ipCidrRange": "10.0.0.0/26", "privateIpGoogleAccess": True}, ""),
        (
            {"subnetwork": "projects/p/regions/us-west1/subnetworks/a"},
            {"ipCidrRange": "10.0.0.0/26"},
            "own region only",
        ),
        ({}, {"ipCidrRange": "10.0.0.0/26"}, ""),
    ],
)
def test_a_subnetwork_that_a_service_cannot_use_is_reported(
    vpc: dict[str, str], subnetwork: dict[str, object] | None, consequence: str
) -> None:
    service = plan_with_changes(vpc={"network": "llm", **vpc}).service
    assert service.vpc is not None
    problems = list(check_subnetwork(subnetwork_name(service.vpc, "bezel-local", "us-east4"), subnetwork, service))
    assert [consequence in problem.consequence for problem in problems] == ([True] if consequence else [])
