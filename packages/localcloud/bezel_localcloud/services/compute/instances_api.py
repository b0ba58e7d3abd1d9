"""Compute v1 and beta: instances with accelerators and their machine types.

Leaves out the later states of an instance: see bezel_localcloud/services/machines/reconciler.py.
"""

import re
import zlib
from functools import partial

from bezel_localcloud.core.errors import ApiError, error_info, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.regions import region_of_zone
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.machines import capacity
from bezel_localcloud.machines.lifecycle import Life, move
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.compute.errors import already_exists, missing, not_found, wrong
from bezel_localcloud.services.compute.instance_json import instance
from bezel_localcloud.services.compute.instance_requests import check_sold, parse
from bezel_localcloud.services.compute.links import fingerprint, with_links
from bezel_localcloud.services.compute.operations import begin_timed, metadata_of, once, root
from bezel_localcloud.services.compute.vpc_api import list_page, row_of, serves
from bezel_localcloud.services.machines.reconciler import INSTANCE, external_address
from bezel_localcloud.services.machines.requests import begin, guest_attributes, new_row

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
_INSTANCES = "/zones/{zone:id}/instances"
_ONE = _INSTANCES + "/{instance:id}"
_NAME = "projects/{project}/zones/{zone}/instances/{instance}"
_SET_SECONDS = 2.0  # of the platform's time; localcloud's own
_LISTS = "maxResults pageToken returnPartialSuccess"
# Terms of a filter: the label, the name or the status has a value, or is present.
_TERM = re.compile(r'\(?\s*(?P<field>labels\.[\w-]+|name|status)\s*(?P<sign>=|:)\s*"?(?P<value>[\w*-]+)"?\s*\)?')
_serves = partial(serves, api)


@_serves("POST", _INSTANCES, "compute.instances.create", "requestId")
def insert(call: Call) -> Json:
    """Request an instance; the operation ends when it runs, or when there is no capacity for it."""
    call.cloud.machines.advance()
    return once(call, lambda: _begin_insert(call))


def _begin_insert(call: Call) -> str:
    body, zone = merge({}, call.body), _zone(call)
    request = parse(body, zone)
    row, name = new_row(call, request, body), request.name
    if call.cloud.store.get(INSTANCE, name) is not None:
        raise already_exists(name)
    return begin(call, INSTANCE, name, request, row, metadata_of(call, "insert", name, row["number"]))


@_serves("GET", _INSTANCES, "compute.instances.list", f"filter {_LISTS}")
def list_instances(call: Call) -> Json:
    """Instances of a zone."""
    parent = f"projects/{PROJECT}/zones/{_zone(call)}/instances"
    items = [(name, _instance_json(call, name, row)) for name, row in _rows(call, f"{parent}/")]
    return list_page(call, "instanceList", parent, items)


@_serves("GET", "/aggregated/instances", "compute.instances.list", f"filter {_LISTS}")
def aggregated_list(call: Call) -> Json:
    """Instances of all zones, by zone."""
    parent = f"projects/{PROJECT}/aggregated/instances"
    shown, token = call.page_items(_rows(call, f"projects/{PROJECT}/zones/"), default=500, max_size=500)
    items: dict[str, Json] = {}
    for name, row in shown:
        scope = items.setdefault(f"zones/{row['zone']}", {"instances": []})
        scope["instances"].append(_instance_json(call, name, row))
    head: Json = {"kind": "compute#instanceAggregatedList", "id": parent, "selfLink": f"{root(call)}/{parent}"}
    return head | {"items": items} | ({"nextPageToken": token} if token else {})


@_serves("GET", _ONE, "compute.instances.get", "view", on=_NAME)
def get(call: Call) -> Json:
    """One instance."""
    return _instance_json(call, *instance_of(call))


@_serves("DELETE", _ONE, "compute.instances.delete", "requestId", on=_NAME)
def delete(call: Call) -> Json:
    """Delete an instance with its disk; its name is free when the operation is done."""
    return once(call, lambda: _begin_delete(call))


def _begin_delete(call: Call) -> str:
    name, row = instance_of(call)
    life = Life(**row["life"])
    if life.state == "DELETING":
        return str(row["deletion"])
    about = metadata_of(call, "delete", name, row["number"])
    row |= {"deletion": call.cloud.operations.begin(name.rpartition("/instances/")[0], about)}
    canceled = ApiError("ABORTED", "The instance was deleted.", [error_info("OPERATION_CANCELED_BY_USER")])
    call.cloud.operations.finish(row["operation"], error=canceled)
    call.cloud.machines.move(INSTANCE, name, row, move(life, "DELETING", call.cloud.pace.now(), by_user=True))
    return str(row["deletion"])


@_serves("POST", _ONE + "/setMetadata", "compute.instances.setMetadata", "requestId", on=_NAME)
def set_metadata(call: Call) -> Json:
    """Replace the attributes of an instance, which its machine reads at once.

    Raises:
        ApiError: CONDITION_NOT_MET where the fingerprint is not that of the present attributes.
    """
    return once(call, lambda: _metadata_set(call))


def _metadata_set(call: Call) -> str:
    name, row = instance_of(call)
    if account := row["machine"]["service_account"]:
        call.act_as(account)  # with new metadata a machine does other things, as its account
    present, sent_fingerprint = row["request"].get("metadata", {}), call.body.get("fingerprint")
    if not sent_fingerprint:
        raise missing("fingerprint")
    if sent_fingerprint != fingerprint(present):
        text = "Supplied fingerprint does not match current metadata fingerprint."
        raise ApiError("FAILED_PRECONDITION", text, status=412, reason="conditionNotMet")
    items = [{"key": item["key"], "value": item.get("value", "")} for item in call.body.get("items", [])]
    request = row["request"] | {"metadata": {"items": items}}
    attributes = {item["key"]: item["value"] for item in items}
    call.cloud.machines.set_metadata(INSTANCE, name, row, attributes, request=request)
    return begin_timed(call, "setMetadata", name, row["number"], _SET_SECONDS)


@_serves("POST", _ONE + "/setTags", "compute.instances.setTags", "requestId", on=_NAME)
def set_tags(call: Call) -> Json:
    """Replace the network tags of an instance, which decide on the rules of the firewall that concern it.

    Raises:
        ApiError: CONDITION_NOT_MET where the fingerprint is not that of the present tags.
    """
    return once(call, lambda: _tags_set(call))


def _tags_set(call: Call) -> str:
    name, row = instance_of(call)
    present, sent_fingerprint = row["request"].get("tags", {}), call.body.get("fingerprint")
    if sent_fingerprint != fingerprint(present):
        text = "Supplied fingerprint does not match current tags fingerprint."
        raise ApiError("FAILED_PRECONDITION", text, status=412, reason="conditionNotMet")
    items = list(call.body.get("items", []))
    row |= {"request": row["request"] | {"tags": {"items": items}}, "machine": row["machine"] | {"tags": items}}
    call.cloud.store.put(INSTANCE, name, row)
    return begin_timed(call, "setTags", name, row["number"], _SET_SECONDS)


@_serves("POST", _ONE + "/addAccessConfig", "compute.instances.addAccessConfig", "networkInterface requestId", on=_NAME)
def add_access_config(call: Call) -> Json:
    """Give an instance an external address; one that runs is reached there after its next start only.

    Raises:
        ApiError: It has one already.
    """
    return once(call, lambda: _access_set(call, add=True))


@_serves(
    "POST", _ONE + "/deleteAccessConfig", "compute.instances.deleteAccessConfig",
    "accessConfig networkInterface requestId", on=_NAME,
)  # fmt: skip
def delete_access_config(call: Call) -> Json:
    """Take the external address of an instance away.

    Raises:
        ApiError: It has none of this name.
    """
    return once(call, lambda: _access_set(call, add=False))


def _access_set(call: Call, *, add: bool) -> str:
    name, row = instance_of(call)
    interface, *others = row["request"]["networkInterfaces"]
    if call.query("networkInterface") != "nic0":
        raise wrong("networkInterface", call.query("networkInterface"), "The instance has no such network interface.")
    configs = interface.get("accessConfigs") or []
    if add and configs:
        raise wrong("accessConfig", call.body.get("name"), "At most one access config currently supported.")
    if not add and call.query("accessConfig") not in {each.get("name", "external-nat") for each in configs}:
        raise wrong("accessConfig", call.query("accessConfig"), "The network interface has no such access config.")
    config = {"type": "ONE_TO_ONE_NAT", "name": "external-nat"} | merge({}, call.body)
    changed = {key: value for key, value in interface.items() if key != "accessConfigs"}
    changed |= {"accessConfigs": [config]} if add else {}
    row |= {
        "request": row["request"] | {"networkInterfaces": [changed, *others]},
        "machine": row["machine"] | {"external": add},
    }
    call.cloud.store.put(INSTANCE, name, row)
    return begin_timed(call, "addAccessConfig" if add else "deleteAccessConfig", name, row["number"], _SET_SECONDS)


@_serves("GET", _ONE + "/getGuestAttributes", "compute.instances.getGuestAttributes", "queryPath variableKey", on=_NAME)
def get_guest_attributes(call: Call) -> Json:
    """Guest attributes that the machine wrote: of `namespace/`, or one `namespace/key`.

    Raises:
        ApiError: NOT_FOUND where none was written.
    """
    name, _ = instance_of(call)
    path, key = call.query("queryPath"), call.query("variableKey")
    items = guest_attributes(call, name, key or path)
    # A variable is named in full; only a query path may be that of a namespace.
    if not items or key.endswith("/"):
        raise not_found(f"{name}/guestAttributes/{key or path}")
    head: Json = {"kind": "compute#guestAttributes", "selfLink": f"{root(call)}/{name}/guestAttributes/{path or key}"}
    if key:
        return head | {"variableKey": key, "variableValue": items[0]["value"]}
    return head | {"queryPath": path, "queryValue": {"items": items}}


@_serves("GET", _ONE + "/serialPort", "compute.instances.getSerialPortOutput", "port start", on=_NAME)
def serial_port(call: Call) -> Json:
    """Serial console output from a position on."""
    name, _ = instance_of(call)
    start = int(call.query("start") or 0)
    content = call.cloud.nodes.serial_output(name).encode() if call.query("port", "1") in {"", "1"} else b""
    begin = max(0, len(content) + start) if start < 0 else min(start, len(content))
    return {
        "kind": "compute#serialPortOutput",
        "selfLink": f"{root(call)}/{name}/serialPort",
        "contents": content[begin:].decode(errors="replace"),
        "start": str(begin),
        "next": str(len(content)),
    }


@_serves("GET", "/zones/{zone:id}/machineTypes", "compute.machineTypes.list", _LISTS)
def list_machine_types(call: Call) -> Json:
    """Kinds of machines with accelerators that a zone has."""
    zone = _zone(call)
    kinds = capacity.zones()[zone].stock if zone in capacity.zones() else {}
    items = {capacity.goods()[kind].machine_type: capacity.goods()[kind] for kind in kinds}
    shown = [(name, _machine_type(call, zone, items[name])) for name in sorted(items)]
    return list_page(call, "machineTypeList", f"projects/{PROJECT}/zones/{zone}/machineTypes", shown)


@_serves("GET", "/zones/{zone:id}/machineTypes/{machineType:id}", "compute.machineTypes.get")
def get_machine_type(call: Call) -> Json:
    """One kind of machine."""
    zone, kind = _zone(call), capacity.goods_of_machine_type(call.param("machineType"))
    if kind is None:
        check_sold(call.param("machineType"))
    if kind is None or zone not in capacity.zones() or kind.name not in capacity.zones()[zone].stock:
        raise not_found(f"projects/{PROJECT}/zones/{zone}/machineTypes/{call.param('machineType')}")
    return _machine_type(call, zone, kind)


def _machine_type(call: Call, zone: str, goods: capacity.Goods) -> Json:
    name = f"projects/{PROJECT}/zones/{zone}/machineTypes/{goods.machine_type}"
    return {
        "kind": "compute#machineType",
        "id": str(zlib.crc32(goods.machine_type.encode())),
        "name": goods.machine_type,
        "guestCpus": goods.cpus,
        "memoryMb": goods.memory_mib,
        "zone": zone,
        "selfLink": f"{root(call)}/{name}",
        "accelerators": [{"guestAcceleratorType": goods.accelerator or "ct6e", "guestAcceleratorCount": goods.units}],
    }


def _zone(call: Call) -> str:
    zone = call.param("zone")
    if not region_of_zone(zone):
        raise wrong("zone", zone, "Unknown zone.")
    return zone


def instance_of(call: Call) -> tuple[str, Json]:
    """Name and row of the instance that the path names.

    Raises:
        ApiError: NOT_FOUND.
    """
    call.cloud.machines.advance()
    return row_of(call, INSTANCE, f"projects/{PROJECT}/zones/{_zone(call)}/instances/{call.param('instance')}")


def _rows(call: Call, prefix: str) -> list[tuple[str, Json]]:
    call.cloud.machines.advance()
    terms = _terms(call.query("filter"))
    rows = call.cloud.store.rows(INSTANCE, prefix)
    return [(name, row) for name, row in rows if all(_fits(call, name, row, *term) for term in terms)]


def _terms(text: str) -> list[tuple[str, str, str]]:
    # "(a=b)(c=d)" and "(a=b) AND (c=d)" are the same.
    joined = " ".join(text.replace(")(", ") AND (").split()).replace(") (", ") AND (")
    parts = [part for part in joined.split(" AND ") if part]
    matches = [_TERM.fullmatch(part) for part in parts]
    terms = [(match["field"], match["sign"], match["value"]) for match in matches if match]
    if len(terms) < len(parts) or any("*" in value and (sign, value) != (":", "*") for _, sign, value in terms):
        raise unserved_error(
            f"the filter {text!r}", "use labels.KEY=VALUE, labels.KEY:*, name=... or status=..., with AND"
        )
    return terms


def _fits(call: Call, name: str, row: Json, field: str, sign: str, value: str) -> bool:
    shown = _instance_json(call, name, row)
    if not field.startswith("labels."):
        return str(shown[field]) == value
    label = shown.get("labels", {}).get(field.removeprefix("labels."))
    return label is not None and (value == "*" or (value in label if sign == ":" else value == label))


def _instance_json(call: Call, name: str, row: Json) -> Json:
    outside = external_address(row["machine"], row.get("place"))
    shown: Json = with_links(instance(name, row, outside), root(call))
    return shown
