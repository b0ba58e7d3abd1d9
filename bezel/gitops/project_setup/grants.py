"""Grants that a set-up makes or removes: who gets which role on what, as its preview planned them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bezel.engine.events.values import Change

_PLACES = {
    "gcp:serviceaccount/iAMMember:IAMMember": ("the account", "serviceAccountId"),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": ("the key", ""),  # Pulumi names it
    "gcp:storage/bucketIAMMember:BucketIAMMember": ("the bucket", "bucket"),
    "gcp:projects/iAMMember:IAMMember": ("the project", "project"),
}
"""Type of a grant -> what it is on, and the property that names that."""


def grants_text(changes: Iterable[Change]) -> str:
    """The grants as lines for a reader, one for each member; "" where none changes."""
    roles: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        for verb, inputs in _states(change):
            roles.setdefault((verb, str(inputs["member"])), []).append(_role(change.type, inputs))
    return "\n".join(f"  {member} {verb} {', '.join(sorted(names))}" for (verb, member), names in sorted(roles.items()))


def _states(change: Change) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a change gives and takes; nothing of one that is no grant."""
    for verb, inputs in (("loses", change.old), ("gets", change.new)):
        if change.type in _PLACES and inputs:
            yield verb, inputs


def _role(kind: str, inputs: Mapping[str, Any]) -> str:
    what, name = _PLACES[kind]
    place = " ".join(filter(None, (what, str(inputs.get(name) or "").rpartition("/")[2] if name else "")))
    condition = inputs.get("condition")
    limit = f" (condition {condition['title']})" if isinstance(condition, Mapping) and condition.get("title") else ""
    return f"{str(inputs['role']).rpartition('/roles/')[2]} on {place}{limit}"
