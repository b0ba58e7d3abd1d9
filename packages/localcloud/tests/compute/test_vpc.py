"""Connections that a network lets through, by its firewall rules, its subnetworks and its routers."""

import pytest

from bezel_localcloud.core.store import Store
from bezel_localcloud.services.compute.vpc import (
    free_address,
    has_nat,
    interface_names,
    is_allowed,
    loopback,
    private_google_access,
)
from bezel_localcloud.services.compute.vpc_kinds import KINDS, complete_resource

NET = "projects/p/global/networks/net"
SUB = "projects/p/regions/us-east5/subnetworks/sub"
GATEWAY, INTERNET = "10.64.16.7", "198.51.100.9"


@pytest.fixture
def store(tmp_path):
    new_store = Store(tmp_path / "s.db")
    add(new_store, "subnetwork", SUB, ipCidrRange="10.64.0.0/29", privateIpGoogleAccess=True)
    yield new_store
    new_store.close()


def add(store, kind, name, **body):
    whole = next(one for one in KINDS if one.name == kind)
    store.put(kind, name, complete_resource(whole, {"name": name.rpartition("/")[2], "network": NET, **body}))


def rule(store, name="rule", **body):
    opens = {} if "denied" in body else {"allowed": [{"IPProtocol": "tcp", "ports": ["8000"]}]}
    fields = {"sourceRanges": ["10.64.16.0/24"], "targetTags": ["bezel-node"], **opens, **body}
    add(store, "firewall", f"projects/p/global/firewalls/{name}", **fields)


def reaches(store, source=GATEWAY, port=8000, tags=("bezel-node",), network=NET, service_account="a@p"):
    return is_allowed(store, network=network, tags=tags, service_account=service_account, source=source, port=port)


def test_nothing_reaches_a_machine_without_a_rule(store):
    assert not reaches(store)


def test_a_rule_opens_its_port_of_its_targets_to_its_sources_only(store):
    """A rule lets its sources reach its port of its targets and nothing else."""
    rule(store)
    assert reaches(store)
    assert not reaches(store, source=INTERNET)
    assert not reaches(store, port=22)
    assert not reaches(store, tags=())
    assert not reaches(store, network=f"{NET}x")


@pytest.mark.parametrize(
    ("change", "lets"),
    [
        ({"allowed": [{"IPProtocol": "tcp"}]}, True),
        ({"allowed": [{"IPProtocol": "all"}]}, True),
        ({"allowed": [{"IPProtocol": "udp"}]}, False),
        ({"allowed": [{"IPProtocol": "tcp", "ports": ["7000-8100"]}]}, True),
        ({"targetTags": []}, True),
        ({"targetTags": [], "targetServiceAccounts": ["a@p"]}, True),
        ({"targetTags": [], "targetServiceAccounts": ["b@p"]}, False),
        ({"disabled": True}, False),
        ({"direction": "EGRESS"}, False),
        ({"sourceRanges": [], "sourceTags": ["gateway"]}, False),
        ({"sourceRanges": []}, True),
    ],
)
def test_a_rule_counts_as_it_is_written(store, change, lets):
    rule(store, **change)
    assert reaches(store) == lets


def test_the_rule_with_the_least_number_counts_a_denial_first(store):
    """The rule with the least number counts and a denial goes first among equals."""
    rule(store)
    rule(store, "no", denied=[{"IPProtocol": "tcp"}], priority=1001)
    assert reaches(store)
    rule(store, "no", denied=[{"IPProtocol": "tcp"}], priority=1000)
    assert not reaches(store)
    rule(store, "yes", priority=999)
    assert reaches(store)


def test_a_subnetwork_reaches_google_or_with_a_nat_the_internet(store):
    """A subnetwork reaches Google if it may and the internet with a NAT of its own region."""
    assert private_google_access(store, SUB)
    assert not private_google_access(store, f"{SUB}x")
    nat = {"name": "n", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
    add(store, "router", "projects/p/regions/us-west1/routers/r", nats=[nat])
    assert not has_nat(store, SUB)
    listed = nat | {"sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"}
    add(
        store, "router", "projects/p/regions/us-east5/routers/r", nats=[listed | {"subnetworks": [{"name": f"{SUB}x"}]}]
    )
    assert not has_nat(store, SUB)
    add(store, "router", "projects/p/regions/us-east5/routers/r", nats=[listed | {"subnetworks": [{"name": SUB}]}])
    assert has_nat(store, SUB)
    add(store, "router", "projects/p/regions/us-east5/routers/r", nats=[nat])
    assert has_nat(store, SUB)


def test_addresses_are_given_once_and_run_out(store):
    addresses = []
    while address := free_address(store, SUB):
        place = {"network": NET, "subnetwork": SUB, "address": address}
        store.put("node", f"projects/p/locations/z/nodes/{address}", {"place": place})
        addresses.append(address)
    assert addresses == ["10.64.0.2", "10.64.0.3", "10.64.0.4", "10.64.0.5"]
    assert loopback(addresses[0]) == "127.64.0.2"


def test_machines_of_two_networks_never_share_an_address_of_this_computer(store):
    other = SUB.replace("/sub", "/other")
    add(store, "subnetwork", other, ipCidrRange="10.64.0.0/29", privateIpGoogleAccess=True)
    store.put("node", "n", {"place": {"network": NET, "subnetwork": SUB, "address": free_address(store, SUB)}})
    assert free_address(store, other) == "10.64.0.3"
    assert free_address(store, SUB) == "10.64.0.3"


def test_an_interface_of_a_service_is_named_by_link_or_by_its_last_word():
    for link in ("sub", SUB, f"https://www.googleapis.com/compute/v1/{SUB}"):
        assert any(
            name.endswith("/regions/us-east5/subnetworks/sub")
            for name in interface_names({"subnetwork": link}, "us-east5")
        )
    assert interface_names({}, "us-east5") == set()
