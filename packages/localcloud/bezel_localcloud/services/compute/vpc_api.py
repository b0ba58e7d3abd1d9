"""Compute v1 and beta: networks, subnetworks, firewall rules and routers with their NATs.

Every kind has the same methods, so one set of handlers serves all. Leaves out IPv6, peering, and all parts of a router
but its NATs.
"""

import ipaddress
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.regions import regions
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.router import Api, Call, Handler
from bezel_localcloud.services.compute.auto_mode import automatic_subnetworks, is_automatic
from bezel_localcloud.services.compute.errors import already_exists, in_use, missing, not_found, wrong
from bezel_localcloud.services.compute.links import fingerprint, full_name, with_links
from bezel_localcloud.services.compute.operations import begin_timed, once, root
from bezel_localcloud.services.compute.vpc import users
from bezel_localcloud.services.compute.vpc_kinds import KINDS, NETWORK, SUBNETWORK, ResourceKind, complete_resource

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
VERSIONS = ("v1", "beta")
# Fields that the platform sets, whatever a caller sends.
PLATFORMS = frozenset(
    {"id", "kind", "selfLink", "selfLinkWithId", "creationTimestamp", "region", "fingerprint", "etag", "params",
     "state", "subnetworks", "gatewayIPv4", "gatewayAddress"}
)  # fmt: skip
_SECONDS = 8.0  # of the platform's time, for any change


def serves(
    to: Api, method: str, path: str, needs: str = "", query: str = "", on: str = "projects/{project}"
) -> Callable[[Handler], Handler]:
    """Register a handler under both versions; see `Api.route`."""

    def register(handler: Handler) -> Handler:
        for version in VERSIONS:
            base = f"/compute/{version}/projects/{{project:id}}"
            to.route(method, base + path, needs=needs, query=query, on=on)(handler)
        return handler

    return register


def _insert(kind: ResourceKind, call: Call) -> Json:
    """Create a resource."""
    return once(call, lambda: _begin_insert(kind, call))


def _begin_insert(kind: ResourceKind, call: Call) -> str:
    store, body = call.cloud.store, complete_resource(kind, _settable(call.body))
    name = f"{place_of(call, kind.plural, regional=kind.regional)}/{body['name']}"
    if store.get(kind.name, name) is not None:
        raise already_exists(name)
    _check_placed(store, kind, name, body)
    number = put_new(store, kind, name, body, call.cloud.pace.now())
    if kind is NETWORK and body["autoCreateSubnetworks"]:
        for subnetwork, automatic in automatic_subnetworks(name):
            put_new(store, SUBNETWORK, subnetwork, automatic, call.cloud.pace.now())
    return begin_timed(call, "insert", name, number, _SECONDS)


def put_new(store: Store, kind: ResourceKind, name: str, body: Json, now: float) -> str:
    """Store a new resource and return its number.

    Args:
        store: The store.
        kind: Its kind.
        name: Its full name.
        body: Its checked body.
        now: Unix seconds of its creation.
    """
    number = str(random.getrandbits(62))
    store.put(kind.name, name, body | {"id": number, "creationTimestamp": timestamp(now)})
    return number


def _settable(body: Json) -> Json:
    return {key: value for key, value in merge({}, body).items() if key not in PLATFORMS}


def _get(kind: ResourceKind, call: Call) -> Json:
    """One resource."""
    return _resource_json(kind, call, *_find_row(kind, call))


def _list(kind: ResourceKind, call: Call) -> Json:
    """Resources of the project, or of a region."""
    parent = place_of(call, kind.plural, regional=kind.regional)
    items = [
        (name, _resource_json(kind, call, name, body)) for name, body in call.cloud.store.rows(kind.name, f"{parent}/")
    ]
    return list_page(call, f"{kind.name}List", parent, items)


def list_page(call: Call, kind: str, parent: str, items: list[tuple[str, Any]]) -> Json:
    """One page of a list as Compute Engine shows it."""
    head = {"kind": f"compute#{kind}", "id": parent, "selfLink": f"{root(call)}/{parent}"}
    return head | call.page(items, "items", default=500, max_size=500)


def _patch(kind: ResourceKind, call: Call) -> Json:
    """Change the fields that the body names; null removes a field."""
    return once(call, lambda: _begin_change(kind, call, "patch", merge))


def _update(kind: ResourceKind, call: Call) -> Json:
    """Replace all fields that can be changed."""
    return once(call, lambda: _begin_change(kind, call, "update", lambda _, body: body))


def _begin_change(kind: ResourceKind, call: Call, verb: str, change: Any) -> str:
    name, old = _find_row(kind, call)
    fixed = {key: old[key] for key in kind.fixed if key in old}
    for field, fixed_value in sorted(fixed.items()):
        sent = call.body.get(field)
        if sent is not None and (full_name(sent, "global/networks") if field == "network" else sent) != fixed_value:
            raise wrong(f"resource.{field}", sent, f"It cannot be changed from {fixed_value}")
    if kind is SUBNETWORK:
        _check_fingerprint(call, old)
    new = complete_resource(kind, _settable(change(old, call.body) | fixed))
    _check_placed(call.cloud.store, kind, name, new)
    call.cloud.store.put(kind.name, name, new | {key: old[key] for key in ("id", "creationTimestamp")})
    return begin_timed(call, verb, name, old["id"], _SECONDS)


def _check_placed(store: Store, kind: ResourceKind, name: str, body: Json) -> None:
    """Check a resource against those that it names and those in the same network.

    Raises:
        ApiError: 404 for a network or subnetwork that does not exist, 400 for a range that overlaps another one.
    """
    network = body.get("network")
    if network is None:
        return
    if store.get("network", network) is None:
        raise not_found(network)
    if kind.name == "subnetwork":
        cidr = ipaddress.IPv4Network(body["ipCidrRange"])
        for other, there in store.rows("subnetwork"):
            same_network = other != name and there["network"] == network
            if same_network and cidr.overlaps(ipaddress.IPv4Network(there["ipCidrRange"])):
                region, short = other.split("/")[3], other.rpartition("/")[2]
                why = f"Invalid IPCidrRange: {cidr} conflicts with existing subnetwork '{short}' in region '{region}'."
                raise wrong("resource.ipCidrRange", cidr, why)
    for subnetwork in (named["name"] for nat in body.get("nats", []) for named in nat.get("subnetworks", [])):
        if store.get("subnetwork", subnetwork) is None:
            raise not_found(subnetwork)


def _check_fingerprint(call: Call, old: Json) -> None:
    sent = call.body.get("fingerprint")
    if not sent:
        raise missing("resource.fingerprint")
    if sent != fingerprint(old):
        text = "The fingerprint is not the current one: read the resource and send its current fingerprint."
        raise ApiError("FAILED_PRECONDITION", text, status=412)


def _delete(kind: ResourceKind, call: Call) -> Json:
    """Delete a resource that no other one needs."""
    return once(call, lambda: _begin_delete(kind, call))


def _begin_delete(kind: ResourceKind, call: Call) -> str:
    name, old = _find_row(kind, call)
    store, automatic = call.cloud.store, []
    if kind is NETWORK:
        rows = store.rows(SUBNETWORK.name)
        automatic = [user for user, row in rows if row["network"] == name and is_automatic(old, name, user)]
    elif kind is SUBNETWORK and is_automatic(store.get(NETWORK.name, old["network"]), old["network"], name):
        text = f"Cannot delete auto subnetwork from an auto subnet mode network: delete the network '{old['network']}'."
        raise ApiError("FAILED_PRECONDITION", text, reason="invalid")
    for target in (name, *automatic) if kind in {NETWORK, SUBNETWORK} else ():
        for user in users(store, target):
            if user not in automatic:
                raise in_use(kind.name, name, user)
    for target in (*automatic, name):
        store.delete(kind.name if target == name else SUBNETWORK.name, target)
        store.delete_policy(target)
    return begin_timed(call, "delete", name, old["id"], _SECONDS)


def _set_google_access(kind: ResourceKind, call: Call) -> Json:
    """Enable or disable private Google access of a subnetwork."""

    def begin() -> str:
        name, old = _find_row(kind, call)
        access = bool(call.body.get("privateIpGoogleAccess"))
        call.cloud.store.put(kind.name, name, old | {"privateIpGoogleAccess": access})
        return begin_timed(call, "setPrivateIpGoogleAccess", name, old["id"], _SECONDS)

    return once(call, begin)


def _expand(kind: ResourceKind, call: Call) -> Json:
    """Replace the range of a subnetwork by a larger one that holds it."""

    def begin() -> str:
        name, old = _find_row(kind, call)
        ip_range = call.body.get("ipCidrRange") or ""
        new = complete_resource(kind, _settable(old | {"ipCidrRange": ip_range}))
        before, after = ipaddress.IPv4Network(old["ipCidrRange"]), ipaddress.IPv4Network(new["ipCidrRange"])
        if before == after or not before.subnet_of(after):
            raise wrong("ipCidrRange", ip_range, f"The new range must be larger than {before} and contain it")
        _check_placed(call.cloud.store, kind, name, new)
        call.cloud.store.put(kind.name, name, new | {key: old[key] for key in ("id", "creationTimestamp")})
        return begin_timed(call, "expandIpCidrRange", name, old["id"], _SECONDS)

    return once(call, begin)


def place_of(call: Call, collection: str, *, regional: bool) -> str:
    """Name of the collection that the path is about, of the project or of a region.

    Raises:
        ApiError: There is no such region.
    """
    if not regional:
        return f"projects/{PROJECT}/global/{collection}"
    region = call.param("region")
    if region not in regions():
        raise wrong("region", region, "Unknown region.")
    return f"projects/{PROJECT}/regions/{region}/{collection}"


def _find_row(kind: ResourceKind, call: Call) -> tuple[str, Json]:
    place = place_of(call, kind.plural, regional=kind.regional)
    return row_of(call, kind.name, f"{place}/{call.param(kind.name)}")


def row_of(call: Call, kind: str, name: str) -> tuple[str, Json]:
    """Return a name and its row.

    Raises:
        ApiError: NOT_FOUND.
    """
    return name, call.row_of(kind, name, not_found(name).message)


def _resource_json(kind: ResourceKind, call: Call, name: str, body: Json) -> Json:
    response: Json = {"kind": f"compute#{kind.name}", "selfLink": name} | body
    if kind.name == "network":
        subnetworks = [user for user, row in call.cloud.store.rows("subnetwork") if row["network"] == name]
        response["selfLinkWithId"] = f"{name.rpartition('/')[0]}/{body['id']}"
        response |= {"subnetworks": subnetworks} if subnetworks else {}
    if kind.name == "subnetwork":
        response["fingerprint"] = fingerprint(body)
    shown: Json = with_links(response, root(call))
    if kind.regional:
        shown["region"] = f"{root(call)}/projects/{PROJECT}/regions/{name.split('/')[3]}"
    return shown


def _serve(kind: ResourceKind) -> None:
    """Register the handlers of a kind under both versions."""
    place = "regions/{region:id}" if kind.regional else "global"
    item_path = f"/{{{kind.name}:id}}"
    methods = [
        ("POST", "", "create", "requestId", _insert),
        ("GET", "", "list", "maxResults pageToken returnPartialSuccess", _list),
        ("GET", item_path, "get", "", _get),
        ("PATCH", item_path, "update", "requestId", _patch),
        ("DELETE", item_path, "delete", "requestId", _delete),
    ]
    if kind.name in {"firewall", "router"}:
        methods.append(("PUT", item_path, "update", "requestId", _update))
    if kind is SUBNETWORK:
        access = f"{item_path}/setPrivateIpGoogleAccess"
        methods.append(("POST", access, "setPrivateIpGoogleAccess", "requestId", _set_google_access))
        methods.append(("POST", f"{item_path}/expandIpCidrRange", "expandIpCidrRange", "requestId", _expand))
    for verb, path, permission, query, handler in methods:
        needs = f"compute.{kind.plural}.{permission}"
        whole = f"/{place}/{kind.plural}{path}"
        on = f"projects/{{project}}{whole.replace(':id', '')}" if path == item_path and kind is SUBNETWORK else ""
        serves(api, verb, whole, needs, query, on or "projects/{project}")(partial(handler, kind))


for _kind in KINDS:
    _serve(_kind)
