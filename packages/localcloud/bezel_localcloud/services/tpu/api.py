"""Cloud TPU v2alpha1 and v2: queued resources, their nodes, and the offer of a zone.

Both versions have the same handlers; only v2alpha1 has fields for flex-start. Leaves out the later states of a request:
see bezel_localcloud/services/machines/reconciler.py.
"""

from bezel_localcloud.core.errors import ApiError, NotServedError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.operations import EMPTY
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.http.methods import method_of
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.machines import capacity
from bezel_localcloud.machines.lifecycle import Life, move, new_life
from bezel_localcloud.routing import idempotency
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.machines import tpu_json
from bezel_localcloud.services.machines.reconciler import NODE, QUEUED, external_address
from bezel_localcloud.services.machines.requests import begin, guest_attributes, new_row
from bezel_localcloud.services.tpu.requests import RUNTIMES, parse

# The TPU slices that each zone offers.
_ZONES = {
    name: sorted(kind for kind in zone.stock if capacity.goods()[kind].topology)
    for name, zone in capacity.zones().items()
}
api = Api("tpu.googleapis.com", "Cloud TPU API", locations=frozenset(name for name, kinds in _ZONES.items() if kinds))
_PROJECT = "/tpu/v2alpha1/projects/{project:id}"
_LOCATION = _PROJECT + "/locations/{location:id}"
_QUEUED = _LOCATION + "/queuedResources/{queuedResource:id}"
_NODE = _LOCATION + "/nodes/{node:id}"
_PARENT = "projects/{project}/locations/{location}"
_LISTS = "pageSize pageToken"
# Fields of a node that a PATCH changes. Source: the reference of UpdateNodeRequest; tags and external addresses, which
# it names too, change a machine's network, and are not served.
_PATCHED: Json = {"description": "", "labels": {}, "metadata": {}}
_CREATE, _CREATE_QUERY = "tpu.queuedResources.create", "queuedResourceId requestId"
_UPDATE_SECONDS = 5.0  # of the platform's time; localcloud's own
# States in which a request accepts no calls: it has to settle first.
_UNSETTLED = {"CREATING", "PROVISIONING"}
_WITHOUT_NODES = {"ACCEPTED", "WAITING_FOR_RESOURCES", "FAILED", "SUSPENDED"}


@api.route("POST", _LOCATION + "/queuedResources", needs=_CREATE, query=_CREATE_QUERY, body="queuedResource")
def create(call: Call) -> Json:
    """Store a request for a node; its state shows later whether it gets capacity."""
    call.cloud.machines.advance()
    return call.cloud.operations.get(idempotency.once(call, lambda: _begin_create(call)))


def _begin_create(call: Call) -> str:
    zone, queued_id = call.param("location"), call.query("queuedResourceId")
    if zone not in api.locations:
        raise invalid(f"Zone '{zone}' is not supported: use a zone with TPUs.", ("parent", "is not a zone with TPUs"))
    # Every zone with TPUs offers each slice: only the provisioning models differ.
    request, name = parse(call.body, queued_id, zone), f"{call.name(_PARENT)}/queuedResources/{queued_id}"
    body = {key: value for key, value in call.body.items() if key not in {"name", "state", "createTime"}}
    row, node = new_row(call, request, body) | {"version": _version(call)}, request.name
    call.check_absent(QUEUED, name, f"Resource '{name}' already exists")
    call.check_absent(NODE, node, f"Resource '{node}' already exists")
    if any(other["machine"]["name"] == node for _, other in call.cloud.store.rows(QUEUED)):
        raise ApiError("ALREADY_EXISTS", f"Resource '{node}' already exists")
    return begin(call, QUEUED, name, request, row, _metadata(call, name, "create"))


@api.route("GET", _LOCATION + "/queuedResources", needs="tpu.queuedResources.list", query=_LISTS)
def list_queued(call: Call) -> Json:
    """Queued resources of a zone, or of all."""
    call.cloud.machines.advance()
    return call.page([(n, tpu_json.queued_resource(n, row)) for n, row in _rows(call, QUEUED)], "queuedResources")


@api.route("GET", _QUEUED, needs="tpu.queuedResources.get")
def get_queued(call: Call) -> Json:
    """One queued resource."""
    return tpu_json.queued_resource(*_find_queued(call))


@api.route("DELETE", _QUEUED, needs="tpu.queuedResources.delete", query="force requestId")
def delete_queued(call: Call) -> Json:
    """Delete a queued resource, by force with its node; its id is free when the operation is done."""
    return call.cloud.operations.get(idempotency.once(call, lambda: _begin_delete(call)))


def _begin_delete(call: Call) -> str:
    name, row = _find_queued(call)
    life = Life(**row["life"])
    if life.state == "DELETING":
        return str(row["deletion"])
    if life.state in _UNSETTLED:
        raise _unfit(f"Cannot delete queued resource '{name}' in state {life.state}: wait until it has settled.")
    if life.state not in _WITHOUT_NODES and not call.flag("force"):
        raise _unfit(f"Cannot delete queued resource '{name}' in state {life.state} with its nodes: use force.")
    row |= {"deletion": call.cloud.operations.begin(call.name(_PARENT), _metadata(call, name, "delete"))}
    call.cloud.machines.move(QUEUED, name, row, move(life, "DELETING", call.cloud.pace.now(), by_user=True))
    return str(row["deletion"])


@api.route("POST", _QUEUED + ":reset", needs="tpu.queuedResources.update")
def reset_queued(call: Call) -> Json:
    """Let a queued resource whose time is over, or that failed, wait for capacity again."""
    name, row = _find_queued(call)
    life, now = Life(**row["life"]), call.cloud.pace.now()
    if life.state not in {"SUSPENDED", "FAILED"}:
        raise _unfit(
            f"Cannot reset queued resource '{name}' in state {life.state}: it is neither SUSPENDED nor FAILED."
        )
    valid_until = None if life.valid_until is None else now + life.valid_until - life.created
    again = new_life(now, valid_until, life.run_seconds)
    operation = call.cloud.operations.begin(call.name(_PARENT), _metadata(call, name, "reset"))
    # The next node is made as it was requested, without what was patched of the last one.
    requested = row["request"]["tpu"]["nodeSpec"][0]["node"].get("metadata", {})
    fresh = {"operation": operation, "said": "", "patched": {}, "machine": row["machine"] | {"metadata": requested}}
    call.cloud.machines.move(QUEUED, name, row | fresh, again)
    return call.cloud.operations.get(operation)


@api.route("GET", _LOCATION + "/nodes", needs="tpu.nodes.list", query=_LISTS)
def list_nodes(call: Call) -> Json:
    """Nodes of a zone, or of all."""
    call.cloud.machines.advance()
    return call.page([(name, _node_json(call, name, row)) for name, row in _rows(call, NODE)], "nodes")


@api.route("GET", _NODE, needs="tpu.nodes.get")
def get_node(call: Call) -> Json:
    """One node."""
    return _node_json(call, *_find_node(call))


@api.route("PATCH", _NODE, needs="tpu.nodes.update", query="updateMask", body="node")
def patch_node(call: Call) -> Json:
    """Change fields of a node: its machine reads new metadata at once; its queued resource stays as it was requested.

    Raises:
        ApiError: INVALID_ARGUMENT without a mask or for other fields, FAILED_PRECONDITION for a node that is not ready.
    """
    name, node = _find_node(call)
    row: Json = call.cloud.store.get(QUEUED, node["queuedResource"]) or {}
    if not (mask := call.mask()):
        raise invalid("update_mask is required.", ("update_mask", "must be set"))
    if unserved := sorted(set(mask) & {"tags", "networkConfig.enable_external_ips", "networkConfig.enableExternalIps"}):
        raise NotServedError(f"localcloud does not serve changes of a node's {', '.join(unserved)}.")
    if (state := row["life"]["state"]) != "ACTIVE":
        raise _unfit(f"Cannot update node '{name}' while its queued resource is in state {state}.")
    requested = row["request"]["tpu"]["nodeSpec"][0]["node"] | row.get("patched", {})
    patched = _PATCHED | apply_mask(requested, call.body, mask, "tpu.Node", _PATCHED.keys())
    call.cloud.machines.set_metadata(QUEUED, node["queuedResource"], row, patched["metadata"], patched=patched)
    response = {"@type": f"type.googleapis.com/google.cloud.tpu.{_version(call)}.Node"} | _node_json(call, name, node)
    metadata = _metadata(call, name, "update")
    return call.cloud.operations.begin_timed(call.name(_PARENT), metadata, response, _UPDATE_SECONDS)


@api.route("DELETE", _NODE, needs="tpu.nodes.delete", query="requestId")
def delete_node(call: Call) -> Json:
    """Delete a node; its queued resource is suspended and stays."""
    return call.cloud.operations.get(idempotency.once(call, lambda: _begin_node_delete(call)))


def _begin_node_delete(call: Call) -> str:
    name, node = _find_node(call)
    queued = node["queuedResource"]
    row: Json = call.cloud.store.get(QUEUED, queued) or {}
    life, now = Life(**row["life"]), call.cloud.pace.now()
    if life.state not in {"ACTIVE", "SUSPENDED"}:
        raise _unfit(f"Cannot delete node '{name}' while its queued resource is in state {life.state}.")
    state = "SUSPENDING" if life.state == "ACTIVE" else "SUSPENDED"
    call.cloud.machines.move(QUEUED, queued, row, move(life, state, now, by_user=True, lost=False))
    metadata, seconds = _metadata(call, name, "delete"), capacity.waits()["suspending"]
    return str(call.cloud.operations.begin_timed(call.name(_PARENT), metadata, EMPTY, seconds)["name"])


@api.route("POST", _NODE + ":getGuestAttributes", needs="tpu.nodes.getGuestAttributes")
def get_guest_attributes(call: Call) -> Json:
    """Guest attributes that the machine wrote: of `namespace/`, of `namespace/key`, or all."""
    name, _ = _find_node(call)
    path = call.body.get("queryPath", "")
    if call.body.get("workerIds", ["0"]) not in ([], ["0"]):
        raise invalid("The node has one worker: 0.", ("worker_ids", "0"))
    items = guest_attributes(call, name, path)
    return {"guestAttributes": [{"queryPath": path, "queryValue": {"items": items}}]}


serve_operations(api, _LOCATION, _PARENT, "get list cancel delete", needs="tpu.operations", of="google.cloud.tpu.")


@api.route("GET", _PROJECT + "/locations", needs="tpu.locations.list", query=_LISTS)
def list_locations(call: Call) -> Json:
    """Zones that have TPUs."""
    return call.page([(zone, _location(zone)) for zone in sorted(api.locations)], "locations")


@api.route("GET", _LOCATION, needs="tpu.locations.get")
def get_location(call: Call) -> Json:
    """One zone."""
    return _location(_one_zone(call))


@api.route("GET", _LOCATION + "/acceleratorTypes", needs="tpu.acceleratortypes.list", query=_LISTS)
def list_accelerator_types(call: Call) -> Json:
    """Slices that a zone offers, whether or not one is in stock."""
    zone = _one_zone(call)
    parent = f"projects/{PROJECT}/locations/{zone}/acceleratorTypes"
    shapes = {kind: {"type": "V6E", "topology": capacity.goods()[kind].topology} for kind in _ZONES[zone]}
    types = [
        (kind, {"name": f"{parent}/{kind}", "type": kind, "acceleratorConfigs": [shape]})
        for kind, shape in shapes.items()
    ]
    return call.page(types, "acceleratorTypes")


@api.route("GET", _LOCATION + "/runtimeVersions", needs="tpu.runtimeversions.list", query=_LISTS)
def list_runtime_versions(call: Call) -> Json:
    """Runtime versions: the images of machines."""
    parent = f"projects/{PROJECT}/locations/{_one_zone(call)}/runtimeVersions"
    versions = [(version, {"name": f"{parent}/{version}", "version": version}) for version in sorted(RUNTIMES)]
    return call.page(versions, "runtimeVersions")


def _metadata(call: Call, target: str, verb: str) -> Json:
    now = timestamp(call.cloud.pace.now())
    kind = f"type.googleapis.com/google.cloud.tpu.{_version(call)}.OperationMetadata"
    return {"@type": kind, "createTime": now, "target": target, "verb": verb, "apiVersion": _version(call)}


def _version(call: Call) -> str:
    return call.request.url.path.split("/")[2]


def _rows(call: Call, kind: str) -> list[tuple[str, Json]]:
    location, plural = call.param("location"), {QUEUED: "queuedResources", NODE: "nodes"}[kind]
    prefix = f"projects/{PROJECT}/locations/" + ("" if location == "-" else f"{location}/{plural}/")
    return call.cloud.store.rows(kind, prefix)


def _find_queued(call: Call) -> tuple[str, Json]:
    return _find_row(call, QUEUED, _PARENT + "/queuedResources/{queuedResource}")


def _find_node(call: Call) -> tuple[str, Json]:
    return _find_row(call, NODE, _PARENT + "/nodes/{node}")


def _find_row(call: Call, kind: str, template: str) -> tuple[str, Json]:
    call.cloud.machines.advance()
    name = call.name(template)
    return name, call.row_of(kind, name, f"Resource '{name}' was not found")


def _node_json(call: Call, name: str, node: Json) -> Json:
    row: Json = call.cloud.store.get(QUEUED, node["queuedResource"]) or {}
    outside = external_address(row["machine"], node["place"])
    return tpu_json.node(name, node, row, outside)


def _location(zone: str) -> Json:
    return {"name": f"projects/{PROJECT}/locations/{zone}", "locationId": zone}


def _one_zone(call: Call) -> str:
    zone = call.param("location")
    if zone not in api.locations:
        raise invalid("Location must be a zone, and cannot be the '-' wildcard.", ("name", "is not a zone"))
    return zone


def _unfit(text: str) -> ApiError:
    return ApiError("FAILED_PRECONDITION", text)


# v2 has the same methods; a parameter of a query counts where its version has it.
for _rule in tuple(api.rules):
    _path = _rule.path.replace("/v2alpha1/", "/v2/")
    _method = method_of(_rule.method, _path)
    _query = " ".join(_rule.query & _method.query.keys()) if _method else ""
    api.route(_rule.method, _path, needs=_rule.needs, on=_rule.on, query=_query, body=_rule.field)(_rule.handler)
