"""The trials of Compute Engine's and Cloud TPU's methods, for the table of every method."""

from ipaddress import ip_network

from localcloud_support.client import PARENT, until

COMPUTE = f"/compute/v1/{PARENT}"
ZONE = f"{COMPUTE}/zones/us-east5-a"
TPU = f"/tpu/v2alpha1/{PARENT}/locations/us-east5-a"
NETWORK = f"{PARENT}/global/networks/tried"
EAST = "regions/us-east5"
# path, body, change
_KINDS = (
    ("global/networks", {"autoCreateSubnetworks": False}, {"routingConfig": {"routingMode": "GLOBAL"}}),
    (f"{EAST}/subnetworks", {"network": NETWORK, "ipCidrRange": "10.64.0.0/20"}, {"logConfig": {"enable": True}}),
    ("global/firewalls", {"network": NETWORK, "allowed": [{"IPProtocol": "tcp"}]}, {"priority": 7}),
    (f"{EAST}/routers", {"network": NETWORK}, {"description": "d"}),
)


def networks(trial):
    trial("GET", COMPUTE)
    for places, one in (("regions", "us-east5"), ("zones", "us-east5-a")):
        trial("GET", f"{COMPUTE}/{places}", maxResults=2)
        trial("GET", f"{COMPUTE}/{places}/{one}", missing=f"{COMPUTE}/{places}/moon")
    for path, body, change in _KINDS:
        base = f"{COMPUTE}/{path}"
        operation = trial("POST", base, body | {"name": "tried"})
        operations = f"{COMPUTE}/{path.rpartition('/')[0]}/operations"
        if path in {"global/networks", f"{EAST}/subnetworks"}:
            for verb, end in (("GET", ""), ("POST", "/wait")):
                trial(verb, f"{operations}/{operation['name']}{end}", missing=f"{operations}/absent{end}")
        trial.refuse(409, "POST", base, body | {"name": "tried"}, says="alreadyExists")
        trial.refuse(400, "POST", base, body | {"name": "Tried"}, says="match of regex")
        trial.refuse(400, "POST", base, body | {"name": "x"}, requestId="x", says="UUID")
        one, none = f"{base}/tried", f"{base}/absent"
        fingerprint = trial("GET", one, missing=none).get("fingerprint")
        trial("GET", base, maxResults=1)
        trial("PATCH", one, change | ({"fingerprint": fingerprint} if fingerprint else {}), missing=none)
        if "firewalls" in path or "routers" in path:
            trial("PUT", one, body | {"name": "tried"}, missing=none)
        if "subnetworks" in path:
            setter = "/setPrivateIpGoogleAccess"
            trial("POST", one + setter, {"privateIpGoogleAccess": True}, missing=none + setter)
            expand, larger = "/expandIpCidrRange", {"ipCidrRange": str(ip_network(body["ipCidrRange"]).supernet())}
            trial("POST", one + expand, larger, missing=none + expand)
            trial.refuse(400, "POST", one + expand, {"ipCidrRange": body["ipCidrRange"]}, says="must be larger")
            _policies(trial, one, none)
        if path == "global/networks":
            trial("GET", f"{one}/getEffectiveFirewalls", missing=f"{none}/getEffectiveFirewalls")
    trial.refuse(400, "DELETE", f"{COMPUTE}/global/networks/tried", says="resourceInUseByAnotherResource")
    trial.refuse(400, "GET", f"{COMPUTE}/regions/moon/routers", says="Unknown region")


def _policies(trial, one, none):
    """The three methods of a policy as Compute Engine names them."""
    policy = trial("GET", f"{one}/getIamPolicy", missing=f"{none}/getIamPolicy")
    trial("POST", f"{one}/setIamPolicy", {"policy": policy}, missing=f"{none}/setIamPolicy")
    asked = {"permissions": ["compute.instances.get"]}
    trial("POST", f"{one}/testIamPermissions", asked, missing=f"{none}/testIamPermissions")


def machines(trial):
    trial.owner.enable("tpu")
    try_queued(trial)
    instances(trial)
    for path, _, _ in reversed(_KINDS):
        trial("DELETE", f"{COMPUTE}/{path}/tried", missing=f"{COMPUTE}/{path}/absent")


def try_queued(trial):
    base, one, none = f"{TPU}/queuedResources", f"{TPU}/queuedResources/tried", f"{TPU}/queuedResources/absent"
    trial("GET", TPU.rpartition("/")[0], pageSize=2)
    trial("GET", TPU)
    trial.refuse(403, "GET", TPU.replace("us-east5-a", "moon"), says="locations/moon")
    for kind in ("acceleratorTypes", "runtimeVersions"):
        trial("GET", f"{TPU}/{kind}", pageSize=1)
        trial.refuse(400, "GET", f"{TPU}/{kind}".replace("us-east5-a", "-"), says="wildcard")
    body = _queued_body()
    operation = trial("POST", base, body, queuedResourceId="tried")["name"]
    trial("GET", f"/tpu/v2alpha1/{operation}", missing=f"{TPU}/operations/absent")
    trial.refuse(409, "POST", base, body, queuedResourceId="tried")
    trial.refuse(400, "POST", base, body, queuedResourceId="no/id", says="queued_resource_id")
    trial.refuse(404, "POST", base, _queued_body(acceleratorType="v6e-256"), queuedResourceId="x", says="v6e-256")
    short = body | {"runDuration": {"maxRunDuration": "60s"}}
    trial.refuse(400, "POST", base, short, queuedResourceId="x", says="10 minutes")
    trial.refuse(400, "POST", base, body | {"bestEffort": {}, "reservationName": "r"}, queuedResourceId="x")
    trial("GET", base, pageSize=1)
    until(lambda: trial.owner.get(one).json()["state"]["state"] == "ACTIVE")
    trial("GET", one, missing=none)
    node = f"{TPU}/nodes/tried"
    trial("GET", node, missing=f"{TPU}/nodes/absent")
    trial("GET", f"{TPU}/nodes", pageSize=1)
    attributes = ":getGuestAttributes"
    trial("POST", node + attributes, {"queryPath": "bezel/"}, missing=f"{TPU}/nodes/absent{attributes}")
    trial.refuse(400, "POST", node + attributes, {"workerIds": ["7"]}, says="one worker")
    trial("PATCH", node, {"metadata": {"key": "value"}}, updateMask="metadata", missing=f"{TPU}/nodes/absent")
    trial.refuse(400, "PATCH", node, {"metadata": {}}, says="update_mask")
    trial.refuse(400, "PATCH", node, {"tags": ["t"]}, updateMask="tags", says="tags")
    trial.refuse(400, "DELETE", one, says="force")
    trial.refuse(400, "POST", f"{one}:reset", {}, says="neither SUSPENDED nor FAILED")
    trial("GET", f"{TPU}/operations", pageSize=1)
    trial.refuse(400, "GET", f"{TPU}/operations", filter="done=true", says="filter")
    done = trial("DELETE", node, missing=f"{TPU}/nodes/absent")["name"]
    trial("POST", f"/tpu/v2alpha1/{done}:cancel", {}, missing=f"{TPU}/operations/absent:cancel")
    trial("DELETE", f"/tpu/v2alpha1/{done}", missing=f"{TPU}/operations/absent")
    until(lambda: trial.owner.get(one).json()["state"]["state"] == "SUSPENDED")
    trial("POST", f"{one}:reset", {}, missing=f"{none}:reset")
    until(lambda: trial.owner.get(one).json()["state"]["state"] == "ACTIVE")
    trial("DELETE", one, force="true", missing=none)
    until(lambda: trial.owner.get(one).status_code == 404)


def _queued_body(**changes):
    node = {"acceleratorType": "v6e-1", "runtimeVersion": "v2-alpha-tpuv6e", "networkConfig": {"network": "tried"}}
    spec = {"parent": f"{PARENT}/locations/us-east5-a", "nodeId": "tried", "node": node | changes}
    model = {"provisioningModel": "FLEX_START", "runDuration": {"maxRunDuration": "3600s"}}
    return {"tpu": {"nodeSpec": [spec]}} | model


def instances(trial):
    base, one, none = (f"{ZONE}/{path}" for path in ("instances", "instances/tried", "instances/absent"))
    trial("GET", f"{ZONE}/machineTypes", maxResults=1)
    trial("GET", f"{ZONE}/machineTypes/ct6e-standard-1t", missing=f"{ZONE}/machineTypes/absent")
    body = {
        "name": "tried",
        "machineType": "zones/us-east5-a/machineTypes/ct6e-standard-1t",
        "disks": [{"boot": True, "initializeParams": {"sourceImage": "projects/p/global/images/family/f"}}],
        "networkInterfaces": [{"network": NETWORK}],
        "scheduling": {"onHostMaintenance": "TERMINATE", "provisioningModel": "SPOT"},
    }
    operation = trial("POST", base, body)["name"]
    operations = f"{ZONE}/operations"
    for verb, end in (("GET", ""), ("POST", "/wait")):
        trial(verb, f"{operations}/{operation}{end}", missing=f"{operations}/absent{end}")
    trial.refuse(409, "POST", base, body, says="alreadyExists")
    trial.refuse(400, "POST", base, body | {"name": "x", "disks": []}, says="one disk")
    trial.refuse(400, "POST", base, body | {"name": "x", "hostname": "h"}, says="hostname")
    trial.refuse(400, "GET", base.replace("us-east5-a", "moon"), says="Unknown zone")
    until(lambda: trial.owner.get(one).json()["status"] == "RUNNING")
    trial("GET", one, missing=none)
    trial("GET", base, maxResults=1)
    trial.refuse(400, "GET", base, filter="id > 5", says="filter")
    trial("GET", f"{COMPUTE}/aggregated/instances", maxResults=1)
    trial("GET", f"{one}/serialPort", start=1, missing=f"{none}/serialPort")
    attributes = {"fingerprint": trial.owner.get(one).json()["metadata"]["fingerprint"], "items": []}
    trial("POST", f"{one}/setMetadata", attributes, missing=f"{none}/setMetadata")
    trial.refuse(400, "POST", f"{one}/setMetadata", {"items": []}, says="fingerprint")
    trial.refuse(412, "POST", f"{one}/setMetadata", attributes | {"fingerprint": "c3RhbGU="}, says="fingerprint")
    tags = {"fingerprint": trial.owner.get(one).json()["tags"]["fingerprint"], "items": ["tried"]}
    trial("POST", f"{one}/setTags", tags, missing=f"{none}/setTags")
    door = {"networkInterface": "nic0"}
    trial("POST", f"{one}/addAccessConfig", {"name": "door"}, missing=f"{none}/addAccessConfig", **door)
    closed = {**door, "accessConfig": "door"}
    trial("POST", f"{one}/deleteAccessConfig", missing=f"{none}/deleteAccessConfig", **closed)
    _policies(trial, one, none)
    # No machine of this daemon writes anything.
    trial.refuse(404, "GET", f"{one}/getGuestAttributes", queryPath="bezel/")
    trial("DELETE", one, missing=none)
    until(lambda: trial.owner.get(one).status_code == 404)
