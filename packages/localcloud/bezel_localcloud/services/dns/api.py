"""Cloud DNS v1 and v1beta2: managed zones, record sets and changes. Both versions have the same handlers.

Leaves out DNSSEC's keys, policies, and zones that forward or peer: a zone of localcloud answers no resolver; what reads
its records are the checks of managed certificates (load_balancing/certificates.py).
"""

import re
from collections.abc import Callable

from starlette.responses import Response

from bezel_localcloud.core.errors import ApiError, unserved_error
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.router import Api, Call, Handler
from bezel_localcloud.services.dns.records import (
    changed_records,
    check_dns_name,
    check_record,
    first_records,
    key_of,
    name_servers,
)

api = Api("dns.googleapis.com", "Cloud DNS API", legacy=True)
ZONE, RECORDS, CHANGE = "dns/managedZones", "dns/rrsets", "dns/changes"
_SERVED = frozenset(
    {"cloudLoggingConfig", "creationTime", "description", "dnsName", "dnssecConfig", "id", "kind", "labels", "name",
     "nameServers", "privateVisibilityConfig", "visibility"}
)  # fmt: skip
_FIXED = ("creationTime", "dnsName", "id", "name", "nameServers", "visibility")
_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
# Source: quotas and limits of Cloud DNS, November 2026. None of them is enforced.
_QUOTAS = {
    "managedZones": 10_000,
    "resourceRecordsPerRrset": 100,
    "rrsetAdditionsPerChange": 1000,
    "rrsetDeletionsPerChange": 1000,
    "rrsetsPerManagedZone": 10_000,
    "totalRrdataSizePerChange": 100_000,
}
_CHANGE_SECONDS = 2.0  # of the platform's time until a change is served
_ZONES = "/projects/{project:id}/managedZones"
_ONE = _ZONES + "/{zone:id}"
_SETS = _ONE + "/rrsets"
_SET = _SETS + "/{name:id}/{type:id}"
_PAGED = "maxResults pageToken"


def _serves(method: str, path: str, needs: str = "", query: str = "") -> Callable[[Handler], Handler]:
    """Register a handler under both versions; a permission on a zone's parts is needed on the zone."""
    on = "projects/{project}/managedZones/{zone}" if "{zone:id}" in path else "projects/{project}"

    def register(handler: Handler) -> Handler:
        for version in ("v1", "v1beta2"):
            api.route(method, f"/dns/{version}{path}", needs=needs, on=on, query=query)(handler)
        return handler

    return register


@_serves("GET", "/projects/{project:id}", "dns.projects.get")
def get_project(call: Call) -> Json:
    """The project by id or number, with its quotas."""
    del call
    return {"kind": "dns#project", "id": PROJECT, "number": PROJECT_NUMBER, "quota": {"kind": "dns#quota"} | _QUOTAS}


@_serves("POST", _ZONES, "dns.managedZones.create")
def create_zone(call: Call) -> Json:
    """Create a zone, with the records that it begins with."""
    body = _zone_fields(merge({}, call.body))
    name = f"projects/{PROJECT}/managedZones/{body['name']}"
    text = f"The resource 'entity.managedZone' named '{body['name']}' already exists"
    with call.cloud.store.transaction():
        if call.cloud.store.get(ZONE, name) is not None:
            raise ApiError("ALREADY_EXISTS", text, reason="alreadyExists")
        number = call.cloud.store.next_number("dns zone")
        servers = name_servers(number)
        zone = body | {
            "kind": "dns#managedZone",
            "id": str(number + 10**18),
            "creationTime": timestamp(call.cloud.pace.now()),
            "nameServers": servers,
        }
        call.cloud.store.put(ZONE, name, zone)
        for record in first_records(body["dnsName"], servers):
            _put_record(call, name, record)
    return zone


def _zone_fields(body: Json) -> Json:
    if refused := sorted(key for key, value in body.items() if value and key not in _SERVED):
        raise unserved_error(f"{', '.join(refused)} of managed zones")
    for field in ("name", "dnsName"):
        if not body.get(field):
            raise ApiError(
                "INVALID_ARGUMENT", f"Required field 'entity.managedZone.{field}' is missing", reason="required"
            )
    if not _NAME.fullmatch(body["name"]):
        raise ApiError(
            "INVALID_ARGUMENT", f"Invalid value for 'entity.managedZone.name': '{body['name']}'", reason="invalid"
        )
    check_dns_name(body["dnsName"])
    if (body.get("dnssecConfig") or {}).get("state", "off") not in {"off", "OFF"}:
        raise unserved_error("DNSSEC of managed zones", "leave dnssecConfig out: no resolver asks localcloud")
    logging = {"kind": "dns#managedZoneCloudLoggingConfig", "enableLogging": False}
    kept = {key: value for key, value in body.items() if value != "" and key != "kind"}
    return (
        {"description": "", "visibility": "public"}
        | kept
        | {"cloudLoggingConfig": logging | body.get("cloudLoggingConfig", {})}
    )


@_serves("GET", _ZONES, "dns.managedZones.list", f"{_PAGED} dnsName")
def list_zones(call: Call) -> Json:
    """Zones of the project, or those of one domain."""
    wanted = call.query("dnsName")
    rows = [(name, row) for name, row in call.cloud.store.rows(ZONE) if wanted in ("", row["dnsName"])]
    return {"kind": "dns#managedZonesListResponse"} | call.page(rows, "managedZones")


@_serves("GET", _ONE, "dns.managedZones.get")
def get_zone(call: Call) -> Json:
    """One zone, by its name or its id."""
    return _zone(call)[1]


@_serves("PATCH", _ONE, "dns.managedZones.update")
def patch_zone(call: Call) -> Json:
    """Change the fields that the body names."""
    return _change_zone(call, merge)


@_serves("PUT", _ONE, "dns.managedZones.update")
def update_zone(call: Call) -> Json:
    """Replace all fields that can be changed."""
    return _change_zone(call, lambda _, body: merge({}, body))


def _change_zone(call: Call, change: Callable[[Json, Json], Json]) -> Json:
    name, old = _zone(call)
    new = change(old, call.body)
    for field in ("dnsName", "name", "visibility"):
        if new.get(field, old[field]) != old[field]:
            text = f"Invalid value for 'entity.managedZone.{field}': '{new[field]}'"
            raise ApiError("INVALID_ARGUMENT", text, reason="invalid")
    new = _zone_fields(new | {key: old[key] for key in _FIXED}) | {"kind": "dns#managedZone"}
    call.cloud.store.put(ZONE, name, new)
    return {
        "kind": "dns#operation",
        "id": str(call.cloud.store.next_number("dns operation")),
        "startTime": timestamp(call.cloud.pace.now()),
        "status": "done",
        "type": "update",
        "user": call.caller,
        "zoneContext": {"oldValue": old, "newValue": new},
    }


@_serves("DELETE", _ONE, "dns.managedZones.delete")
def delete_zone(call: Call) -> Response:
    """Delete a zone that has only the records that it began with."""
    name, zone = _zone(call)
    with call.cloud.store.transaction():
        rows = list(call.cloud.store.rows(RECORDS, f"{name}/rrsets/"))
        if any(row["name"] != zone["dnsName"] or row["type"] not in {"NS", "SOA"} for _, row in rows):
            text = f"The resource named '{zone['name']}' cannot be deleted because it contains one or more "
            raise ApiError("FAILED_PRECONDITION", text + "'resource records'.", reason="containerNotEmpty")
        for kind in (RECORDS, CHANGE):
            for row, _ in list(call.cloud.store.rows(kind, f"{name}/")):
                call.cloud.store.delete(kind, row)
        call.cloud.store.delete(ZONE, name)
    return Response(status_code=204)


@_serves("GET", _SETS, "dns.resourceRecordSets.list", f"{_PAGED} name type")
def list_records(call: Call) -> Json:
    """Record sets of a zone, or those of one name, or of one name and type."""
    name, _ = _zone(call)
    wanted, kind = call.query("name"), call.query("type")
    rows = [
        (row_name, _record_json(row))
        for row_name, row in call.cloud.store.rows(RECORDS, f"{name}/rrsets/")
        if wanted in ("", row["name"]) and kind in ("", row["type"])
    ]
    return {"kind": "dns#resourceRecordSetsListResponse"} | call.page(rows, "rrsets")


@_serves("POST", _SETS, "dns.resourceRecordSets.create")
def create_record(call: Call) -> Json:
    """Add a record set."""
    name, zone = _zone(call)
    record = check_record(merge({}, call.body), zone["dnsName"], "entity.resourceRecordSet")
    _require(call, "create", zone, record)
    _apply(call, name, zone, [], [record])
    return _record_json(record)


@_serves("GET", _SET, "dns.resourceRecordSets.get")
def get_record(call: Call) -> Json:
    """One record set."""
    record = _record(call)
    _require(call, "get", _zone(call)[1], record)
    return _record_json(record)


@_serves("PATCH", _SET, "dns.resourceRecordSets.update")
def patch_record(call: Call) -> Json:
    """Replace the fields of a record set that the body names."""
    name, zone = _zone(call)
    old = _record(call)
    record = check_record(merge(old, call.body), zone["dnsName"], "entity.resourceRecordSet")
    if key_of(record) != key_of(old):
        raise unserved_error("another name or type of a record set", "delete it, and create the other")
    _require(call, "update", zone, record)
    _apply(call, name, zone, [old], [record])
    return _record_json(record)


@_serves("DELETE", _SET, "dns.resourceRecordSets.delete")
def delete_record(call: Call) -> Json:
    """Delete a record set."""
    name, zone = _zone(call)
    record = _record(call)
    _require(call, "delete", zone, record)
    _apply(call, name, zone, [record], [])
    return {}


@_serves("POST", f"{_ONE}/changes", "dns.changes.create")
def create_change(call: Call) -> Json:
    """Delete and add record sets, all or none."""
    name, zone = _zone(call)
    body = merge({}, call.body)
    deletions, added = body.get("deletions") or [], body.get("additions") or []
    keys = [{key_of(record) for record in records} for records in (added, deletions)]
    for record in [*added, *deletions]:
        verbs = [verb for verb, names in zip(("create", "delete"), keys, strict=True) if key_of(record) in names]
        _require(call, verbs[0] if len(verbs) == 1 else "update", zone, record)
    additions = [
        check_record(record, zone["dnsName"], f"entity.change.additions[{index}]") for index, record in enumerate(added)
    ]
    change: Json = {
        "kind": "dns#change",
        **{key: value for key, value in (("additions", additions), ("deletions", deletions)) if value},
        "startTime": timestamp(call.cloud.pace.now()),
        "isServing": False,
    }
    with call.cloud.store.transaction():
        _apply(call, name, zone, deletions, additions)
        number = call.cloud.store.next_number(f"changes of {name}")
        row = change | {"id": str(number), "_done": call.cloud.pace.now() + call.cloud.pace.seconds(_CHANGE_SECONDS)}
        call.cloud.store.put(CHANGE, f"{name}/changes/{number:09d}", row)
    return _change_json(call, row)


@_serves("GET", f"{_ONE}/changes", "dns.changes.list", _PAGED)
def list_changes(call: Call) -> Json:
    """Changes of a zone, the oldest first."""
    name, _ = _zone(call)
    rows = [(row_name, _change_json(call, row)) for row_name, row in call.cloud.store.rows(CHANGE, f"{name}/changes/")]
    return {"kind": "dns#changesListResponse"} | call.page(rows, "changes")


@_serves("GET", f"{_ONE}/changes/{{change:id}}", "dns.changes.get")
def get_change(call: Call) -> Json:
    """One change."""
    name, _ = _zone(call)
    number = call.param("change")
    where = f"{name}/changes/{number.zfill(9)}"
    text = f"The 'parameters.changeId' resource named '{number}' does not exist."
    return _change_json(call, call.row_of(CHANGE, where, text))


def _change_json(call: Call, row: Json) -> Json:
    shown = {key: value for key, value in row.items() if not key.startswith("_")}
    return shown | {"status": "done" if call.cloud.pace.now() >= row["_done"] else "pending"}


def _apply(call: Call, name: str, zone: Json, deletions: list[Json], additions: list[Json]) -> None:
    """Store a zone's record sets as a change leaves them."""
    store = call.cloud.store
    with store.transaction():
        rows = {key_of(row): (row_name, row) for row_name, row in store.rows(RECORDS, f"{name}/rrsets/")}
        present = {key: row for key, (_, row) in rows.items()}
        for record in changed_records(present, deletions, additions, zone["dnsName"]).values():
            if record is not present.get(key_of(record)):
                _put_record(call, name, record)
        kept = {key_of(record) for record in additions}
        for record in deletions:
            if key_of(record) not in kept:
                store.delete(RECORDS, rows[key_of(record)][0])


def _put_record(call: Call, zone: str, record: Json) -> None:
    row_name = f"{zone}/rrsets/{record['name']}/{record['type']}"
    call.cloud.store.put(RECORDS, row_name, record | {"_changed": call.cloud.pace.now()})


def _zone(call: Call) -> tuple[str, Json]:
    """Name and row of the zone that the path names, by its name or its id."""
    asked = call.param("zone")
    for name, row in call.cloud.store.rows(ZONE):
        if asked in (row["name"], row["id"]):
            return name, row
    text = f"The 'parameters.managedZone' resource named '{asked}' does not exist."
    raise ApiError("NOT_FOUND", text, reason="notFound")


def _require(call: Call, verb: str, zone: Json, record: Json) -> None:
    """Check the caller's permission on the zone and on the record set, which a condition may name.

    Source: the provider's example of a condition on a record set, which lets the checks of the zone pass.
    """
    permission = f"dns.resourceRecordSets.{verb}"
    call.require(permission, f"projects/{PROJECT}/managedZones/{zone['name']}")
    name, kind = key_of(record)
    call.require(permission, f"projects/{PROJECT_NUMBER}/managedZones/{zone['id']}/rrsets/{name}/{kind}")


def _record(call: Call) -> Json:
    name, _ = _zone(call)
    record, kind = call.param("name"), call.param("type")
    text = f"The 'parameters.name' resource named '{record} ({kind})' does not exist."
    return call.row_of(RECORDS, f"{name}/rrsets/{record}/{kind}", text)


def _record_json(row: Json) -> Json:
    shown = {key: value for key, value in row.items() if not key.startswith("_")}
    return {"kind": "dns#resourceRecordSet"} | shown | {"signatureRrdatas": []}
