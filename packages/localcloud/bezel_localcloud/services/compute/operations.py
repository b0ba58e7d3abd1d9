"""Operations of Compute Engine: stored with all others, shown in their own shape, one per request id."""

import uuid
from collections.abc import Callable

from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing import idempotency
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.compute.errors import not_found
from bezel_localcloud.services.compute.links import region_of

_TYPE = "localcloud/compute"
_SHOWN = "operation-"  # prefix of Google's operation names
# Errors in Google's failed operations: HTTP status by google.rpc.Code.
_STATUSES = {8: (503, "SERVICE UNAVAILABLE"), 4: (504, "GATEWAY TIMEOUT"), 10: (409, "CONFLICT")}


def root(call: Call) -> str:
    """Base of all links of the version that was called."""
    version = call.request.url.path.split("/")[2]
    return f"{call.base}/compute/{version}"


def metadata_of(call: Call, verb: str, target: str, target_id: str) -> Json:
    """Metadata of an operation: its verb and target."""
    now = timestamp(call.cloud.pace.now())
    about = {"operationType": verb, "target": target, "targetId": target_id, "user": call.caller, "insertTime": now}
    return {"@type": _TYPE} | about


def begin_timed(call: Call, verb: str, target: str, target_id: str, seconds: float) -> str:
    """Begin an operation that succeeds after some seconds of the platform's time and return its name."""
    parent, metadata = target.rsplit("/", 2)[0], metadata_of(call, verb, target, target_id)
    return str(call.cloud.operations.begin_timed(parent, metadata, {}, seconds)["name"])


def once(call: Call, begin: Callable[[], str]) -> Json:
    """Return the operation that `begin` starts, or the one that the same request started; see `idempotency.once`."""
    return operation_json(call, idempotency.once(call, begin))


def stored_name(scope: str, shown_name: str) -> str:
    """The stored name of an operation, from its scope (`projects/P/zones/Z`) and its shown name."""
    return f"{scope}/operations/{shown_name.removeprefix(_SHOWN)}"


def operation_json(call: Call, name: str) -> Json:
    """The current state of an operation by its stored name.

    Raises:
        ApiError: NOT_FOUND.
    """
    cloud, base = call.cloud, root(call)
    scope, _, short = name.rpartition("/operations/")
    stored = cloud.store.operation(name)
    if stored is None or stored[0]["metadata"].get("@type") != _TYPE:
        raise not_found(f"{scope}/operations/{_SHOWN}{short}")
    operation, about = cloud.operations.get(name), stored[0]["metadata"]
    done = bool(operation.get("done"))
    response: Json = {
        "kind": "compute#operation",
        "id": str(uuid.UUID(short).int % 2**63),
        "name": f"{_SHOWN}{short}",
        "operationType": about["operationType"],
        "targetLink": f"{base}/{about['target']}",
        "targetId": about["targetId"],
        "status": "DONE" if done else "RUNNING",
        "user": about["user"],
        "progress": 100 if done else 0,
        "insertTime": about["insertTime"],
        "startTime": about["insertTime"],
        "selfLink": f"{base}/{scope}/operations/{_SHOWN}{short}",
    }
    if region_of(scope):
        response["region"] = f"{base}/{scope}"
    if "/zones/" in scope:
        response["zone"] = f"{base}/{scope}"
    if done:
        response["endTime"] = timestamp(stored[1] or cloud.pace.now())
    if "error" in operation and done:
        response |= _failure(operation["error"])
    return response


def _failure(status: Json) -> Json:
    info: Json = next(iter(status.get("details", [])), {})
    error: Json = {"code": info.get("reason", "INTERNAL_ERROR"), "message": status["message"]}
    number, text = _STATUSES.get(status["code"], (500, "INTERNAL SERVER ERROR"))
    if info:
        named = {key: info[key] for key in ("reason", "domain") if key in info}
        error["errorDetails"] = [{"errorInfo": named | {"metadatas": info.get("metadata", {})}}]
    return {"error": {"errors": [error]}, "httpErrorStatusCode": number, "httpErrorMessage": text}
