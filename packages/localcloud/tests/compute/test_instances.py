"""Compute Engine: instances with accelerators, from their request to their end, and as the Google provider asks."""

import pytest

from localcloud_support.in_process import COMPUTE, PARENT, two_region_project

EAST, WEST = f"{COMPUTE}/zones/us-east5-a", f"{COMPUTE}/zones/europe-west4-a"
RUN = 14_400
# As the Google provider sends it: with nulls where a field is not set.
SENT = {
    "canIpForward": False,
    "deletionProtection": False,
    "disks": [
        {
            "autoDelete": True,
            "boot": True,
            "initializeParams": {
                "diskSizeGb": "200",
                "diskType": f"{PARENT}/zones/us-east5-a/diskTypes/hyperdisk-balanced",
                "sourceImage": "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu",
            },
            "mode": "READ_WRITE",
        }
    ],
    "labels": {"app": "vllm", "managed-by": "bezel"},
    "machineType": f"{PARENT}/zones/us-east5-a/machineTypes/ct6e-standard-1t",
    "metadata": {"items": [{"key": "startup-script", "value": "#!/bin/bash"}]},
    "name": "lease",
    "networkInterfaces": [
        {
            "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}],
            "subnetwork": f"{PARENT}/regions/us-east5/subnetworks/net-us-east5",
        }
    ],
    "params": {},
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    "scheduling": {
        "automaticRestart": False,
        "gracefulShutdown": None,
        "hostErrorTimeoutSeconds": None,
        "instanceTerminationAction": "DELETE",
        "localSsdRecoveryTimeout": None,
        "maxRunDuration": {"seconds": RUN},
        "nodeAffinities": [None],
        "onHostMaintenance": "TERMINATE",
        "onInstanceStopAction": None,
        "preemptible": False,
        "preemptionNoticeDuration": None,
        "provisioningModel": "FLEX_START",
        "skipGuestOsShutdown": False,
    },
    "serviceAccounts": [{"email": "default", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}],
    "tags": {"items": ["bezel-node"]},
}
WAITS = {"params": {"requestValidForDuration": {"seconds": "3600"}}}


def body(zone="us-east5-a", kind="ct6e-standard-4t", **changes):
    interface = {"subnetwork": f"{PARENT}/regions/{zone.rpartition('-')[0]}/subnetworks/net-{zone.rpartition('-')[0]}"}
    return SENT | {"machineType": f"zones/{zone}/machineTypes/{kind}", "networkInterfaces": [interface]} | changes


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """One for all tests that change nothing."""
    new_project = two_region_project(tmp_path_factory.mktemp("cloud"))
    yield new_project
    new_project.close()


@pytest.fixture
def project(tmp_path):
    new_project = two_region_project(tmp_path)
    yield new_project
    new_project.close()


def status(project, base=EAST, name="lease"):
    return project.ok("GET", f"{base}/instances/{name}")["status"]


def outcome(project, operation):
    return project.ok("GET", operation["selfLink"].removeprefix(project.cloud.base))


@pytest.mark.slow
def test_the_providers_own_request_runs_for_its_time_and_is_then_deleted(project):
    beta = EAST.replace("v1", "beta")
    operation = project.ok("POST", f"{beta}/instances", SENT, alt="json")
    assert (operation["status"], operation["zone"].rpartition("/")[2]) == ("RUNNING", "us-east5-a")
    assert status(project) == "PROVISIONING"
    project.passes(30)
    assert status(project) == "STAGING"
    project.passes(90)
    instance = project.ok("GET", f"{beta}/instances/lease", view="FULL")
    assert outcome(project, operation)["status"] == "DONE"
    assert instance["status"] == "RUNNING"
    (interface,) = instance["networkInterfaces"]
    assert (interface["networkIP"], interface["accessConfigs"][0]["natIP"]) == ("127.64.0.2", "127.192.0.2")
    assert instance["scheduling"]["maxRunDuration"] == {"seconds": str(RUN)}
    assert instance["resourceStatus"]["scheduling"]["terminationTimestamp"] > instance["lastStartTimestamp"]
    assert instance["machineType"] == f"{project.cloud.base}/compute/beta/{SENT['machineType']}"
    assert not {"params", "initializeParams"} & (instance.keys() | instance["disks"][0].keys())
    (spec,) = project.nodes.running.values()
    assert (spec.name, spec.hardware) == (f"{PARENT}/zones/us-east5-a/instances/lease", "v6e-1")
    assert (dict(spec.metadata), spec.tags) == ({"startup-script": "#!/bin/bash"}, ("bezel-node",))
    project.passes(RUN)
    assert status(project) == "STOPPING"
    assert project.nodes.running == {}
    project.passes(40)
    project.refusal(404, "GET", f"{EAST}/instances/lease")


@pytest.mark.slow
def test_a_waiting_request_is_pending_and_its_operation_says_why(project):
    """A request that waits is pending until its time is over and its operation says why."""
    project.ok("POST", "/localcloud/faults", {"kind": "lease-quota", "parameters": {"units": 8}})
    operation = project.ok("POST", f"{WEST}/instances", body("europe-west4-a", **WAITS))
    project.passes(599)
    assert status(project, WEST) == "PENDING"
    assert outcome(project, operation)["status"] == "RUNNING"
    project.passes(11)
    project.refusal(404, "GET", f"{WEST}/instances/lease")
    (error,) = outcome(project, operation)["error"]["errors"]
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert error["errorDetails"][0]["errorInfo"]["metadatas"]["zone"] == "europe-west4-a"


def test_a_request_that_does_not_wait_fails_as_soon_as_nothing_is_there(project):
    operation = project.ok("POST", f"{WEST}/instances", body("europe-west4-a"))
    project.passes(10)
    (error,) = outcome(project, operation)["error"]["errors"]
    assert error["code"].startswith("ZONE_RESOURCE_POOL_EXHAUSTED")
    project.refusal(404, "GET", f"{WEST}/instances/lease")


def test_both_apis_sell_from_one_stock(project):
    for number in range(4):
        project.ok("POST", f"{EAST}/instances", body(name=f"m-{number}"))
    project.passes(120)
    operation = project.ok("POST", f"{EAST}/instances", body(**WAITS))
    project.passes(120)
    assert status(project) == "PENDING"
    project.ok("DELETE", f"{EAST}/instances/m-0")
    assert status(project) == "STAGING"
    project.passes(90)
    assert status(project) == "RUNNING"
    assert "error" not in outcome(project, operation)


def test_a_deleted_waiting_instance_ends_its_operation(project):
    """An instance that is deleted while it waits ends its operation and frees its name."""
    inserted = project.ok("POST", f"{WEST}/instances", body("europe-west4-a", **WAITS))
    deleted = project.ok("DELETE", f"{WEST}/instances/lease")
    assert outcome(project, inserted)["error"]["errors"][0]["code"] == "OPERATION_CANCELED_BY_USER"
    assert project.ok("DELETE", f"{WEST}/instances/lease")["name"] == deleted["name"]
    assert (
        project.refusal(409, "POST", f"{WEST}/instances", body("europe-west4-a"))["errors"][0]["reason"]
        == "alreadyExists"
    )
    project.passes(60)
    assert outcome(project, deleted)["status"] == "DONE"
    project.refusal(404, "DELETE", f"{WEST}/instances/lease")
    project.ok("POST", f"{WEST}/instances", body("europe-west4-a"))


def test_the_quotas_of_a_region_are_named_the_preemptible_one_first(project):
    project.ok("POST", "/localcloud/faults", {"kind": "lease-quota", "parameters": {"units": 4}})
    project.ok("POST", f"{EAST}/instances", body())
    error = project.refusal(403, "POST", f"{COMPUTE}/zones/us-east5-b/instances", body("us-east5-b", name="b"))
    assert error["errors"][0]["reason"] == "quotaExceeded"
    assert (
        "'PREEMPTIBLE-TPU-V6E-per-project-region' exceeded. Limit: 4 in region us-east5; in use: 4" in error["message"]
    )
    project.ok("POST", f"{WEST}/instances", body("europe-west4-a"))


def scheduling(**changes):
    return {"scheduling": SENT["scheduling"] | changes}


@pytest.mark.parametrize(
    ("status", "change", "says"),
    [
        (400, {"name": "Lease"}, "match of regex"),
        (400, {"kind": "n1-standard-1"}, "does not serve machines of the type n1-standard-1"),
        (400, {"kind": "e2-small", "scheduling": {}}, "does not serve machines of the type e2-small"),
        (400, {"kind": "nosuch-1"}, "'nosuch-1' does not exist in zone"),
        (400, {"kind": "g2-standard-96"}, "'g2-standard-96' does not exist in zone"),
        (400, {"machineType": "zones/us-east5-b/machineTypes/ct6e-standard-1t"}, "not of zone"),
        (400, scheduling(maxRunDuration={"seconds": 599}), "from 600 to 604800"),
        (400, scheduling(maxRunDuration=None), "maxRunDuration"),
        (400, scheduling(instanceTerminationAction="STOP"), "use DELETE"),
        (400, scheduling(onHostMaintenance="MIGRATE"), "TERMINATE"),
        (400, {"params": {"requestValidForDuration": {"seconds": "7201"}}}, "90 to 7200"),
        (400, WAITS | scheduling(provisioningModel="SPOT"), "do not wait"),
        (400, {"disks": []}, "one disk"),
        (400, {"networkInterfaces": []}, "one network interface"),
        (404, {"networkInterfaces": [{"network": "global/networks/none"}]}, "networks/none"),
        (403, {"serviceAccounts": [{"email": "nobody@x"}]}, "actAs"),
        (400, {"guestAccelerators": [{"acceleratorCount": 1}]}, "guestAccelerators"),
    ],
)
def test_what_cannot_be_had_is_refused_at_once(refusing, status, change, says):
    assert says in refusing.refusal(status, "POST", f"{EAST}/instances", body(**change))["message"]
    assert "items" not in refusing.ok("GET", f"{EAST}/instances")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accounts", "email"), [([{"email": "default"}], "123456789012-compute@"), ([{"email": ""}], ""), ([], "")]
)
def test_an_instance_whose_account_has_an_empty_name_runs_without_one(project, accounts, email):
    project.ok("POST", f"{EAST}/instances", body(serviceAccounts=accounts))
    project.passes(120)
    assert status(project) == "RUNNING"
    (machine,) = project.nodes.running.values()
    assert machine.service_account.partition("developer")[0] == email


def test_a_zone_that_does_not_take_flex_start_says_so_and_sells_otherwise(project):
    project.ok("POST", "/localcloud/faults", {"kind": "lease-zone-refused", "parameters": {"zone": "us-east5-a"}})
    error = project.refusal(400, "POST", f"{EAST}/instances", body())
    assert "FLEX_START provisioning model is not supported" in error["message"]
    project.ok("POST", f"{EAST}/instances", body(**scheduling(provisioningModel="SPOT")))


@pytest.mark.slow
def test_instances_are_listed_by_zone_and_over_all_and_by_label(project):
    project.ok("POST", f"{EAST}/instances", body())
    project.ok("POST", f"{WEST}/instances", body("europe-west4-a", **WAITS, labels={"app": "other"}))
    assert [one["name"] for one in project.ok("GET", f"{EAST}/instances")["items"]] == ["lease"]
    everywhere = project.ok("GET", f"{COMPUTE}/aggregated/instances")["items"]
    assert sorted(everywhere) == ["zones/europe-west4-a", "zones/us-east5-a"]
    for wanted, zones in (
        ("labels.managed-by:*", ["zones/us-east5-a"]),
        ("labels.managed-by=bezel", ["zones/us-east5-a"]),
        ("(labels.app = other) (status = PENDING)", ["zones/europe-west4-a"]),
        ("(labels.app = other) (status = RUNNING)", []),
        ("labels.app=other AND name=lease", ["zones/europe-west4-a"]),
    ):
        assert sorted(project.ok("GET", f"{COMPUTE}/aggregated/instances", filter=wanted)["items"]) == zones, wanted
    assert "labels.KEY=VALUE" in project.refusal(400, "GET", f"{EAST}/instances", filter="id > 5")["message"]


def test_an_instance_tells_what_it_has_written_and_what_its_console_showed(project):
    project.ok("POST", f"{EAST}/instances", body())
    project.passes(120)
    one = f"{EAST}/instances/lease"
    project.refusal(404, "GET", f"{one}/getGuestAttributes", queryPath="bezel/")
    project.nodes.attributes[f"{PARENT}/zones/us-east5-a/instances/lease"] = {"bezel/image": "done", "x/y": "z"}
    attributes = project.ok("GET", f"{one}/getGuestAttributes", queryPath="bezel/")
    assert attributes["queryValue"]["items"] == [{"namespace": "bezel", "key": "image", "value": "done"}]
    assert project.ok("GET", f"{one}/getGuestAttributes", variableKey="x/y")["variableValue"] == "z"
    for key in ("x/absent", "x/", "x"):  # a variable is named in full, unlike a query's path
        project.refusal(404, "GET", f"{one}/getGuestAttributes", variableKey=key)
    serial = project.ok("GET", f"{one}/serialPort")
    assert (serial["contents"], serial["next"]) == ("booting\nready\n", "14")
    assert project.ok("GET", f"{one}/serialPort", start="8")["contents"] == "ready\n"


def test_a_zone_has_the_machine_types_that_its_hardware_makes(project):
    names = [one["name"] for one in project.ok("GET", f"{WEST}/machineTypes")["items"]]
    assert names == ["ct6e-standard-1t", "ct6e-standard-4t", "ct6e-standard-8t", "g2-standard-96"]
    assert project.ok("GET", f"{WEST}/machineTypes/g2-standard-96")["accelerators"][0]["guestAcceleratorCount"] == 8
    project.refusal(404, "GET", f"{EAST}/machineTypes/g2-standard-96")
    assert "items" not in project.ok("GET", f"{COMPUTE}/zones/us-west2-a/machineTypes")


@pytest.mark.slow
def test_attributes_of_an_instance_are_set_with_their_fingerprint(project):
    """The attributes of an instance are set by who read the present ones."""
    project.ok("POST", f"{EAST}/instances", body())
    project.passes(120)
    metadata = project.ok("GET", f"{EAST}/instances/lease")["metadata"]
    items = [*metadata["items"], {"key": "bezel-container", "value": "x"}]
    sent = {"fingerprint": metadata["fingerprint"], "items": items}
    project.ok("POST", f"{EAST}/instances/lease/setMetadata", sent)
    (spec,) = project.nodes.running.values()
    assert spec.metadata == {"startup-script": "#!/bin/bash", "bezel-container": "x"}
    assert project.ok("GET", f"{EAST}/instances/lease")["metadata"]["items"] == items
    error = project.refusal(412, "POST", f"{EAST}/instances/lease/setMetadata", sent)
    assert error["errors"][0]["reason"] == "conditionNotMet"
    project.refusal(400, "POST", f"{EAST}/instances/lease/setMetadata", {"items": []})
