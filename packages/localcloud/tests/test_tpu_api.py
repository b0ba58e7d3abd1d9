"""Cloud TPU: queued resources from their request to their end, their nodes, and what goes wrong on the way."""

import asyncio
import time

import pytest

from localcloud_support.in_process import COMPUTE, PARENT, Project, two_region_project

TPU = f"/tpu/v2alpha1/{PARENT}/locations"
EAST, WEST = f"{TPU}/us-east5-a", f"{TPU}/europe-west4-a"
RUN = 14_400


def body(node="lease", zone="us-east5-a", kind="v6e-4", model="FLEX_START", run=f"{RUN}s", valid="7200s", **changes):
    made = {
        "acceleratorType": kind,
        "runtimeVersion": "v2-alpha-tpuv6e",
        "networkConfig": {"enableExternalIps": False, "subnetwork": f"net-{zone.rpartition('-')[0]}"},
        "metadata": {"bezel-port": "8000"},
        "labels": {"managed-by": "bezel"},
        "tags": ["bezel-node"],
    }
    spec = {"parent": f"{PARENT}/locations/{zone}", "nodeId": node, "node": made | changes}
    duration = {"runDuration": {"maxRunDuration": run}} if run else {}
    policy = {"queueingPolicy": {"validUntilDuration": valid}} if valid else {}
    return {"tpu": {"nodeSpec": [spec]}, "provisioningModel": model} | duration | policy


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


def ask(project, name="lease", zone="us-east5-a", **options):
    query = {"queuedResourceId": name} | {key: options.pop(key) for key in ("requestId",) if key in options}
    return project.ok("POST", f"{TPU}/{zone}/queuedResources", body(name, zone, **options), **query)


def state(project, name="lease", base=EAST):
    return project.ok("GET", f"{base}/queuedResources/{name}")["state"]["state"]


def states(project, times, base=EAST):
    """The states that are seen after so many seconds each."""
    result = []
    for seconds in times:
        project.passes(seconds)
        result.append(state(project, base=base))
    return result


def outcome(project, operation):
    return project.ok("GET", f"/tpu/v2alpha1/{operation['name']}")


def put_on(project, kind, **parameters):
    return project.ok("POST", "/localcloud/faults", {"kind": kind, "parameters": parameters})


@pytest.mark.slow
def test_a_request_goes_from_stored_to_suspended_and_its_machine_with_it(project):
    operation = ask(project)
    assert not operation.get("done")
    assert states(project, [0, 10, 20]) == ["CREATING", "ACCEPTED", "PROVISIONING"]
    assert outcome(project, operation)["response"]["name"].endswith("/queuedResources/lease")
    node = project.ok("GET", f"{EAST}/nodes/lease")
    assert (node["state"], project.nodes.running) == ("CREATING", {})
    assert states(project, [90]) == ["ACTIVE"]
    node = project.ok("GET", f"{EAST}/nodes/lease")
    assert (node["state"], node["health"]) == ("READY", "HEALTHY")
    assert node["networkEndpoints"] == [{"ipAddress": "127.64.0.2", "port": 8470}]
    (spec,) = project.nodes.running.values()
    assert (spec.hardware, spec.address, spec.external_address) == ("v6e-4", "127.64.0.2", "")
    assert (dict(spec.metadata), spec.tags) == ({"bezel-port": "8000"}, ("bezel-node",))
    assert spec.subnetwork == f"{PARENT}/regions/us-east5/subnetworks/net-us-east5"
    assert states(project, [RUN - 1, 1, 40]) == ["ACTIVE", "SUSPENDING", "SUSPENDED"]
    assert project.nodes.calls == [("boot", "lease"), ("end", "lease")]
    project.refusal(404, "GET", f"{EAST}/nodes/lease")


def test_an_external_address_is_given_only_to_who_asks_for_one(project):
    ask(project, networkConfig={"network": "net", "enableExternalIps": True})
    project.passes(120)
    (endpoint,) = project.ok("GET", f"{EAST}/nodes/lease")["networkEndpoints"]
    assert endpoint["accessConfig"] == {"externalIp": "127.192.0.2"}
    assert next(iter(project.nodes.running.values())).external_address == "127.192.0.2"


def test_the_platforms_waits_go_by_faster_and_the_run_duration_does_not(tmp_path):
    project = Project(tmp_path, speed=60)
    project.network()
    ask(project)
    assert states(project, [2]) == ["ACTIVE"]
    assert states(project, [RUN - 3]) == ["ACTIVE"]
    assert states(project, [4]) == ["SUSPENDED"]
    project.close()


def test_without_capacity_a_request_waits_and_fails_with_the_zones_word(project):
    ask(project, zone="europe-west4-a")
    assert states(project, [10, 599], WEST) == ["WAITING_FOR_RESOURCES", "WAITING_FOR_RESOURCES"]
    project.passes(1)
    last_state = project.ok("GET", f"{WEST}/queuedResources/lease")["state"]
    assert last_state["state"] == "FAILED"
    assert last_state["failedData"]["error"]["code"] == 8
    assert "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" in last_state["failedData"]["error"]["message"]


def test_a_request_that_is_not_valid_any_more_fails(project):
    """A request that is not valid any more fails and one that is granted first does not."""
    for number in range(4):
        ask(project, f"first-{number}")
    ask(project, valid="500s")
    assert states(project, [300]) == ["WAITING_FOR_RESOURCES"]
    ask(project, "second", valid="3000s")
    assert states(project, [200]) == ["FAILED"]
    assert (
        "while the request was valid"
        in project.ok("GET", f"{EAST}/queuedResources/lease")["state"]["failedData"]["error"]["message"]
    )
    project.ok("DELETE", f"{EAST}/queuedResources/first-0", force="true")
    project.ok("GET", f"{EAST}/queuedResources/second")
    project.passes(90)
    assert state(project, "second") == "ACTIVE"


def test_a_name_is_free_only_when_its_deletion_is_done(project):
    ask(project)
    project.passes(120)
    queued = f"{EAST}/queuedResources/lease"
    assert "force" in project.refusal(400, "DELETE", queued)["message"]
    operation = project.ok("DELETE", queued, force="true")
    assert project.nodes.running == {}
    assert project.ok("GET", queued)["state"] == {"state": "DELETING", "stateInitiator": "USER", "deletingData": {}}
    assert project.ok("GET", f"{EAST}/nodes/lease")["state"] == "DELETING"
    assert project.ok("DELETE", queued, force="true")["name"] == operation["name"]
    again = {"queuedResourceId": "lease"}
    project.passes(59)
    assert "already exists" in project.refusal(409, "POST", f"{EAST}/queuedResources", body(), **again)["message"]
    project.passes(1)
    assert outcome(project, operation)["done"]
    for path in (queued, f"{EAST}/nodes/lease"):
        project.refusal(404, "GET", path)
    project.refusal(404, "DELETE", queued, force="true")
    ask(project)


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "deletable"), [(0, False), (10, True), (30, False), (120, True)])
def test_a_request_is_deleted_only_in_a_state_that_has_settled(project, seconds, deletable):
    ask(project)
    project.passes(seconds)
    answer = project.call("DELETE", f"{EAST}/queuedResources/lease", force="true")
    assert answer.is_success == deletable
    assert deletable or answer.json()["error"]["status"] == "FAILED_PRECONDITION"


def test_the_same_request_is_stored_once(project):
    """The same request is stored once and another of its name is refused."""
    number = "11111111-2222-3333-4444-555555555555"
    first = ask(project, requestId=number)
    assert ask(project, requestId=number)["name"] == first["name"]
    project.refusal(409, "POST", f"{EAST}/queuedResources", body(), queuedResourceId="lease")
    other = project.refusal(409, "POST", f"{EAST}/queuedResources", body("lease"), queuedResourceId="other")
    assert "nodes/lease" in other["message"]
    assert len(project.ok("GET", f"{EAST}/queuedResources")["queuedResources"]) == 1


def test_what_is_not_deleted_counts_in_the_quota_whatever_became_of_it(project):
    ask(project, "one", zone="europe-west4-a")
    put_on(project, "lease-quota", units=4)
    project.passes(700)
    assert state(project, "one", WEST) == "FAILED"
    error = project.refusal(
        429, "POST", f"{WEST}/queuedResources", body("two", "europe-west4-a"), queuedResourceId="two"
    )
    assert (
        "'TPUV6EPreemptiblePerProjectPerZoneForTPUAPI' exceeded. Limit: 4 in zone europe-west4-a; in use: 4"
        in error["message"]
    )
    ask(project, "two", zone="us-east5-a")
    ask(project, "three", zone="europe-west4-a", model="STANDARD", run="")
    project.ok("DELETE", f"{WEST}/queuedResources/one")
    project.passes(60)
    ask(project, "one", zone="europe-west4-a")


@pytest.mark.parametrize(
    ("status", "change", "says"),
    [
        (404, {"kind": "v6e-16"}, "Accelerator type 'v6e-16' not found"),
        (400, {"run": "599s"}, "between 10 minutes and 7 days"),
        (400, {"run": "604801s"}, "between 10 minutes and 7 days"),
        (400, {"run": ""}, "needs a maximum run duration"),
        (400, {"valid": "-1s"}, "valid_until_duration"),
        (400, {"node": "Lease"}, "node_id"),
        (400, {"runtimeVersion": "v1"}, "Runtime version"),
        (400, {"zone": "us-east5-b"}, "not in the queued resource's zone"),
        (404, {"networkConfig": {"network": "absent"}}, "networks/absent"),
        (404, {"networkConfig": {"subnetwork": "none"}}, "subnetworks/none"),
        (
            400,
            {"networkConfig": {"subnetwork": f"{PARENT}/regions/europe-west4/subnetworks/net-europe-west4"}},
            "region",
        ),
        (403, {"serviceAccount": {"email": "nobody@x"}}, "actAs"),
        (400, {"bootDiskConfig": {"diskSizeGb": "200"}}, "bootDiskConfig"),
        (400, {"model": "RESERVATION_BOUND"}, "RESERVATION_BOUND"),
    ],
)
def test_what_cannot_be_had_is_refused_at_once(refusing, status, change, says):
    options = {"node": "lease"} | change
    error = refusing.refusal(status, "POST", f"{EAST}/queuedResources", body(**options), queuedResourceId="lease")
    assert says in error["message"]
    assert "queuedResources" not in refusing.ok("GET", f"{EAST}/queuedResources")


@pytest.mark.slow
def test_a_zone_that_does_not_take_flex_start_says_so(project):
    """A zone that does not take flex start says so and one without TPUs is not there."""
    zone = "us-central1-b"
    query = {"queuedResourceId": "lease"}
    error = project.refusal(400, "POST", f"{TPU}/{zone}/queuedResources", body(zone=zone), **query)
    assert "FLEX_START provisioning model is not supported" in error["message"]
    assert "locations/us-west1-a" in project.refusal(403, "GET", f"{TPU}/us-west1-a/acceleratorTypes")["message"]
    assert "Zone '-'" in project.refusal(400, "POST", f"{TPU}/-/queuedResources", body(), **query)["message"]
    types = project.ok("GET", f"{EAST}/acceleratorTypes")["acceleratorTypes"]
    assert [one["type"] for one in types] == ["v6e-1", "v6e-4", "v6e-8"]
    assert project.ok("GET", f"{EAST}/runtimeVersions")["runtimeVersions"]
    assert project.ok("GET", f"{TPU}/us-east5-a")["locationId"] == "us-east5-a"
    assert len(project.ok("GET", TPU, pageSize=2)["locations"]) == 2


def test_who_has_not_enabled_the_api_gets_an_error_that_says_so(project):
    project.cloud.store.put("api", "tpu.googleapis.com", {"state": "DISABLED"})
    assert "Cloud TPU API has not been used" in project.refusal(403, "GET", f"{EAST}/queuedResources")["message"]


def test_a_machine_for_which_no_address_is_left_fails(project):
    network = f"{PARENT}/global/networks/net"
    small = {"name": "small", "network": network, "ipCidrRange": "10.65.0.0/29"}
    project.ok("POST", f"{COMPUTE}/regions/us-east5/subnetworks", small)
    for number in range(5):
        ask(project, f"m-{number}", kind="v6e-1", networkConfig={"subnetwork": "small"})
    project.passes(120)
    machine_states = [project.ok("GET", f"{EAST}/queuedResources/m-{number}")["state"] for number in range(5)]
    assert [one["state"] for one in machine_states] == ["ACTIVE"] * 4 + ["FAILED"]
    assert "no address is left" in machine_states[-1]["failedData"]["error"]["message"]
    assert len({spec.address for spec in project.nodes.running.values()}) == 4


def test_a_topology_buys_the_slice_of_its_shape(project):
    spec = body()
    node = spec["tpu"]["nodeSpec"][0]["node"]
    del node["acceleratorType"]
    node["acceleratorConfig"] = {"type": "V6E", "topology": "2x4"}
    project.ok("POST", f"{EAST}/queuedResources", spec, queuedResourceId="lease")
    project.passes(120)
    assert project.ok("GET", f"{EAST}/nodes/lease")["acceleratorType"] == "v6e-8"
    node["acceleratorConfig"]["topology"] = "4x4"
    assert "4x4" in project.refusal(404, "POST", f"{EAST}/queuedResources", spec, queuedResourceId="b")["message"]


def test_a_node_tells_what_it_has_written_by_namespace_and_key(project):
    ask(project)
    project.passes(120)
    name = f"{PARENT}/locations/us-east5-a/nodes/lease"
    project.nodes.attributes[name] = {"bezel/image": "{}", "bezel/network": "done", "other/x": "1"}
    ask_for = f"{EAST}/nodes/lease:getGuestAttributes"

    def keys(path):
        (worker,) = project.ok("POST", ask_for, {"queryPath": path})["guestAttributes"]
        return [(item["namespace"], item["key"]) for item in worker["queryValue"]["items"]]

    assert keys("bezel/") == [("bezel", "image"), ("bezel", "network")]
    assert keys("bezel/network") == [("bezel", "network")]
    assert keys("none/") == []
    project.refusal(404, "POST", f"{EAST}/nodes/absent:getGuestAttributes", {})


def test_a_node_that_is_deleted_leaves_its_request_suspended(project):
    ask(project)
    project.passes(60)
    assert "PROVISIONING" in project.refusal(400, "DELETE", f"{EAST}/nodes/lease")["message"]
    project.passes(60)
    project.ok("DELETE", f"{EAST}/nodes/lease")
    assert project.nodes.running == {}
    project.passes(40)
    project.refusal(404, "GET", f"{EAST}/nodes/lease")
    assert state(project) == "SUSPENDED"
    project.ok("POST", f"{EAST}/queuedResources/lease:reset", {})
    assert states(project, [120]) == ["ACTIVE"]
    assert "ACTIVE" in project.refusal(400, "POST", f"{EAST}/queuedResources/lease:reset", {})["message"]


def test_a_restart_boots_what_runs_and_goes_on_with_what_waits(project):
    ask(project)
    project.passes(120)
    ask(project, "other")
    assert state(project) == "ACTIVE"
    project.restart()
    assert list(project.nodes.running) == [f"{PARENT}/locations/us-east5-a/nodes/lease"]
    project.passes(120)
    assert state(project, "other") == "ACTIVE"
    project.passes(RUN)
    project.restart()
    assert project.nodes.running == {}


@pytest.mark.slow
def test_a_machine_boots_and_ends_though_nobody_looks(project):
    ask(project)

    async def until(count):
        deadline = time.monotonic() + 60
        while len(project.nodes.running) != count:
            assert time.monotonic() < deadline, project.nodes.calls
            await asyncio.sleep(0.01)

    async def live():
        project.cloud.machines.resume()
        project.passes(120)
        await until(1)
        project.passes(RUN)
        await until(0)
        await project.cloud.machines.close()

    asyncio.run(live())


def test_a_subnetwork_is_held_by_the_machines_in_it(project):
    ask(project)
    project.passes(120)
    path = f"{COMPUTE}/regions/us-east5/subnetworks/net-us-east5"
    state(project)
    assert "nodes/lease" in project.refusal(400, "DELETE", path)["message"]
    project.ok("DELETE", f"{EAST}/queuedResources/lease", force="true")
    project.passes(60)
    project.refusal(404, "GET", f"{EAST}/queuedResources/lease")
    project.ok("DELETE", path)


def test_a_stock_out_put_on_strikes_its_zone_and_no_other(project):
    put_on(project, "lease-stock-out", zone="us-east5-*")
    ask(project)
    assert states(project, [10, 600]) == ["WAITING_FOR_RESOURCES", "FAILED"]
    error = project.ok("GET", f"{EAST}/queuedResources/lease")["state"]["failedData"]["error"]
    assert "ZONE_RESOURCE_POOL_EXHAUSTED:" in error["message"]
    put_on(project, "lease-zone-refused", zone="us-east5-a")
    project.refusal(400, "POST", f"{EAST}/queuedResources", body("b"), queuedResourceId="b")
    ask(project, "c", zone="us-east5-b")


def test_a_machine_that_is_never_ready_fails_late(project):
    """A machine that is never ready fails late and a slow deletion takes longer."""
    put_on(project, "lease-never-active", seconds=3600)
    ask(project)
    assert states(project, [120, 3509]) == ["PROVISIONING", "PROVISIONING"]
    assert states(project, [1]) == ["FAILED"]
    put_on(project, "lease-slow-delete", seconds=1000)
    project.ok("DELETE", f"{EAST}/queuedResources/lease")
    assert states(project, [1059]) == ["DELETING"]
    project.passes(1)
    project.refusal(404, "GET", f"{EAST}/queuedResources/lease")


@pytest.mark.slow
def test_a_request_that_timed_out_is_filled_later(project):
    """A request that was answered with a timeout is filled later unless its name is taken."""
    put_on(project, "lease-late-fill", seconds=4200)
    for name in ("late", "taken"):
        project.refusal(504, "POST", f"{EAST}/queuedResources", body(name), queuedResourceId=name)
        project.refusal(404, "GET", f"{EAST}/queuedResources/{name}")
    project.ok("DELETE", "/localcloud/faults")
    ask(project, "taken", kind="v6e-1")
    project.passes(4320)
    assert state(project, "late") == "ACTIVE"
    row = project.ok("GET", f"{EAST}/queuedResources/taken")
    assert row["tpu"]["nodeSpec"][0]["node"]["acceleratorType"] == "v6e-1"


@pytest.mark.parametrize(("kind", "node"), [("lease-preempted", "PREEMPTED"), ("lease-ends", "DELETING")])
def test_a_machine_that_is_taken_away_or_whose_time_is_over_ends_at_once(project, kind, node):
    project.refusal(400, "POST", "/localcloud/faults", {"kind": kind})
    ask(project)
    project.passes(120)
    assert put_on(project, kind)["struck"] == [f"{PARENT}/locations/us-east5-a/queuedResources/lease"]
    assert project.nodes.running == {}
    assert project.ok("GET", f"{EAST}/nodes/lease")["state"] == node
    assert states(project, [40]) == ["SUSPENDED"]
    assert project.call("GET", f"{EAST}/nodes/lease").is_success == (node == "PREEMPTED")


def patch(project, body, mask="metadata"):
    return project.call("PATCH", f"{EAST}/nodes/lease", body, **({"updateMask": mask} if mask else {}))


def test_a_patched_node_reads_its_new_metadata(project):
    """A patched node reads its new metadata and its request stays as it was."""
    ask(project)
    project.passes(120)
    assert patch(project, {"metadata": {"bezel-port": "8000", "bezel-container": "x"}}).is_success
    (spec,) = project.nodes.running.values()
    assert spec.metadata == {"bezel-port": "8000", "bezel-container": "x"}
    node = project.ok("GET", f"{EAST}/nodes/lease")
    assert node["metadata"] == spec.metadata
    assert node["labels"] == {"managed-by": "bezel"}
    request = project.ok("GET", f"{EAST}/queuedResources/lease")
    assert request["tpu"]["nodeSpec"][0]["node"]["metadata"] == {"bezel-port": "8000"}
    project.restart()
    assert next(iter(project.nodes.running.values())).metadata["bezel-container"] == "x"
    assert patch(project, {"labels": {}}, "labels").is_success
    assert "labels" not in project.ok("GET", f"{EAST}/nodes/lease")


def test_the_node_of_a_request_that_is_reset_is_made_as_it_was_requested(project):
    ask(project)
    project.passes(120)
    assert patch(project, {"metadata": {"bezel-container": "x"}}).is_success
    project.ok("DELETE", f"{EAST}/nodes/lease")
    project.passes(60)
    project.ok("POST", f"{EAST}/queuedResources/lease:reset", {})
    project.passes(300)
    assert project.ok("GET", f"{EAST}/nodes/lease")["metadata"] == {"bezel-port": "8000"}


def test_a_patch_needs_a_mask_and_a_ready_node(project):
    """A patch needs a mask of what can be changed and a node that is ready."""
    ask(project)
    project.passes(25)
    assert patch(project, {"metadata": {}}).json()["error"]["status"] in {"NOT_FOUND", "FAILED_PRECONDITION"}
    project.passes(120)
    for mask, status in ((None, 400), ("acceleratorType", 400), ("nonsense", 400), ("tags", 400)):
        assert patch(project, {"metadata": {}}, mask).status_code == status
    assert project.ok("GET", f"{EAST}/nodes/lease")["metadata"] == {"bezel-port": "8000"}
