"""Behaviour of the types of Compute Engine alone: ranges grow, links have forms, a NAT is a part of another's body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel_pulumi_offline.lifecycle.comparisons import link, relative
from bezel_pulumi_offline.resources.compute import version_one
from pulumi_offline_support.client import FailedError
from pulumi_offline_support.google_compute import STANDING
from pulumi_offline_support.programs import PROGRAMS, with_change

if TYPE_CHECKING:
    from pulumi_offline_support.client import Provider
    from pulumi_offline_support.google import FakeGoogle

SUBNETWORK, FIREWALL = "gcp:compute/subnetwork:Subnetwork", "gcp:compute/firewall:Firewall"
NETWORK, ROUTER, NAT = "gcp:compute/network:Network", "gcp:compute/router:Router", "gcp:compute/routerNat:RouterNat"
LINK = "https://www.googleapis.com/compute/beta/projects/p/global/networks/n"


def bodies(google: FakeGoogle, verb: str) -> list[dict[str, Any]]:
    return [request.body for request in google.requests if request.method == verb]


@pytest.mark.parametrize(("wanted", "replaces"), [("10.64.0.0/19", []), ("10.64.0.0/21", ["ipCidrRange"])])
def test_a_range_grows_in_place_and_any_other_takes_a_new_subnetwork(
    wanted: str, replaces: list[str], google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(SUBNETWORK, PROGRAMS[SUBNETWORK])
    program = with_change(PROGRAMS[SUBNETWORK], "ipCidrRange", wanted)
    assert list(gcp.diff(SUBNETWORK, resource_id, made, program).replaces) == replaces
    if not replaces:
        google.requests.clear()
        assert gcp.update(SUBNETWORK, resource_id, made, program)["ipCidrRange"] == wanted
        assert str(google.requests[0]).endswith("/expandIpCidrRange")
        assert bodies(google, "POST") == [{"ipCidrRange": wanted}]


def test_a_network_given_by_its_link_its_path_or_its_name_is_the_same(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(FIREWALL, PROGRAMS[FIREWALL])
    for same in (f"{google.base}/compute/v1/projects/bezel-local/global/networks/nodes", "nodes"):
        program = with_change(PROGRAMS[FIREWALL], "network", same)
        assert not gcp.diff(FIREWALL, resource_id, made, program).diffs
        gcp.create(FIREWALL, {**program, "name": f"by-{len(same)}"})
        assert bodies(google, "POST")[-1]["network"] == "projects/bezel-local/global/networks/nodes"
    other = with_change(PROGRAMS[FIREWALL], "network", "projects/other/global/networks/nodes")
    assert gcp.diff(FIREWALL, resource_id, made, other).diffs == ["network"]


def test_the_order_of_ranges_and_tags_means_nothing(gcp: Provider) -> None:
    program = PROGRAMS[FIREWALL]
    resource_id, made = gcp.create(FIREWALL, program)
    turned = {**program, "sourceRanges": program["sourceRanges"][::-1]}
    assert not gcp.diff(FIREWALL, resource_id, made, turned).diffs
    assert gcp.diff(FIREWALL, resource_id, made, {**program, "sourceRanges": ["10.79.0.0/24"]}).diffs == [
        "sourceRanges"
    ]


@pytest.mark.slow
def test_an_operation_that_ends_with_an_error_fails_the_call(google: FakeGoogle, gcp: Provider) -> None:
    """Nothing of it stays in the state."""
    ended = {
        "kind": "compute#operation",
        "operationType": "insert",
        "status": "DONE",
        "selfLink": f"{google.base}/compute/v1/projects/bezel-local/global/operations/o",
        "error": {"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'NETWORKS' exceeded."}]},
    }
    google.fail("POST .*/networks", 200, {**ended, "status": "RUNNING", "error": None})
    google.fail("GET .*/operations/o", 200, ended)
    with pytest.raises(FailedError) as caught:
        gcp.create(NETWORK, PROGRAMS[NETWORK])
    reason = "Error waiting to create Network: Error waiting for Creating Network: Quota 'NETWORKS' exceeded.\n"
    assert caught.value.text == f"1 error occurred:\n\t* {reason}\n\n"
    assert not caught.value.kept
    assert gcp.create(NETWORK, PROGRAMS[NETWORK])[0]


def test_a_nat_leaves_the_other_entries_of_its_router_alone(google: FakeGoogle, gcp: Provider) -> None:
    first, made = gcp.create(NAT, PROGRAMS[NAT])
    gcp.create(NAT, {**PROGRAMS[NAT], "name": "second"})
    key = f"/compute/v1/projects/bezel-local/regions/us-east5/routers/{STANDING}"
    google.things[key]["nats"][1]["logConfig"] = {"enable": True}  # made outside of the program
    program = with_change(PROGRAMS[NAT], "sourceSubnetworkIpRangesToNat", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES")
    made = gcp.update(NAT, first, made, program)
    assert [entry["sourceSubnetworkIpRangesToNat"] for entry in google.things[key]["nats"]] == [
        "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES",
        "ALL_SUBNETWORKS_ALL_IP_RANGES",
    ]
    gcp.delete(NAT, first, made)
    (left,) = google.things[key]["nats"]
    assert (left["name"], left["logConfig"]) == ("second", {"enable": True})


def test_a_nat_is_created_once_and_a_missing_one_is_not_changed(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(NAT, PROGRAMS[NAT])
    with pytest.raises(FailedError, match="existing object already found: nodes-us-east5"):
        gcp.create(NAT, PROGRAMS[NAT])
    gcp.delete(NAT, resource_id, made)
    program = with_change(PROGRAMS[NAT], "natIpAllocateOption", "MANUAL_ONLY")
    with pytest.raises(FailedError, match="not found in list"):
        gcp.update(NAT, resource_id, made, program)
    assert not [
        body for body in bodies(google, "PATCH") if body["nats"] and body["nats"][0]["name"] != "nodes-us-east5"
    ]


def test_a_change_of_a_router_sends_the_change_and_that_there_is_no_bgp(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(ROUTER, PROGRAMS[ROUTER])
    gcp.update(ROUTER, resource_id, made, {**PROGRAMS[ROUTER], "description": "for updates"})
    assert bodies(google, "PATCH") == [{"bgp": None, "description": "for updates"}]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (LINK, "projects/p/global/networks/n", True),
        (LINK, "n", True),
        (LINK, "projects/q/global/networks/n", False),
        ("n", "m", False),
    ],
)
def test_links_are_compared_by_what_they_name(left: str, right: str, same: bool) -> None:
    assert link(left, right) is same


def test_links_of_every_version_are_read_as_v1_and_sent_as_paths() -> None:
    assert version_one(LINK) == LINK.replace("beta", "v1")
    assert version_one(7) == 7
    assert relative(LINK, "") == "projects/p/global/networks/n"
    assert relative("n", "projects/p/global/networks/") == "projects/p/global/networks/n"
