"""The nodes' network: only the gateway gets in, nothing gets out to the internet unless asked for, ranges stay put."""

import ipaddress
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.config.subnet_ranges import (
    BLOCK,
    MOST_MACHINES,
    REGIONS,
    NoRangeError,
    gateway_range,
    node_range,
    small_range,
)
from bezel_components.node_network import NodeNetwork, NodeNetworkArgs
from tests.support.components.fake_engine import Declarations, declare, has_unknown

TWO = ("us-east5", "europe-west4")


def network(regions: tuple[str, ...] = TWO, **more: object) -> NodeNetwork:
    args = {"project": "acme-llm", "network": "bezel-v6e4", "regions": regions, "gateway_region": "us-east5", **more}
    return NodeNetwork("nodes", NodeNetworkArgs(**args))


def ranges(declared: Declarations) -> dict[str, str]:
    return {subnetwork.inputs["name"]: subnetwork.inputs["ipCidrRange"] for subnetwork in declared.of("Subnetwork")}


def test_the_only_rule_lets_the_gateways_range_to_the_served_port() -> None:
    """The only rule lets the gateway's range to the served port of tagged nodes."""
    declared = declare(network)
    rule = declared.one("Firewall").inputs
    assert rule["sourceRanges"] == [gateway_range("us-east5")]
    assert rule["allows"] == [{"protocol": "tcp", "ports": ["8000"]}]
    assert rule["targetTags"] == ["bezel-node"]
    assert declare(lambda: network(port=9000)).one("Firewall").inputs["allows"][0]["ports"] == ["9000"]


def test_the_gateway_has_a_range_that_nodes_of_its_region_lack() -> None:
    """The gateway has a range of its own and nodes in its region are not let in by it."""
    ranges_by_name = ranges(declare(network))
    assert ranges_by_name.keys() == {"bezel-v6e4-us-east5", "bezel-v6e4-europe-west4", "bezel-v6e4-gateway"}
    gateway = ipaddress.ip_network(ranges_by_name.pop("bezel-v6e4-gateway"))
    assert gateway.prefixlen <= 26, "Cloud Run takes no smaller one"
    assert not any(gateway.overlaps(ipaddress.ip_network(one)) for one in ranges_by_name.values())


def test_nodes_reach_googles_apis_and_without_nat_nothing_else() -> None:
    declared = declare(network)
    nodes = [
        subnetwork.inputs
        for subnetwork in declared.of("Subnetwork")
        if subnetwork.inputs["name"] != "bezel-v6e4-gateway"
    ]
    assert [one["privateIpGoogleAccess"] for one in nodes] == [True, True]
    assert declared.one("network:Network").inputs["autoCreateSubnetworks"] is False
    assert not declared.of("Router")
    assert not declared.of("RouterNat")


def test_with_nat_each_node_region_has_a_router_that_translates() -> None:
    declared = declare(lambda: network(nat=True))
    assert {found_router.inputs["region"] for found_router in declared.of("Router")} == set(TWO)
    for nat in declared.of("RouterNat"):
        assert (nat.inputs["natIpAllocateOption"], nat.inputs["router"]) == ("AUTO_ONLY", nat.inputs["name"])
        (router,) = [one for one in declared.of("Router") if one.inputs["name"] == nat.inputs["router"]]
        assert declared.waits_for(nat, router)


def test_every_part_waits_for_the_network_and_all_belong_to_the_component() -> None:
    declared = declare(lambda: network(nat=True))
    whole, component = declared.one("network:Network"), declared.one("NodeNetwork")
    parts = [one for one in declared.all if one.type.startswith("gcp:compute/") and one is not whole]
    assert len(parts) == 8
    assert all(declared.waits_for(part, whole) for part in parts)
    assert {part.parent for part in [whole, *parts]} == {component.urn}
    assert len({part.name for part in parts}) == len(parts)


def test_what_others_need_is_known_in_a_first_preview() -> None:
    declared = declare(network, preview=True)
    outputs = declared.one("NodeNetwork").outputs
    assert outputs == {
        "network": "projects/acme-llm/global/networks/bezel-v6e4",
        "subnetworks": {
            region: f"projects/acme-llm/regions/{region}/subnetworks/bezel-v6e4-{region}" for region in TWO
        },
        "gateway_subnetwork": "projects/acme-llm/regions/us-east5/subnetworks/bezel-v6e4-gateway",
        "gateway_range": gateway_range("us-east5"),
        "tag": "bezel-node",
    }
    assert not has_unknown(outputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machines", "ip_range", "count"),
    [(1, "10.64.31.8/29", 4), (2, "10.64.31.8/29", 4), (3, "10.64.31.16/28", 12), (6, "10.64.31.16/28", 12),
     (7, "10.64.31.32/27", 28), (16, "10.64.31.64/26", 60), (62, "10.64.31.128/25", 124)],
)  # fmt: skip
def test_a_small_range_holds_twice_its_machines_with_known_addresses(machines: int, ip_range: str, count: int) -> None:
    """A range of few machines holds twice as many and all their addresses are known."""
    made: list[NodeNetwork] = []
    declared = declare(lambda: made.append(network(machines=machines)))
    (nodes,) = [one for one in declared.of("Subnetwork") if one.name.endswith(f"{count}-addresses-us-east5")]
    assert (nodes.inputs["name"], nodes.inputs["ipCidrRange"]) == (f"bezel-v6e4-{count}-addresses", ip_range)
    assert made[0].subnetworks["us-east5"].endswith(f"/us-east5/subnetworks/bezel-v6e4-{count}-addresses")
    addresses = made[0].addresses["us-east5"]
    assert len(addresses) == count >= 2 * machines
    # Google keeps the first two and the last two.
    assert addresses == tuple(map(str, ipaddress.ip_network(ip_range)))[2:-2]


def test_a_range_of_any_number_of_machines_names_no_addresses() -> None:
    made: list[NodeNetwork] = []
    declare(lambda: made.append(network()))
    assert set(made[0].addresses.values()) == {()}


def test_a_zone_twice_in_one_region_makes_one_subnetwork() -> None:
    assert len(declare(lambda: network(("us-east5", "us-east5"))).of("Subnetwork")) == 2


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.sampled_from(REGIONS), min_size=1, unique=True), st.sampled_from(REGIONS))
def test_no_two_ranges_overlap_whatever_the_regions(regions: list[str], gateway: str) -> None:
    small = [small_range(region, machines) for region in regions for machines in (2, 6, 14, 30, MOST_MACHINES)]
    networks = [ipaddress.ip_network(text) for text in (*map(node_range, regions), *small, gateway_range(gateway))]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(networks, 2))
    assert all(one.subnet_of(BLOCK) for one in networks)


def test_a_region_keeps_its_range() -> None:
    # Written down: a change here would make every deployed subnetwork anew.
    assert [node_range(region) for region in TWO] == ["10.64.0.0/20", "10.64.32.0/20"]
    assert gateway_range("us-east5") == "10.64.16.0/24"
    assert node_range("me-west1") == "10.69.64.0/20"
    assert len(set(REGIONS)) == len(REGIONS)


def test_a_region_without_a_range_is_named_with_the_repair() -> None:
    with pytest.raises(NoRangeError, match=r"us-east9.*\n.*config/subnet_ranges\.py"):
        node_range("us-east9")
    for wrong in ({"regions": ("us-east9",)}, {"gateway_region": "us-east9"}):
        with pytest.raises(ArgumentsError, match="us-east9"):
            network(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Bezel", "9-bezel", "bezel-", "b" * 40])
def test_a_name_that_google_would_refuse_is_refused_before(name: str) -> None:
    with pytest.raises(ArgumentsError, match="is not a valid name of a network"):
        network(network=name)
    longest = max(REGIONS, key=len)
    declared = declare(lambda: network((longest,), network="b" * 39))
    assert max(len(resource.inputs["name"]) for resource in declared.of("Subnetwork")) <= 63
