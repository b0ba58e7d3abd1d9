"""Access to machines: external addresses, tags, IAM policies, and the firewall that takes effect in a network."""

import pytest

from bezel.leases.requests import ZoneChoice, instance_body, instance_in_zone
from localcloud_support.in_process import COMPUTE, PARENT, Project

ZONE = f"{COMPUTE}/zones/us-east5-a"
VM = f"{ZONE}/instances/vm"
SUBNETWORK = f"{PARENT}/regions/us-east5/subnetworks/net-us-east5"


@pytest.fixture
def project(tmp_path):
    running_project = Project(tmp_path)
    running_project.network()
    body = instance_body(
        machine_type="ct6e-standard-1t", source_image="projects/i/global/images/family/f", labels={}, metadata={},
        service_account=None, run_seconds=14_400, tags=("bezel-node",),
    )  # fmt: skip
    choice = ZoneChoice("us-east5-a", 600.0)
    sent = instance_in_zone(body, choice, project=PARENT.partition("/")[2], name="vm", subnetwork=SUBNETWORK)
    running_project.ok("POST", f"{ZONE}/instances", sent)
    running_project.passes(120)
    yield running_project
    running_project.close()


def outside(project):
    (interface,) = project.ok("GET", VM)["networkInterfaces"]
    return interface.get("accessConfigs")


@pytest.mark.slow
def test_an_external_address_is_added_once_and_deleted_by_its_name(project):
    assert outside(project) is None
    project.ok("POST", f"{VM}/addAccessConfig", {"name": "door"}, networkInterface="nic0")
    (config,) = outside(project)
    assert config["natIP"].startswith("127.192.")
    project.refusal(400, "POST", f"{VM}/addAccessConfig", {}, networkInterface="nic0")
    project.refusal(400, "POST", f"{VM}/addAccessConfig", {}, networkInterface="nic1")
    wrong = {"accessConfig": "other", "networkInterface": "nic0"}
    project.refusal(400, "POST", f"{VM}/deleteAccessConfig", None, **wrong)
    project.ok("POST", f"{VM}/deleteAccessConfig", None, accessConfig=config["name"], networkInterface="nic0")
    assert outside(project) is None


@pytest.mark.slow
def test_tags_are_replaced_by_who_has_read_the_present_ones(project):
    tags = project.ok("GET", VM)["tags"]
    project.ok("POST", f"{VM}/setTags", {"fingerprint": tags["fingerprint"], "items": ["ssh"]})
    assert project.ok("GET", VM)["tags"]["items"] == ["ssh"]
    project.refusal(412, "POST", f"{VM}/setTags", {"fingerprint": tags["fingerprint"], "items": []})


@pytest.mark.slow
@pytest.mark.parametrize("path", [VM, f"/compute/v1/{SUBNETWORK}"])
def test_a_policy_is_read_and_replaced_under_its_etag(project, path):
    before = project.ok("GET", f"{path}/getIamPolicy", optionsRequestedPolicyVersion=3)
    bindings = [{"role": "roles/compute.viewer", "members": ["user:a@example.com"]}]
    project.ok("POST", f"{path}/setIamPolicy", {"policy": {"bindings": bindings, "etag": before["etag"]}})
    assert project.ok("GET", f"{path}/getIamPolicy")["bindings"] == bindings
    stale = {"policy": {"bindings": [], "etag": before["etag"]}}
    project.refusal(409, "POST", f"{path}/setIamPolicy", stale)
    permissions = project.ok("POST", f"{path}/testIamPermissions", {"permissions": ["compute.instances.get"]})
    assert permissions == {"permissions": ["compute.instances.get"]}
    project.refusal(404, "GET", f"{path}-other/getIamPolicy")


def test_the_effective_firewall_of_a_network_has_its_own_rules_only(project):
    other, _ = project.network("other", "europe-west4", "10.66.0.0/20")
    for name, network in (("one", f"{PARENT}/global/networks/net"), ("two", other)):
        rule = {"name": name, "network": network, "sourceRanges": ["10.0.0.0/8"], "allowed": [{"IPProtocol": "tcp"}]}
        project.ok("POST", f"{COMPUTE}/global/firewalls", rule)
    firewalls = project.ok("GET", f"{COMPUTE}/global/networks/net/getEffectiveFirewalls")
    assert [rule["name"] for rule in firewalls["firewalls"]] == ["one"]
    assert project.ok("GET", f"{COMPUTE}/global/networks/other/getEffectiveFirewalls")["firewalls"][0]["name"] == "two"
    project.refusal(404, "GET", f"{COMPUTE}/global/networks/none/getEffectiveFirewalls")
