"""Compute Engine for the Google at the wire: networks and what lies in them, each change an operation of its kind.

One router is always there, as the place for a NAT that is tried alone.
"""

import re
from typing import Any

STANDING = "standing"  # the name of the router that is always there
NOW = "2026-11-21T10:00:00.000000Z"
_VERBS = ("setPrivateIpGoogleAccess", "expandIpCidrRange")


def operation(base: str, key: str, number: int, kind: str, *, done: bool) -> dict[str, Any]:
    """An operation on `/compute/v1/projects/P/global/networks/N` or the like."""
    where = re.sub(r"(/(?:global|regions/[^/]+))/.*", r"\1", key)
    return {
        "kind": "compute#operation",
        "name": f"op-{number}",
        "operationType": kind,
        "status": "DONE" if done else "RUNNING",
        "targetLink": f"{base}{key}",
        "selfLink": f"{base}{where}/operations/op-{number}",
    }


def resource_of(base: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
    """What Google makes of a body."""
    additions = {"id": "644726648705286785", "creationTimestamp": NOW, "selfLink": f"{base}{key}"}
    if "region" in body:
        additions["region"] = f"{base}/compute/v1/{body['region']}".replace("/global/", "/")
    return {**body, **additions}


def standing(base: str, key: str) -> dict[str, Any] | None:
    """The router that is always there, if it is this one."""
    return resource_of(base, key, {"name": STANDING}) if key.endswith(f"/routers/{STANDING}") else None


def is_requested(key: str, thing: dict[str, Any]) -> bool:
    """Whether a request made this: all but the standing router without a NAT."""
    return bool(thing.get("nats")) if key.endswith(f"/routers/{STANDING}") else True


def of_verb(path: str) -> str:
    """The thing that a verb is about, or "" where the path has none."""
    thing, _, verb = path.rpartition("/")
    return thing if verb in _VERBS else ""


def verb_content(path: str, body: dict[str, Any] | None) -> dict[str, Any]:
    """What a verb changes: a switch that the body leaves out is turned off."""
    off = {"privateIpGoogleAccess": False} if path.endswith("/setPrivateIpGoogleAccess") else {}
    return off | (body or {})
