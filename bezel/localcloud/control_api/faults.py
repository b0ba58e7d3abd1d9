"""Fault routes of localcloud: list, add and clear injected failures."""

from collections.abc import Mapping

from bezel.localcloud.access.permissions import PROJECT_NAME
from bezel.localcloud.control_api.external_changes import change_services, delete_services
from bezel.localcloud.core.errors import ApiError, invalid
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.faults.kinds import Value
from bezel.localcloud.faults.parse import FaultError, checked, known
from bezel.localcloud.faults.table import table
from bezel.localcloud.routing.router import Api, Call

api = Api("", "localcloud")
_PATH = "/localcloud/faults"
_GET, _SET = "resourcemanager.projects.get", "resourcemanager.projects.update"


@api.route("GET", _PATH, needs=_GET, on=PROJECT_NAME)
def show(call: Call) -> Json:
    """The active faults (`faults`) and the kinds that can be added (`kinds`)."""
    return {"faults": [fault.shown() for fault in call.cloud.faults.all()], "kinds": table()}


@api.route("POST", _PATH, needs=_SET, on=PROJECT_NAME)
async def add(call: Call) -> Json:
    """Add {"kind": ..., "parameters": {...}}; a fault that takes effect at once and is over returns `struck`."""
    body = await call.json()
    kind, given = str(body.get("kind", "")), body.get("parameters") or {}
    try:
        if known(kind).place != "at once":
            return call.cloud.faults.add(kind, given).shown()
        values = checked(kind, given)
    except FaultError as error:
        raise invalid(str(error)) from None
    struck = await _at_once(call, kind, values)
    if not struck:
        what = "machine is leased" if kind.startswith("lease-") else "service is deployed"
        text = f"no {what}, so nobody can do {kind} to one: deploy a stack first."
        raise ApiError("FAILED_PRECONDITION", text)
    return {"kind": kind, "parameters": dict(values), "struck": struck}


async def _at_once(call: Call, kind: str, values: Mapping[str, Value]) -> list[str]:
    match kind:
        case "service-deleted":
            return await delete_services(call)
        case "service-changed":
            return await change_services(call, int(values["max_instances"]))
        case _:
            return call.cloud.machines.end_all(lost=kind == "lease-preempted")


@api.route("DELETE", _PATH, needs=_SET, on=PROJECT_NAME)
def clear_all(call: Call) -> Json:
    """Clear all faults."""
    return {"cleared": call.cloud.faults.clear()}


@api.route("DELETE", _PATH + "/{kind:id}", needs=_SET, on=PROJECT_NAME)
def clear(call: Call) -> Json:
    """Clear the fault of one kind."""
    try:
        return {"cleared": call.cloud.faults.clear(known(call.param("kind")).name)}
    except FaultError as error:
        raise ApiError("NOT_FOUND", str(error)) from None
