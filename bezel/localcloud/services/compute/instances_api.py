"""Compute v1 and beta: instances with accelerators and their machine types.

Leaves out the later states of an instance: see services/machines/reconciler.py.
"""

import random
import re
import zlib
from functools import partial

from bezel.localcloud.core.errors import ApiError, error_info
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.paths import PROJECT
from bezel.localcloud.core.regions import region_of_zone
from bezel.localcloud.machines import capacity, refusals
from bezel.localcloud.machines.capacity import FLEXIBLE, Held
from bezel.localcloud.machines.lifecycle import Life, begun, moved
from bezel.localcloud.routing.router import Api, Call
from bezel.localcloud.services.compute.errors import already_exists, not_found, unserved, wrong
from bezel.localcloud.services.compute.instance_answers import instance
from bezel.localcloud.services.compute.instance_requests import InstanceRequest, wanted
from bezel.localcloud.services.compute.links import linked
from bezel.localcloud.services.compute.operations import metadata_of, once, root
from bezel.localcloud.services.compute.vpc import loopback
from bezel.localcloud.services.compute.vpc_api import listed, serves, without_nulls
from bezel.localcloud.services.machines import networks
from bezel.localcloud.services.machines.reconciler import INSTANCE, external

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
_INSTANCES = "/zones/{zone:id}/instances"
_ONE = _INSTANCES + "/{instance:id}"
_LISTS = "maxResults pageToken returnPartialSuccess"
# Terms of a filter: the label, the name or the status has a value, or is present.
_TERM = re.compile(r'\(?\s*(?P<field>labels\.[\w-]+|name|status)\s*(?P<sign>=|:)\s*"?(?P<value>[\w*-]+)"?\s*\)?')
_serves = partial(serves, api)


@_serves("POST", _INSTANCES, "compute.instances.create", "requestId")
def insert(call: Call) -> Json:
    """Request an instance; the operation ends when it runs, or when there is no capacity for it."""
    call.cloud.machines.advance()
    return once(call, lambda: _inserted(call))


def _inserted(call: Call) -> str:
    zone, cloud = _zone(call), call.cloud
    body = without_nulls(call.body)
    asked = wanted(body, zone)
    scope = f"projects/{PROJECT}/zones/{zone}"
    name = f"{scope}/instances/{asked.name}"
    _check_sold(call, zone, asked)
    subnetwork = networks.subnetwork_of(call, asked.network, asked.subnetwork, region_of_zone(zone))
    account = networks.account_of(call, asked.service_account) if asked.service_account else ""
    row = {
        "request": body,
        "zone": zone,
        "goods": asked.goods.name,
        "goods_type": asked.goods.machine_type,
        "topology": asked.goods.topology,
        "model": asked.model,
        "number": str(random.getrandbits(62)),
        "said": "",
        "operation": "",
        "machine": {
            "name": name,
            "metadata": {item["key"]: item.get("value", "") for item in _items(body) if item.get("key")},
            "service_account": account,
            "subnetwork": subnetwork,
            "external": asked.external,
            "tags": body.get("tags", {}).get("items", []),
        },
    }
    with cloud.store.transaction():
        if cloud.store.get(INSTANCE, name) is not None:
            raise already_exists(name)
        _check_quota(call, zone, asked)
        if late := cloud.faults.find("lease-late-fill"):
            due = cloud.pace.now() + cloud.pace.seconds(late.number("seconds"))
            cloud.machines.begin_late(INSTANCE, name, row | {"life": _life(call, asked, due)})
        else:
            row["operation"] = cloud.operations.begin(scope, metadata_of(call, "insert", name, str(row["number"])))
            cloud.machines.begin(INSTANCE, name, row | {"life": _life(call, asked, cloud.pace.now())})
    return str(row["operation"])


@_serves("GET", _INSTANCES, "compute.instances.list", f"filter {_LISTS}")
def list_instances(call: Call) -> Json:
    """Instances of a zone."""
    parent = f"projects/{PROJECT}/zones/{_zone(call)}/instances"
    items = [(name, _shown(call, name, row)) for name, row in _rows(call, f"{parent}/")]
    return listed(call, "instanceList", parent, items)


@_serves("GET", "/aggregated/instances", "compute.instances.list", f"filter {_LISTS}")
def aggregated_list(call: Call) -> Json:
    """Instances of all zones, by zone."""
    parent = f"projects/{PROJECT}/aggregated/instances"
    shown, token = call.paged(_rows(call, f"projects/{PROJECT}/zones/"), default=500, most=500)
    items: dict[str, Json] = {}
    for name, row in shown:
        scope = items.setdefault(f"zones/{row['zone']}", {"instances": []})
        scope["instances"].append(_shown(call, name, row))
    head: Json = {"kind": "compute#instanceAggregatedList", "id": parent, "selfLink": f"{root(call)}/{parent}"}
    return head | {"items": items} | ({"nextPageToken": token} if token else {})


@_serves("GET", _ONE, "compute.instances.get", "view")
def get(call: Call) -> Json:
    """One instance."""
    return _shown(call, *_found(call))


@_serves("DELETE", _ONE, "compute.instances.delete", "requestId")
def delete(call: Call) -> Json:
    """Delete an instance with its disk; its name is free when the operation is done."""
    return once(call, lambda: _deleted(call))


def _deleted(call: Call) -> str:
    name, row = _found(call)
    life = Life(**row["life"])
    if life.state == "DELETING":
        return str(row["deletion"])
    with call.cloud.store.transaction():
        about = metadata_of(call, "delete", name, row["number"])
        row |= {"deletion": call.cloud.operations.begin(name.rpartition("/instances/")[0], about)}
        canceled = ApiError("ABORTED", "The instance was deleted.", [error_info("OPERATION_CANCELED_BY_USER")])
        call.cloud.operations.finish(row["operation"], error=canceled)
        call.cloud.machines.move(INSTANCE, name, row, moved(life, "DELETING", call.cloud.pace.now(), by_user=True))
    return str(row["deletion"])


@_serves("GET", _ONE + "/getGuestAttributes", "compute.instances.getGuestAttributes", "queryPath variableKey")
def guest_attributes(call: Call) -> Json:
    """Guest attributes that the machine wrote: of `namespace/`, or one `namespace/key`.

    Raises:
        ApiError: NOT_FOUND where none was written.
    """
    name, _ = _found(call)
    found = sorted(call.cloud.nodes.guest_attributes(name).items())
    path, key = call.query("queryPath"), call.query("variableKey")
    head: Json = {"kind": "compute#guestAttributes", "selfLink": f"{root(call)}/{name}/guestAttributes/{path or key}"}
    if key:
        if key not in dict(found):
            raise not_found(f"{name}/guestAttributes/{key}")
        return head | {"variableKey": key, "variableValue": dict(found)[key]}
    chosen = [
        (one, value) for one, value in found if one == path or not path or (path[-1] == "/" and one.startswith(path))
    ]
    if not chosen:
        raise not_found(f"{name}/guestAttributes/{path}")
    items = [
        {"namespace": one.partition("/")[0], "key": one.partition("/")[2], "value": value} for one, value in chosen
    ]
    return head | {"queryPath": path, "queryValue": {"items": items}}


@_serves("GET", _ONE + "/serialPort", "compute.instances.getSerialPortOutput", "port start")
def serial_port(call: Call) -> Json:
    """Serial console output from a position on."""
    name, _ = _found(call)
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
    return listed(call, "machineTypeList", f"projects/{PROJECT}/zones/{zone}/machineTypes", shown)


@_serves("GET", "/zones/{zone:id}/machineTypes/{machineType:id}", "compute.machineTypes.get")
def get_machine_type(call: Call) -> Json:
    """One kind of machine."""
    zone, found = _zone(call), capacity.goods_of_machine_type(call.param("machineType"))
    if found is None or zone not in capacity.zones() or found.name not in capacity.zones()[zone].stock:
        raise not_found(f"projects/{PROJECT}/zones/{zone}/machineTypes/{call.param('machineType')}")
    return _machine_type(call, zone, found)


def _machine_type(call: Call, zone: str, found: capacity.Goods) -> Json:
    kind = found.accelerator or "ct6e"
    name = f"projects/{PROJECT}/zones/{zone}/machineTypes/{found.machine_type}"
    return {
        "kind": "compute#machineType",
        "id": str(zlib.crc32(found.machine_type.encode())),
        "name": found.machine_type,
        "guestCpus": found.cpus,
        "memoryMb": found.memory_mib,
        "zone": zone,
        "selfLink": f"{root(call)}/{name}",
        "accelerators": [{"guestAcceleratorType": kind, "guestAcceleratorCount": found.units}],
    }


def _check_sold(call: Call, zone: str, asked: InstanceRequest) -> None:
    if zone not in capacity.zones() or asked.goods.name not in capacity.zones()[zone].stock:
        what = f"projects/{PROJECT}/zones/{zone}/machineTypes/{asked.goods.machine_type}"
        raise wrong("resource.machineType", what, f"Machine type does not exist in zone '{zone}'.")
    if asked.model == FLEXIBLE and not call.cloud.machines.takes_flex_start(zone):
        raise refusals.model_refused(zone)


def _check_quota(call: Call, zone: str, asked: InstanceRequest) -> None:
    keeper, region = call.cloud.machines, region_of_zone(zone)
    one_more = Held("compute", zone, asked.goods.name, asked.model, "CREATING")
    for quota, used, allowed in capacity.exceeded(one_more, keeper.held(), keeper.quotas()):
        told = refusals.over_quota(quota, used, allowed, f"region {region}")
        raise ApiError("PERMISSION_DENIED", told.message, told.details, reason="quotaExceeded")


def _items(body: Json) -> list[Json]:
    items: list[Json] = body.get("metadata", {}).get("items", [])
    return items


def _life(call: Call, asked: InstanceRequest, now: float) -> Json:
    until = now + call.cloud.pace.seconds(asked.valid_seconds) if asked.valid_seconds else 0.0
    return begun(now, until, asked.run_seconds).stored()


def _zone(call: Call) -> str:
    zone = call.param("zone")
    if not region_of_zone(zone):
        raise wrong("zone", zone, "Unknown zone.")
    return zone


def _found(call: Call) -> tuple[str, Json]:
    call.cloud.machines.advance()
    name = f"projects/{PROJECT}/zones/{_zone(call)}/instances/{call.param('instance')}"
    found = call.cloud.store.get(INSTANCE, name)
    if found is None:
        raise not_found(name)
    return name, found


def _rows(call: Call, prefix: str) -> list[tuple[str, Json]]:
    call.cloud.machines.advance()
    terms = _terms(call.query("filter"))
    rows = call.cloud.store.rows(INSTANCE, prefix)
    return [(name, row) for name, row in rows if all(_fits(call, name, row, *term) for term in terms)]


def _terms(text: str) -> list[tuple[str, str, str]]:
    parts = [part for part in re.split(r"\s+AND\s+|(?<=\))\s*(?=\()", text.strip()) if part]
    found = [_TERM.fullmatch(part) for part in parts]
    terms = [(match["field"], match["sign"], match["value"]) for match in found if match]
    if len(terms) < len(parts) or any("*" in value and (sign, value) != (":", "*") for _, sign, value in terms):
        raise unserved(f"the filter {text!r}", "use labels.KEY=VALUE, labels.KEY:*, name=... or status=..., with AND")
    return terms


def _fits(call: Call, name: str, row: Json, field: str, sign: str, value: str) -> bool:
    shown = _shown(call, name, row)
    if not field.startswith("labels."):
        return str(shown[field]) == value
    label = shown.get("labels", {}).get(field.removeprefix("labels."))
    return label is not None and (value == "*" or (value in label if sign == ":" else value == label))


def _shown(call: Call, name: str, row: Json) -> Json:
    outside = external(loopback(row["place"]["address"])) if row["machine"]["external"] and row.get("place") else ""
    shown: Json = linked(instance(name, row, outside), root(call))
    return shown
