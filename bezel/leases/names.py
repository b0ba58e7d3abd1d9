"""Names of leases, the labels that mark Bezel's, and the hash and differences of request bodies.

The name is the same in every zone, so that a run after a kill repeats the same request. Leaves out the content of a
body (`bezel.leases.requests`).
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""Machine names that the TPU API and Compute both accept."""

MANAGED_BY = "managed-by"
OWNER = "bezel"
STACK = "stack"
LEASE = "bezel-lease"
SPEC = "bezel-spec"
BY_HAND = "bezel-by-hand"
"""Stack in the labels of a lease that an operator requested, and no stack."""


def labels(name: str, stack: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The labels of a lease's request, node and machine; the body in a zone also has its hash."""
    return {**(more or {}), MANAGED_BY: OWNER, STACK: stack, LEASE: name}


def plain(value: Any) -> Any:
    """A value as before its passage through the engine, which makes every number a float and drops nulls."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def spec_hash(body: Mapping[str, Any]) -> str:
    """Twelve digits that change with any part of a body without a zone, metadata included."""
    text = json.dumps(plain(dict(body)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def request_id(name: str, zone: str, spec: str, moment: float) -> str:
    """Idempotency id of a request: Google treats repeats with it as the same request.

    The moment is part of it because the same name is requested again after its lease ended, as another request.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"bezel/{zone}/{name}/{spec}/{moment:.3f}"))


def differing_paths(old: Any, new: Any, path: str = "body") -> list[str]:
    """The paths at which two bodies differ, as text for a person; values that cannot be compared differ."""
    return list(_differing(plain(old), plain(new), path))


def _differing(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _differing(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            if _key(before) != _key(after):
                yield f"{path}[{number}]"
                continue
            name = f'["{_key(before)}"]' if _key(before) else f"[{number}]"
            yield from _differing(before, after, path + name)
    elif type(old) is not type(new) or old != new:
        yield path


def _key(item: Any) -> str:
    """The name of a metadata entry, which is more helpful than its index."""
    return str(item["key"]) if isinstance(item, dict) and isinstance(item.get("key"), str) else ""
