"""TPU API's JSON of queued resources and nodes. Pure."""

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.machines.lifecycle import Life, failure_error
from bezel_localcloud.services.compute.vpc import loopback

_PORT = 8470  # port in every TPU node's endpoint
# State of a queued resource -> its node's.
_NODE_STATES = {"PROVISIONING": "CREATING", "ACTIVE": "READY", "SUSPENDING": "DELETING", "DELETING": "DELETING"}


def queued_resource(name: str, row: Json) -> Json:
    """A queued resource as requested, with its state."""
    life = Life(**row["life"])
    data = {"failedData": {"error": failure(row).rpc_status()}} if life.state == "FAILED" else {_field(life.state): {}}
    state_data = {} if life.state == "WAITING_FOR_RESOURCES" else data
    state = {"state": life.state, "stateInitiator": "USER" if life.by_user else "SERVICE"} | state_data
    return dict(row["request"]) | {"name": name, "createTime": timestamp(life.created), "state": state}


def failure(row: Json) -> ApiError:
    """The error of a failed request."""
    return failure_error(row["life"]["failure"], row["zone"], row["goods"], row["said"])


def node(name: str, node_row: Json, row: Json, address_of_external: str) -> Json:
    """A node of a queued resource.

    Args:
        name: Name of the node.
        node_row: Row of the node.
        row: Row of its queued resource.
        address_of_external: Its external address, "" for none.
    """
    life = Life(**row["life"])
    patched = row.get("patched", {})
    requested = dict(row["request"]["tpu"]["nodeSpec"][0]["node"]) | patched
    requested = {key: value for key, value in requested.items() if value or key not in patched}
    endpoint: Json = {"ipAddress": loopback(node_row["place"]["address"]), "port": _PORT}
    if address_of_external:
        endpoint["accessConfig"] = {"externalIp": address_of_external}
    ready = life.state == "ACTIVE"
    model = row["model"]
    scheduling: Json = {"preemptible": model == "SPOT", "spot": model == "SPOT"} | requested.get("schedulingConfig", {})
    if life.ends_at is not None:
        scheduling["terminationTimestamp"] = timestamp(life.ends_at)
    network = {"network": node_row["place"]["network"], "subnetwork": node_row["place"]["subnetwork"]}
    return requested | {
        "name": name,
        "acceleratorType": row["goods"],
        "acceleratorConfig": {"type": "V6E", "topology": row["topology"]},
        "state": "PREEMPTED" if life.lost else _NODE_STATES.get(life.state, "DELETING"),
        "health": "HEALTHY" if ready else "HEALTH_UNSPECIFIED",
        "apiVersion": "V2_ALPHA1",
        "createTime": timestamp(node_row["created"]),
        "networkConfig": requested.get("networkConfig", {}) | network,
        "networkEndpoints": [endpoint],
        "queuedResource": node_row["queuedResource"],
        "schedulingConfig": scheduling,
        "id": row["number"],
    }


def _field(state: str) -> str:
    return f"{state.lower()}Data"
