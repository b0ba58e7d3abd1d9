"""The trials of Compute Engine's and Cloud TPU's methods, for the table of every method."""

from cloud_client import PARENT

COMPUTE = f"/compute/v1/{PARENT}"
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
        trial.refused(409, "POST", base, body | {"name": "tried"}, says="alreadyExists")
        trial.refused(400, "POST", base, body | {"name": "Tried"}, says="match of regex")
        trial.refused(400, "POST", base, body | {"name": "x"}, requestId="x", says="UUID")
        one, none = f"{base}/tried", f"{base}/absent"
        fingerprint = trial("GET", one, missing=none).get("fingerprint")
        trial("GET", base, maxResults=1)
        trial("PATCH", one, change | ({"fingerprint": fingerprint} if fingerprint else {}), missing=none)
        if "firewalls" in path or "routers" in path:
            trial("PUT", one, body | {"name": "tried"}, missing=none)
        if "subnetworks" in path:
            setter = "/setPrivateIpGoogleAccess"
            trial("POST", one + setter, {"privateIpGoogleAccess": True}, missing=none + setter)
    trial.refused(400, "DELETE", f"{COMPUTE}/global/networks/tried", says="resourceInUseByAnotherResource")
    trial.refused(400, "GET", f"{COMPUTE}/regions/moon/routers", says="Unknown region")


def machines(trial):
    for path, _, _ in reversed(_KINDS):
        trial("DELETE", f"{COMPUTE}/{path}/tried", missing=f"{COMPUTE}/{path}/absent")
