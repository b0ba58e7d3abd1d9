"""The network that a new project has, and other auto mode networks."""

import ipaddress

import pytest

from bezel_localcloud.cloud import Cloud
from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.core.regions import regions
from bezel_localcloud.services.compute.auto_mode import AUTO_BLOCK
from localcloud_support.in_process import COMPUTE, PARENT, Clock, Nodes

NETWORKS, FIREWALLS = f"{COMPUTE}/global/networks", f"{COMPUTE}/global/firewalls"
EAST = f"{COMPUTE}/regions/us-east5/subnetworks"


def subnetworks(project, network):
    items_by_region = [
        project.ok("GET", f"{COMPUTE}/regions/{region}/subnetworks").get("items", []) for region in regions()
    ]
    return [row for rows in items_by_region for row in rows if row["network"].endswith(f"/networks/{network}")]


@pytest.mark.slow
def test_a_new_project_has_the_default_network_with_its_rules(project):
    network = project.ok("GET", f"{NETWORKS}/default")
    assert network["autoCreateSubnetworks"] is True
    assert len(network["subnetworks"]) == len(regions())
    default_subnetworks = subnetworks(project, "default")
    ranges = [ipaddress.IPv4Network(row["ipCidrRange"]) for row in default_subnetworks]
    assert {row["name"] for row in default_subnetworks} == {"default"}
    assert len(set(ranges)) == len(regions())
    assert all(each.subnet_of(AUTO_BLOCK) and each.prefixlen == 20 for each in ranges)
    assert project.ok("GET", f"{COMPUTE}/regions/us-central1/subnetworks/default")["ipCidrRange"] == "10.128.0.0/20"
    rules = {row["name"]: row for row in project.ok("GET", FIREWALLS)["items"]}
    assert sorted(rules) == [f"default-allow-{name}" for name in ("icmp", "internal", "rdp", "ssh")]
    assert {row["priority"] for row in rules.values()} == {65534}
    assert rules["default-allow-internal"]["sourceRanges"] == ["10.128.0.0/9"]


# Lines of `gcloud compute networks subnets list` for the network `default`, as owners of projects have published them:
# region -> second number of the range, in the order in which the regions were opened.
PUBLISHED = {
    "us-central1": 128, "europe-west1": 132, "us-west1": 138, "asia-east1": 140, "us-east1": 142,
    "asia-northeast1": 146, "asia-southeast1": 148, "us-east4": 150, "australia-southeast1": 152,
    "europe-west2": 154, "europe-west3": 156, "southamerica-east1": 158, "asia-south1": 160,
    "northamerica-northeast1": 162, "europe-west4": 164, "europe-north1": 166, "us-west2": 168, "asia-east2": 170,
    "europe-west6": 172, "asia-northeast2": 174, "asia-northeast3": 178, "us-west3": 180, "us-west4": 182,
    "asia-southeast2": 184, "europe-central2": 186, "northamerica-northeast2": 188, "asia-south2": 190,
    "australia-southeast2": 192, "southamerica-west1": 194, "europe-west8": 198, "europe-west9": 200,
    "us-east5": 202, "europe-southwest1": 204, "us-south1": 206, "me-west1": 208, "europe-west12": 210,
    "me-central1": 212, "europe-west10": 214, "me-central2": 216, "africa-south1": 218, "northamerica-south1": 224,
    "europe-north2": 226, "asia-southeast3": 232,
}  # fmt: skip


@pytest.mark.slow
def test_each_region_has_the_range_that_google_gives_it(project):
    published = {region: f"10.{number}.0.0/20" for region, number in PUBLISHED.items()}
    ranges = {row["region"].rpartition("/")[2]: row["ipCidrRange"] for row in subnetworks(project, "default")}
    assert ranges == published
    assert len(set(ranges.values())) == len(regions())


@pytest.mark.slow
def test_an_auto_mode_network_is_made_and_deleted_with_its_subnetworks(project):
    project.ok("POST", NETWORKS, {"name": "auto"})
    assert len(subnetworks(project, "auto")) == len(regions())
    assert "auto subnet" in project.refusal(400, "DELETE", f"{EAST}/auto")["message"]
    own_subnetwork = {"name": "own", "network": f"{PARENT}/global/networks/auto", "ipCidrRange": "10.9.0.0/24"}
    project.ok("POST", EAST, own_subnetwork)
    assert "own" in project.refusal(400, "DELETE", f"{NETWORKS}/auto")["message"]
    project.ok("DELETE", f"{EAST}/own")
    project.ok("DELETE", f"{NETWORKS}/auto")
    assert subnetworks(project, "auto") == []
    assert len(subnetworks(project, "default")) == len(regions())


@pytest.mark.slow
def test_a_custom_network_gets_no_subnetworks(project):
    project.ok("POST", NETWORKS, {"name": "custom", "autoCreateSubnetworks": False})
    assert subnetworks(project, "custom") == []
    assert project.ok("GET", f"{NETWORKS}/custom")["autoCreateSubnetworks"] is False


@pytest.mark.slow
def test_the_default_network_is_deleted_after_its_rules_and_stays_deleted(project):
    assert "default-allow" in project.refusal(400, "DELETE", f"{NETWORKS}/default")["message"]
    for row in project.ok("GET", FIREWALLS)["items"]:
        project.ok("DELETE", f"{FIREWALLS}/{row['name']}")
    project.ok("DELETE", f"{NETWORKS}/default")
    project.restart()
    assert project.call("GET", f"{NETWORKS}/default").status_code == 404
    assert subnetworks(project, "default") == []


def test_the_inventory_of_created_resources_leaves_it_out(project):
    project.ok("POST", NETWORKS, {"name": "custom", "autoCreateSubnetworks": False})
    resources = project.raw("GET", "/localcloud/resources").json()
    assert resources.get("networks") == [f"{PARENT}/global/networks/custom"]
    assert resources.keys().isdisjoint({"subnetworks", "firewalls"})


@pytest.mark.slow
def test_a_project_that_is_told_so_has_no_network(tmp_path):
    layout = Paths(tmp_path)
    layout.create()
    timing = InstanceTiming(1, 900, 0.5, 1.0)
    cloud = Cloud(layout, Clock(), None, timing, lambda _: Nodes(), default_network=False)
    cloud.prepare()
    assert [row for kind in ("network", "subnetwork", "firewall") for row in cloud.store.rows(kind)] == []
    cloud.store.close()
