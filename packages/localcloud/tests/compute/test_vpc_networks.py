"""Networks of Compute Engine: made, found, changed, held by what uses them, and as the Google provider sends them."""

import pytest

from localcloud_support.in_process import COMPUTE, PARENT, Project

BETA = COMPUTE.replace("v1", "beta")
NETWORKS, FIREWALLS = f"{COMPUTE}/global/networks", f"{COMPUTE}/global/firewalls"
SUBNETWORKS, ROUTERS = f"{COMPUTE}/regions/us-east5/subnetworks", f"{COMPUTE}/regions/us-east5/routers"
NET = f"{PARENT}/global/networks/net"
# As the Google provider sends them.
SENT = {
    "networks": {
        "autoCreateSubnetworks": False,
        "name": "net",
        "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
    },
    "subnetworks": {
        "ipCidrRange": "10.10.0.0/24",
        "logConfig": {"enable": False},
        "name": "sub",
        "network": NET,
        "region": f"{PARENT}/global/regions/us-east5",
    },
    "firewalls": {
        "allowed": [{"IPProtocol": "tcp", "ports": ["8000"]}],
        "logConfig": {"enable": False},
        "name": "fw",
        "network": NET,
        "priority": 1000,
        "sourceRanges": ["203.0.113.0/24"],
        "targetTags": ["llm"],
    },
}
NAT = {"name": "nat", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """One for all tests that change nothing."""
    new_project = Project(tmp_path_factory.mktemp("cloud"))
    new_project.ok("POST", NETWORKS, SENT["networks"])
    new_project.ok("POST", SUBNETWORKS, SENT["subnetworks"])
    yield new_project
    new_project.close()


@pytest.fixture
def network_project(project):
    project.ok("POST", NETWORKS, SENT["networks"])
    project.ok("POST", SUBNETWORKS, SENT["subnetworks"])
    project.ok("POST", FIREWALLS, SENT["firewalls"])
    return project


def test_an_insert_answers_with_an_operation_that_is_done_after_its_time(project):
    operation = project.ok("POST", f"{BETA}/global/networks", SENT["networks"], alt="json")
    assert (operation["kind"], operation["operationType"], operation["status"]) == (
        "compute#operation",
        "insert",
        "RUNNING",
    )
    assert operation["targetLink"] == f"http://127.0.0.1:1/compute/beta/{NET}"
    path = operation["selfLink"].removeprefix("http://127.0.0.1:1")
    project.passes(60)
    assert project.ok("GET", path)["status"] == "DONE"
    assert project.ok("POST", f"{path}/wait")["endTime"] > operation["insertTime"]
    assert project.refusal(404, "GET", f"{path}x")["errors"][0]["reason"] == "notFound"


def test_what_is_read_is_what_was_sent_with_full_links_and_the_defaults(network_project):
    network = network_project.ok("GET", f"{BETA}/global/networks/net")
    assert network["routingConfig"]["routingMode"] == "REGIONAL"
    assert network["subnetworks"] == [f"http://127.0.0.1:1/compute/beta/{PARENT}/regions/us-east5/subnetworks/sub"]
    subnetwork = network_project.ok("GET", f"{SUBNETWORKS}/sub")
    assert subnetwork["network"] == f"http://127.0.0.1:1/compute/v1/{NET}"
    assert subnetwork["region"] == f"http://127.0.0.1:1/compute/v1/{PARENT}/regions/us-east5"
    assert (subnetwork["gatewayAddress"], subnetwork["privateIpGoogleAccess"]) == ("10.10.0.1", False)
    firewall = network_project.ok("GET", f"{FIREWALLS}/fw")
    assert firewall.items() >= {**SENT["firewalls"], "network": firewall["network"], "direction": "INGRESS"}.items()
    for path, kind in ((NETWORKS, "networkList"), (SUBNETWORKS, "subnetworkList"), (FIREWALLS, "firewallList")):
        listed = network_project.ok("GET", path)
        own_items = [item for item in listed["items"] if not item["name"].startswith("default")]
        assert (listed["kind"], len(own_items)) == (f"compute#{kind}", 1)


SENT_BY_THE_PROVIDER = {"routingMode": "GLOBAL", "bgpBestPathSelectionMode": "STANDARD", "bgpAlwaysCompareMed": True}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deleteBgpAlwaysCompareMed", "delete_bgp_always_compare_med"])
@pytest.mark.parametrize("deletes", [True, False])
def test_a_networks_routing_is_taken_as_the_provider_sends_it(project, name, deletes):
    routing = {**SENT_BY_THE_PROVIDER, name: deletes}
    project.ok("POST", NETWORKS, {**SENT["networks"], "routingConfig": routing})
    kept = dict(SENT_BY_THE_PROVIDER)
    if deletes:
        del kept["bgpAlwaysCompareMed"]
    assert project.ok("GET", f"{NETWORKS}/net")["routingConfig"] == kept
    project.ok("PATCH", f"{NETWORKS}/net", {"routingConfig": {name: True}})
    assert "bgpAlwaysCompareMed" not in project.ok("GET", f"{NETWORKS}/net")["routingConfig"]


def test_a_networks_routing_of_another_name_or_kind_is_refused(project):
    for routing in ({"deleteBgpAlwaysCompareMeds": False}, {"deleteBgpAlwaysCompareMed": "x"}):
        project.refusal(400, "POST", NETWORKS, {**SENT["networks"], "routingConfig": routing})


def test_a_name_that_is_taken_is_refused_and_the_same_request_is_not(project):
    again = {"requestId": "11111111-2222-3333-4444-555555555555"}
    first = project.ok("POST", NETWORKS, SENT["networks"], **again)
    assert project.ok("POST", NETWORKS, SENT["networks"], **again)["name"] == first["name"]
    assert project.refusal(409, "POST", NETWORKS, SENT["networks"])["errors"][0]["reason"] == "alreadyExists"
    assert "UUID" in project.refusal(400, "POST", NETWORKS, SENT["networks"], requestId="1")["message"]


@pytest.mark.parametrize(
    ("path", "change", "says"),
    [
        (NETWORKS, {"name": "Net"}, "match of regex"),
        (NETWORKS, {"name": None}, "resource.name"),
        (SUBNETWORKS, {"ipCidrRange": "10.10.0.1/24"}, "CIDR"),
        (SUBNETWORKS, {"ipCidrRange": "8.8.8.0/24"}, "private"),
        (SUBNETWORKS, {"ipCidrRange": "10.10.0.0/25", "name": "other"}, "conflicts with existing subnetwork 'sub'"),
        (SUBNETWORKS, {"network": None}, "resource.network"),
        (FIREWALLS, {"allowed": []}, "allowed"),
        (FIREWALLS, {"denied": [{"IPProtocol": "tcp"}]}, "either"),
        (FIREWALLS, {"sourceRanges": ["everywhere"]}, "CIDR"),
        (FIREWALLS, {"allowed": [{"IPProtocol": "tcp", "ports": ["9-8"]}]}, "range"),
        (FIREWALLS, {"priority": 65536}, "65535"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(refusing, path, change, says):
    body = SENT[path.rpartition("/")[2]] | change
    assert says in refusing.refusal(400, "POST", path, body)["message"]


def test_what_is_in_a_network_that_does_not_exist_is_not_found(network_project):
    for path in (SUBNETWORKS, FIREWALLS):
        body = SENT[path.rpartition("/")[2]] | {"name": "x", "network": f"{NET}x"}
        assert f"{NET}x" in network_project.refusal(404, "POST", path, body)["message"]


def test_a_network_goes_only_when_nothing_is_in_it(network_project):
    error = network_project.refusal(400, "DELETE", f"{NETWORKS}/net")
    assert error["errors"][0]["reason"] == "resourceInUseByAnotherResource"
    assert "subnetworks/sub" in error["message"]
    for path in (f"{FIREWALLS}/fw", f"{SUBNETWORKS}/sub", f"{NETWORKS}/net"):
        network_project.ok("DELETE", path)
        network_project.refusal(404, "GET", path)


def test_a_subnetwork_goes_only_when_no_service_is_attached_to_it(network_project):
    interface = {"network": "net", "subnetwork": "sub"}
    name = f"{PARENT}/locations/us-east5/services/proxy"
    network_project.cloud.store.put("service", name, {"template": {"vpcAccess": {"networkInterfaces": [interface]}}})
    assert name in network_project.refusal(400, "DELETE", f"{SUBNETWORKS}/sub")["message"]
    network_project.cloud.store.delete("service", name)
    network_project.ok("DELETE", f"{SUBNETWORKS}/sub")


@pytest.mark.slow
def test_a_patch_changes_what_it_names_and_refuses_what_is_fixed(network_project):
    change = {"sourceRanges": ["198.51.100.0/24"], "network": NET, "denied": [], "description": ""}
    network_project.ok("PATCH", f"{FIREWALLS}/fw", change)
    firewall = network_project.ok("GET", f"{FIREWALLS}/fw")
    assert (firewall["sourceRanges"], firewall["targetTags"]) == (["198.51.100.0/24"], ["llm"])
    network_project.ok("PUT", f"{FIREWALLS}/fw", {"name": "fw", "network": "net", "allowed": [{"IPProtocol": "udp"}]})
    assert "targetTags" not in network_project.ok("GET", f"{FIREWALLS}/fw")
    assert (
        "cannot be changed"
        in network_project.refusal(400, "PATCH", f"{FIREWALLS}/fw", {"direction": "EGRESS"})["message"]
    )
    network_project.ok("POST", f"{SUBNETWORKS}/sub/setPrivateIpGoogleAccess", {"privateIpGoogleAccess": True})
    subnetwork = network_project.ok("GET", f"{SUBNETWORKS}/sub")
    assert subnetwork["privateIpGoogleAccess"]
    change = {"logConfig": {"enable": True}}
    assert "fingerprint" in network_project.refusal(400, "PATCH", f"{SUBNETWORKS}/sub", change)["message"]
    network_project.ok("PATCH", f"{SUBNETWORKS}/sub", change | {"fingerprint": subnetwork["fingerprint"]})
    stale = change | {"fingerprint": subnetwork["fingerprint"]}
    assert (
        network_project.refusal(412, "PATCH", f"{SUBNETWORKS}/sub", stale)["errors"][0]["reason"] == "conditionNotMet"
    )


@pytest.mark.slow
def test_a_range_is_expanded_and_keeps_the_rest_of_its_subnetwork(network_project):
    before = network_project.ok("GET", f"{SUBNETWORKS}/sub")
    larger = "10.10.0.0/20"
    network_project.ok("POST", f"{SUBNETWORKS}/sub/expandIpCidrRange", {"ipCidrRange": larger})
    after = network_project.ok("GET", f"{SUBNETWORKS}/sub")
    assert after["ipCidrRange"] == larger
    changing = {"ipCidrRange", "fingerprint"}
    assert {key: value for key, value in after.items() if key not in changing} == {
        key: value for key, value in before.items() if key not in changing
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ip_range", "word"),
    [
        ("10.10.0.0/24", "must be larger"),
        ("10.200.0.0/20", "must be larger"),
        ("10.10.0.0/29", "must be larger"),
        ("everything", "Must be a CIDR range"),
        ("", "Must be a CIDR range"),
    ],
)
def test_a_range_that_does_not_hold_the_old_one_is_refused(network_project, ip_range, word):
    refused = network_project.refusal(400, "POST", f"{SUBNETWORKS}/sub/expandIpCidrRange", {"ipCidrRange": ip_range})
    assert word in refused["message"]
    assert network_project.ok("GET", f"{SUBNETWORKS}/sub")["ipCidrRange"] == "10.10.0.0/24"


@pytest.mark.slow
def test_a_range_is_not_expanded_over_another_subnetworks(network_project):
    network_project.ok("POST", SUBNETWORKS, {"name": "neighbour", "network": NET, "ipCidrRange": "10.10.1.0/24"})
    body = {"ipCidrRange": "10.10.0.0/20"}
    assert (
        "conflicts with"
        in network_project.refusal(400, "POST", f"{SUBNETWORKS}/sub/expandIpCidrRange", body)["message"]
    )


def test_a_router_gets_and_loses_its_nat_by_a_patch(network_project):
    network_project.ok("POST", ROUTERS, {"name": "router", "network": NET, "description": None, "noSuchThing": []})
    assert "nats" not in network_project.ok("GET", f"{ROUTERS}/router")
    network_project.ok("PATCH", f"{ROUTERS}/router", {"nats": [NAT]})
    assert network_project.ok("GET", f"{ROUTERS}/router")["nats"][0]["natIpAllocateOption"] == "AUTO_ONLY"
    assert (
        "must be unique" in network_project.refusal(400, "PATCH", f"{ROUTERS}/router", {"nats": [NAT, NAT]})["message"]
    )
    silent = {"initialNatIps": [], "logConfig": None, "natIpAllocateOption": None}  # as the published provider
    network_project.ok("PATCH", f"{ROUTERS}/router", {"nats": [NAT | silent], "description": None})
    assert not network_project.ok("GET", f"{ROUTERS}/router")["nats"][0].keys() & {"initialNatIps", "logConfig"}
    network_project.ok("PATCH", f"{ROUTERS}/router", {"nats": []})
    assert not network_project.ok("GET", f"{ROUTERS}/router").get("nats")
    assert (
        "resource.nats"
        in network_project.refusal(400, "PATCH", f"{ROUTERS}/router", {"nats": [{"name": "x"}]})["message"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "other"), [(NETWORKS, {}), (SUBNETWORKS, {"ipCidrRange": "10.10.1.0/24"}), (FIREWALLS, {})]
)
def test_what_says_nothing_is_taken_in_a_create_and_not_kept(path, other, network_project):
    silent = {"logConfig": None, "secondaryIpRanges": None, "noSuchThing": [], "another": None}
    network_project.ok("POST", path, SENT[path.rpartition("/")[2]] | other | silent | {"name": "other"})
    assert not network_project.ok("GET", f"{path}/other").keys() & (silent.keys() - {"logConfig"})


def test_what_nothing_here_would_act_upon_is_said_not_to_be_served(project):
    body = SENT["networks"] | {"IPv4Range": "10.0.0.0/8"}
    assert "IPv4Range" in project.refusal(400, "POST", NETWORKS, body)["message"]


def test_a_region_and_its_zones_are_found_and_others_are_not(project):
    region = project.ok("GET", f"{COMPUTE}/regions/us-east5")
    assert [zone.rpartition("/")[2] for zone in region["zones"]] == ["us-east5-a", "us-east5-b", "us-east5-c"]
    assert project.ok("GET", f"{COMPUTE}/zones/us-east5-a")["region"] == region["selfLink"]
    for path in ("regions/us-east55", "zones/us-east5-x", "zones/moon"):
        project.refusal(404, "GET", f"{COMPUTE}/{path}")
    assert project.refusal(400, "GET", f"{COMPUTE}/regions/moon/subnetworks")["message"].endswith("Unknown region.")
    page = project.ok("GET", f"{COMPUTE}/zones", maxResults=2)
    assert len(page["items"]) == 2
    assert (
        project.ok("GET", f"{COMPUTE}/zones", maxResults=2, pageToken=page["nextPageToken"])["items"] != page["items"]
    )
