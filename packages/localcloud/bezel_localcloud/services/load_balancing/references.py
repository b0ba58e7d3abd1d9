"""References between load-balancing resources, in both directions, by names. Pure but for the store."""

import re
from collections.abc import Iterator
from typing import Any

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.compute.links import full_name, relative
from bezel_localcloud.services.load_balancing.kinds import KINDS, OF_COLLECTION, BalancerKind

MANAGER = "//certificatemanager.googleapis.com/"
"""Begins a link to a resource of Certificate Manager."""
_MANAGER_LINK = re.compile(r"(?:https:)?//certificatemanager\.googleapis\.com/(?:v1/)?")
_OF_MANAGER = frozenset({"certificateMaps", "certificates"})
# Source: the published list of permissions, in which SSL certificates of Compute Engine have no `use`.
_USES = {
    "certificateMaps": "certificatemanager.certmaps.use",
    "certificates": "certificatemanager.certs.use",
    "dnsAuthorizations": "certificatemanager.dnsauthorizations.use",
}


def with_names(kind: BalancerKind, value: Any) -> Any:
    """A body with the name of what each link leads to in the link's place."""
    if isinstance(value, dict):
        return {key: _with_name(kind, key, item) for key, item in value.items()}
    return [with_names(kind, item) for item in value] if isinstance(value, list) else value


def _with_name(kind: BalancerKind, key: str, value: Any) -> Any:
    collection = kind.references.get(key)
    if collection is None or isinstance(value, dict):
        return with_names(kind, value)
    if isinstance(value, list):
        return [_with_name(kind, key, item) for item in value]
    if match := _MANAGER_LINK.match(value):
        return MANAGER + value[match.end() :]
    return full_name(value, f"global/{collection}")


def references(kind: BalancerKind, row: Json) -> Iterator[str]:
    """Names of all that a resource refers to; one of Certificate Manager is a name without a host."""
    for key, value in _leaves("", row):
        if key in kind.references and value:
            yield value.removeprefix(MANAGER)
    if row.get("certificateMap"):
        yield row["certificateMap"].removeprefix(MANAGER)


def _leaves(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text of a body with the name of its field; texts of a list have the list's."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(name, item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(key, item)
    elif isinstance(value, str):
        yield key, value


def row_kind(name: str) -> str:
    """The kind of the rows that a name belongs to, "" for a name of another form."""
    collection = name.split("/")[-2] if name.count("/") > 1 else ""
    if collection in _OF_MANAGER:
        return f"certificatemanager/{collection}"
    return OF_COLLECTION[collection].permissions if collection in OF_COLLECTION else ""


def use_permission(name: str) -> str:
    """The permission to refer to a resource of a name."""
    collection = name.split("/")[-2]
    if collection in _USES:
        return _USES[collection]
    return f"compute.{row_kind(name)}.{'get' if collection == 'sslCertificates' else 'use'}"


def exists(store: Store, name: str) -> bool:
    """Whether there is a resource of a name."""
    return bool(row_kind(name)) and store.get(row_kind(name), name) is not None


def users(store: Store, name: str) -> Iterator[str]:
    """Names of the load-balancing resources that refer to one."""
    for kind in KINDS:
        if kind.references:
            yield from (user for user, row in store.rows(kind.permissions) if name in references(kind, row))
    address = (store.get("globalAddresses", name) or {}).get("address")
    for user, row in store.rows("globalForwardingRules") if address else ():
        if row["IPAddress"] == address:
            yield user


def address_named(store: Store, text: str) -> str:
    """The IP address that a forwarding rule's `IPAddress` stands for: itself, or that of a global address by its name.

    Returns:
        The address; "" where it names a resource that does not exist.
    """
    if "/" not in text and (store.get("globalAddresses", f"projects/{PROJECT}/global/addresses/{text}") is None):
        return text if not text or text[0] in "0123456789" or ":" in text else ""
    name = relative(text) if "/" in text else f"projects/{PROJECT}/global/addresses/{text}"
    return str((store.get("globalAddresses", name) or {}).get("address", ""))
