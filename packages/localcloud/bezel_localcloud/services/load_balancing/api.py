"""Compute v1 and beta: resources of global load balancers, by the rows of kinds.py.

One set of handlers serves all kinds. Leaves out what a kind's body may hold (checks.py), the verbs of security policies
(rules_api.py) and the states of certificates (certificates.py).
"""

import ipaddress
from collections.abc import Callable
from functools import partial
from typing import Any

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.compute.errors import already_exists, in_use, missing, not_found, wrong
from bezel_localcloud.services.compute.links import fingerprint, with_links
from bezel_localcloud.services.compute.operations import begin_timed, once, root
from bezel_localcloud.services.compute.vpc import FIRST_ADDRESS
from bezel_localcloud.services.compute.vpc_api import list_page, place_of, row_of, serves
from bezel_localcloud.services.load_balancing.certificates import advance, certificate_json
from bezel_localcloud.services.load_balancing.checks import complete, stale
from bezel_localcloud.services.load_balancing.kinds import (
    ADDRESS,
    BACKEND_SERVICE,
    FORWARDING_RULE,
    HTTPS_PROXY,
    KINDS,
    PLATFORMS,
    SECURITY_POLICY,
    SSL_CERTIFICATE,
    BalancerKind,
    Row,
)
from bezel_localcloud.services.load_balancing.references import (
    address_named,
    exists,
    references,
    use_permission,
    users,
    with_names,
)

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
SECONDS = 8.0
"""Platform time of any change."""
# Addresses of balancers are on the loopback interface, so that a client on this computer reaches them. IPv6 addresses
# are of the range for documentation, and lead nowhere.
_IPV4, _IPV6 = ipaddress.IPv4Network("127.250.0.0/16"), ipaddress.IPv6Network("2001:db8::/112")


def _insert(kind: BalancerKind, call: Call) -> Json:
    """Create a resource."""
    return once(call, lambda: _begin_insert(kind, call))


def _begin_insert(kind: BalancerKind, call: Call) -> str:
    store, place, body = call.cloud.store, parent(kind, call), complete(kind, _settable(kind, call.body))
    name = f"{place}/{body['name']}"
    if store.get(kind.permissions, name) is not None:
        raise already_exists(name)
    metric, limit = kind.quota
    if len(list(store.rows(kind.permissions))) >= limit:
        text = f"Quota '{metric}' exceeded.  Limit: {limit}.0 globally."
        raise ApiError("PERMISSION_DENIED", text, reason="quotaExceeded")
    if kind is HTTPS_PROXY and not (body.get("sslCertificates") or body.get("certificateMap")):
        raise missing("resource.sslCertificates")
    body = _with_address(kind, call, body)
    number = str(store.next_number("compute id") + 10**18)
    now = timestamp(call.cloud.pace.now())
    put_row(call, kind, name, body | {"id": number, "creationTimestamp": now})
    return begin_timed(call, "insert", name, number, SECONDS)


def _settable(kind: BalancerKind, body: Json) -> Json:
    kept = {key: value for key, value in merge({}, body).items() if key not in PLATFORMS}
    return dict(with_names(kind, kept))


def _with_address(kind: BalancerKind, call: Call, body: Json, name: str = "", old: Row | None = None) -> Json:
    """A body with its address, once all that it refers to exists, and the caller may use what it did not refer to.

    Raises:
        ApiError: 404 for a resource that does not exist, 403 for one that may not be used, 400 for an address in use.
    """
    store, old_references = call.cloud.store, set(references(kind, old or {}))
    for target in references(kind, body):
        if not exists(store, target):
            raise not_found(target)
        if target not in old_references:
            call.require(use_permission(target), f"projects/{PROJECT}")
    if kind is ADDRESS:
        return body if name else body | {"address": _free_address(store, body["ipVersion"])}
    if kind is not FORWARDING_RULE or name:
        return body
    sent = str(body.get("IPAddress", ""))
    address = address_named(store, sent)
    if sent and not address:
        raise (
            not_found(sent)
            if "/" in sent
            else wrong("resource.IPAddress", sent, "Expected an IP address, or the name of a global address.")
        )
    if any(row.get("address") == address for _, row in store.rows(ADDRESS.permissions)):
        call.require("compute.globalAddresses.use", f"projects/{PROJECT}")
    address = address or _free_address(store, body.get("ipVersion", "IPV4"))
    for _, other in store.rows(kind.permissions):
        if (other["IPAddress"], other["portRange"]) == (address, body["portRange"]):
            text = "Specified IP address is in-use and would result in a conflict."
            raise wrong("resource.IPAddress", address, text)
    return body | {"IPAddress": address}


def _free_address(store: Store, version: str) -> str:
    rows = [*store.rows(ADDRESS.permissions), *store.rows(FORWARDING_RULE.permissions)]
    taken = {row.get("address") or row.get("IPAddress") for _, row in rows}
    if version == "IPV6":
        return next(str(_IPV6[number]) for number in range(1, 2**16) if str(_IPV6[number]) not in taken)
    first = int(store.setting(FIRST_ADDRESS) or 0)
    spare = (str(_IPV4[2 + (first + number) % (2**16 - 4)]) for number in range(2**16 - 4))
    return next(address for address in spare if address not in taken)


def put_row(call: Call, kind: BalancerKind, name: str, row: Row) -> None:
    """Store a resource as it is from now on."""
    call.cloud.store.put(kind.permissions, name, row | {"_changed": call.cloud.pace.now()})


def _get(kind: BalancerKind, call: Call) -> Json:
    """One resource."""
    advance(call.cloud)
    return _resource_json(kind, call, *find_row(kind, call))


def _list(kind: BalancerKind, call: Call) -> Json:
    """Resources of the project, or of a region."""
    advance(call.cloud)
    place = parent(kind, call)
    rows = call.cloud.store.rows(kind.permissions, f"{place}/")
    items = [(name, _resource_json(kind, call, name, row)) for name, row in rows]
    page = list_page(call, kind.listed or f"{kind.name}List", place, items)
    if kind is SECURITY_POLICY:
        del page["selfLink"]  # the one list without a link
    return page


def _patch(kind: BalancerKind, call: Call) -> Json:
    """Change the fields that the body names; null removes a field."""
    return once(call, lambda: _begin_change(kind, call, "patch", merge))


def _update(kind: BalancerKind, call: Call) -> Json:
    """Replace all fields that can be changed."""
    return once(call, lambda: _begin_change(kind, call, "update", lambda _, body: body))


def _begin_change(kind: BalancerKind, call: Call, verb: str, change: Callable[[Json, Json], Any]) -> str:
    name, old = find_row(kind, call)
    check_fingerprint(kind, old, call.body)
    body = _settable(kind, {key: value for key, value in call.body.items() if key not in kind.fixed or value})
    for field in sorted(kind.fixed & body.keys()):
        if field != "rules" and not _is_same(call.cloud.store, field, body[field], old.get(field)):
            raise wrong(f"resource.{field}", body[field], f"It cannot be changed from {old.get(field)}")
    nulls = {key: None for key, value in call.body.items() if value is None}
    before = {key: value for key, value in old.items() if not key.startswith("_") and key not in PLATFORMS}
    before = {key: value for key, value in before.items() if key in kind.served | {"name", "description", "labels"}}
    new = complete(kind, change(before, body | nulls) | {key: old[key] for key in kind.fixed if key in old})
    new = _with_address(kind, call, new, name, old)
    put_row(call, kind, name, new | {key: old[key] for key in ("id", "creationTimestamp", "labels") if key in old})
    return begin_timed(call, verb, name, old["id"], SECONDS)


def _is_same(store: Store, field: str, sent: Any, value: Any) -> bool:
    if field == "IPAddress":
        return bool(address_named(store, str(sent)) == value)
    return bool(sent == value or (field == "portRange" and f"{sent}-{sent}" == value))


def check_fingerprint(kind: BalancerKind, old: Row, body: Json) -> None:
    """Check the fingerprint that a change brings.

    Raises:
        ApiError: 412 for another than the current one, and where a change of this kind needs one.
    """
    sent = body.get("fingerprint")
    if (kind.fingerprint or sent) and sent != fingerprint_of(old):
        raise stale("fingerprint")


def fingerprint_of(row: Row) -> str:
    """The fingerprint of a resource, which changes with all but its labels."""
    return fingerprint({key: value for key, value in row.items() if key != "labels" and not key.startswith("_")})


def _delete(kind: BalancerKind, call: Call) -> Json:
    """Delete a resource that no other one needs."""
    return once(call, lambda: _begin_delete(kind, call))


def _begin_delete(kind: BalancerKind, call: Call) -> str:
    name, old = find_row(kind, call)
    for user in users(call.cloud.store, name):
        raise in_use(kind.noun, name, user)
    call.cloud.store.delete(kind.permissions, name)
    return begin_timed(call, "delete", name, old["id"], SECONDS)


def _set_labels(kind: BalancerKind, call: Call) -> Json:
    """Replace the labels of a resource."""

    def begin() -> str:
        name, old = find_row(kind, call)
        if call.body.get("labelFingerprint") != fingerprint(old.get("labels", {})):
            raise stale("labelFingerprint")
        put_row(call, kind, name, old | {"labels": merge({}, call.body.get("labels") or {})})
        return begin_timed(call, "setLabels", name, old["id"], SECONDS)

    return once(call, begin)


def _set_field(kind: BalancerKind, verb: str, field: str, call: Call) -> Json:
    """Replace one field by the verb that is for it."""

    def begin() -> str:
        name, old = find_row(kind, call)
        sent = _settable(kind, call.body).get(field)
        kept = {key: value for key, value in old.items() if key != field}
        new = kept | ({field: sent} if sent else {})
        for required in kind.required:
            if not new.get(required):
                raise missing(required)
        put_row(call, kind, name, _with_address(kind, call, new, name, old))
        return begin_timed(call, verb, name, old["id"], SECONDS)

    return once(call, begin)


def parent(kind: BalancerKind, call: Call) -> str:
    """Name of the collection that the path is about."""
    return place_of(call, kind.collection, regional=kind.regional)


def find_row(kind: BalancerKind, call: Call) -> tuple[str, Row]:
    """Name and row of the resource that the path names.

    Raises:
        ApiError: NOT_FOUND.
    """
    return row_of(call, kind.permissions, f"{parent(kind, call)}/{call.param('resource')}")


def _resource_json(kind: BalancerKind, call: Call, name: str, row: Row) -> Json:
    body = {key: value for key, value in row.items() if not key.startswith("_")}
    response: Json = {"kind": f"compute#{kind.name}", "selfLink": name, "description": ""} | body
    if kind.fingerprint is not None:
        response["fingerprint"] = fingerprint_of(row)
    if kind.has_labels:
        response["labelFingerprint"] = fingerprint(row.get("labels", {}))
    if kind is ADDRESS:
        uses = list(users(call.cloud.store, name))
        response |= {"status": "IN_USE", "users": uses} if uses else {"status": "RESERVED"}
    if kind is BACKEND_SERVICE:
        references_of = [{"reference": user} for user in users(call.cloud.store, name)]
        response |= {"usedBy": references_of} if references_of else {}
    if kind is SSL_CERTIFICATE:
        response |= certificate_json(row)
    shown: Json = with_links(response, root(call))
    if kind.regional:
        shown["region"] = f"{root(call)}/projects/{PROJECT}/regions/{name.split('/')[3]}"
    return shown


def _serve(kind: BalancerKind) -> None:
    """Register the handlers of a kind under both versions."""
    place = "regions/{region:id}/" if kind.regional else "global/"
    collection, item = f"/{place}{kind.collection}", f"/{place}{kind.collection}/{{resource:id}}"
    methods: list[tuple[str, str, str, str, Callable[[BalancerKind, Call], Json]]] = [
        ("POST", collection, "create", "requestId", _insert),
        ("GET", collection, "list", "maxResults pageToken returnPartialSuccess", _list),
        ("GET", item, "get", "", _get),
        ("DELETE", item, "delete", "requestId", _delete),
    ]
    changes: dict[str, tuple[str, str, str, Callable[[BalancerKind, Call], Json]]] = {
        "patch": ("PATCH", item, "update", _patch),
        "update": ("PUT", item, "update", _update),
    }
    changes["setLabels"] = ("POST", f"{item}/setLabels", "setLabels", _set_labels)
    for verb in kind.verbs:
        method, path, permission, handler = changes[verb]
        # The labels of a global resource have no request id.
        methods.append((method, path, permission, "" if verb == "setLabels" else "requestId", handler))
    for verb, path, permission, query, handler in methods:
        serves(api, verb, path, f"compute.{kind.permissions}.{permission}", query)(partial(handler, kind))
    for verb, field in kind.setters.items():
        path = item.replace("/global/", "/") if verb in kind.setters_at else item
        needs, setter = f"compute.{kind.permissions}.{verb}", partial(_set_field, kind, verb, field)
        serves(api, "POST", f"{path}/{verb}", needs, "requestId")(setter)


for _kind in KINDS:
    _serve(_kind)
