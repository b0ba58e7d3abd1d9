"""Certificate Manager v1: certificates, DNS authorizations, certificate maps and entries, by the rows of kinds.py.

Every change is a long-running operation. Leaves out certificates that a caller brings, issuance and trust
configurations, and the states of certificates (load_balancing/certificates.py).
"""

import re
from collections.abc import Iterator
from functools import partial

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT, with_project_id
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.certificate_manager.kinds import CERTIFICATE, ENTRY, KINDS, MAP, ManagerKind
from bezel_localcloud.services.load_balancing.certificates import advance, manager_json
from bezel_localcloud.services.load_balancing.references import MANAGER, use_permission, users

api = Api(
    "certificatemanager.googleapis.com",
    "Certificate Manager API",
    locations=frozenset({"global"}),
    unserved_locations=dict.fromkeys(regions(), "regional certificates"),
)
_LOCATION = "projects/{project}/locations/{location}"
_PATH = "/certificatemanager/v1/projects/{project:id}/locations/{location:id}"
_TYPE = "type.googleapis.com/google.cloud.certificatemanager.v1."
_SECONDS = 5.0  # of the platform's time, for any change
_ID = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


def _create(kind: ManagerKind, call: Call) -> Json:
    """Create a resource."""
    identifier, now = call.query(kind.id_parameter), timestamp(call.cloud.pace.now())
    if not _ID.fullmatch(identifier):
        text = f"Invalid resource ID {identifier!r}: it must match {_ID.pattern}."
        raise invalid(text, (kind.id_parameter, text))
    place = _parent(kind, call)
    name = f"{place}/{kind.collection}/{identifier}"
    if refused := sorted(key for key, value in call.body.items() if value and key not in kind.settable | {"name"}):
        raise unserved_error(f"{', '.join(refused)} of {kind.collection}")
    body = {key: value for key, value in call.body.items() if key in kind.settable}
    row = kind.completed(name, _with_names(kind, call, body, {})) | {"name": name, "createTime": now}
    call.check_absent(kind.row_kind, name, f"Resource '{name}' already exists")
    return _write(kind, call, "create", name, row)


def _parent(kind: ManagerKind, call: Call) -> str:
    place = call.name(_LOCATION) if kind is not ENTRY else _name(MAP, call)
    if kind is ENTRY:
        _row(MAP, call)
    return place


def _with_names(kind: ManagerKind, call: Call, body: Json, old: Json) -> Json:
    """A body in which each reference is the name of a resource that exists; the caller may use those that are new."""
    part = body.get("managed") if kind is CERTIFICATE else body
    before = old.get("managed", {}) if kind is CERTIFICATE else old
    for field, collection in kind.references:
        names = []
        for text in (part or {}).get(field) or []:
            name = with_project_id(text.removeprefix(MANAGER))
            if call.cloud.store.get(f"certificatemanager/{collection}", name) is None:
                why = f"invalid {collection.removesuffix('s')} name {text!r}: it does not exist"
                raise invalid(why, (field, why))
            if name not in before.get(field, []):
                call.require(use_permission(name), f"projects/{PROJECT}")
            names.append(name)
        if part and names:
            part[field] = names
    return body


def _write(kind: ManagerKind, call: Call, verb: str, name: str, row: Json) -> Json:
    now = call.cloud.pace.now()
    row = row | {"updateTime": timestamp(now), "_changed": row.get("_changed", now)}
    call.cloud.store.put(kind.row_kind, name, row)
    return _begin(call, verb, name, {"@type": _TYPE + kind.message} | _resource_json(kind, call, row))


def _begin(call: Call, verb: str, name: str, response: Json) -> Json:
    now = timestamp(call.cloud.pace.now())
    about = {"createTime": now, "target": name, "verb": verb, "requestedCancellation": False, "apiVersion": "v1"}
    metadata = {"@type": f"{_TYPE}OperationMetadata"} | about
    return call.cloud.operations.begin_timed(call.name(_LOCATION), metadata, response, _SECONDS)


def _list(kind: ManagerKind, call: Call) -> Json:
    """Resources of the location, or of a map."""
    advance(call.cloud)
    prefix = f"{_parent(kind, call)}/{kind.collection}/"
    rows = call.cloud.store.rows(kind.row_kind, prefix)
    return call.page([(name, _resource_json(kind, call, row)) for name, row in rows], kind.collection)


def _get(kind: ManagerKind, call: Call) -> Json:
    """One resource."""
    advance(call.cloud)
    return _resource_json(kind, call, _row(kind, call))


def _patch(kind: ManagerKind, call: Call) -> Json:
    """Change the fields that the mask names."""
    row, mask = _row(kind, call), call.mask()
    if not mask:
        raise invalid("The update mask is empty.", ("update_mask", "is required"))
    changed = apply_mask(row, call.body, mask, f"certificatemanager.{kind.message}", kind.changeable)
    kept = {key: value for key, value in row.items() if key not in kind.changeable}
    new = kind.completed(row["name"], _with_names(kind, call, kept | changed, row))
    if "certificates" in mask:
        new["_changed"] = call.cloud.pace.now()
    return _write(kind, call, "update", row["name"], new)


def _delete(kind: ManagerKind, call: Call) -> Json:
    """Delete a resource that no other one needs."""
    name = _row(kind, call)["name"]
    if user := next(_users(call, kind, name), ""):
        text = f"can't delete {kind.body} '{name}' that is used by '{user}'"
        raise ApiError("FAILED_PRECONDITION", text)
    call.cloud.store.delete(kind.row_kind, name)
    return _begin(call, "delete", name, {"@type": "type.googleapis.com/google.protobuf.Empty"})


def _users(call: Call, kind: ManagerKind, name: str) -> Iterator[str]:
    """Names of what refers to a resource, or is in it."""
    store = call.cloud.store
    yield from users(store, name)
    for other in KINDS:
        for user, row in store.rows(other.row_kind):
            part = row.get("managed", {}) if other is CERTIFICATE else row
            if any(name in part.get(field, []) for field, _ in other.references):
                yield user
            if kind is MAP and user.startswith(f"{name}/"):
                yield user


def _resource_json(kind: ManagerKind, call: Call, row: Json) -> Json:
    shown = {key: value for key, value in row.items() if not key.startswith("_")}
    if kind is CERTIFICATE:
        shown |= manager_json(row)
        used = [{"name": f"{MANAGER}{user}"} for user in _users(call, kind, row["name"])]
        shown |= {"usedBy": used} if used else {}
    return shown


def _name(kind: ManagerKind, call: Call) -> str:
    place = f"projects/{PROJECT}/locations/{call.param('location')}"
    if kind is ENTRY:
        return f"{place}/certificateMaps/{call.param('map')}/{kind.collection}/{call.param('resource')}"
    return f"{place}/{kind.collection}/{call.param('map' if 'map' in call.request.path_params else 'resource')}"


def _row(kind: ManagerKind, call: Call) -> Json:
    name = _name(kind, call)
    return call.row_of(kind.row_kind, name, f"Resource '{name}' was not found")


def _serve(kind: ManagerKind) -> None:
    """Register the five methods of a kind."""
    place = f"{_PATH}/certificateMaps/{{map:id}}" if kind is ENTRY else _PATH
    collection, needs = f"{place}/{kind.collection}", kind.permissions
    item = f"{collection}/{{resource:id}}"
    for verb, path, permission, query, body, handler in (
        ("POST", collection, "create", kind.id_parameter, kind.body, _create),
        ("GET", collection, "list", "pageSize pageToken", "", _list),
        ("GET", item, "get", "", "", _get),
        ("PATCH", item, "update", "updateMask", kind.body, _patch),
        ("DELETE", item, "delete", "", "", _delete),
    ):
        api.route(verb, path, needs=f"{needs}.{permission}", query=query, body=body)(partial(handler, kind))


for _kind in KINDS:
    _serve(_kind)
serve_operations(
    api, _PATH, _LOCATION, "get list cancel delete", needs="certificatemanager.operations", of="certificatemanager"
)


@api.route("GET", f"{_PATH}", needs="certificatemanager.locations.get")
def get_location(call: Call) -> Json:
    """The location of global certificates."""
    return _location(call)


@api.route(
    "GET", _PATH.removesuffix("/{location:id}"), needs="certificatemanager.locations.list", query="pageSize pageToken"
)
def list_locations(call: Call) -> Json:
    """Locations that localcloud serves."""
    return call.page([("global", _location(call))], "locations")


def _location(call: Call) -> Json:
    del call
    return {"name": f"projects/{PROJECT}/locations/global", "locationId": "global"}
