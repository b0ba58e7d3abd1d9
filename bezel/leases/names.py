"""What a lease is called, what marks it as ours, and what tells one body of a request from another.

The name is the same in every zone, so whoever asks again after a kill asks for the same thing. Leaves out what stands
in a body (`bezel.leases.requests`).
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
"""What TPU and Compute both take as the name of a machine."""

MANAGED_BY = "managed-by"
OWNER = "bezel"
STACK = "stack"
LEASE = "bezel-lease"
SPEC = "bezel-spec"


def labels(name: str, stack: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The labels of a lease's request, node and machine; `in_zone` adds the hash of the body."""
    return {**(more or {}), MANAGED_BY: OWNER, STACK: stack, LEASE: name}


def is_ours(found: Mapping[str, str], name: str, stack: str) -> bool:
    """Whether these labels are those of a lease of this name that this stack asked for."""
    return (found.get(MANAGED_BY), found.get(STACK), found.get(LEASE)) == (OWNER, stack, name)


def is_bezels(found: Mapping[str, str]) -> bool:
    """Whether any stack of ours asked for what has these labels."""
    return found.get(MANAGED_BY) == OWNER and bool(found.get(LEASE))


def plain(value: Any) -> Any:
    """A value as it was before it went through the engine, which makes every number a float and drops nulls."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def spec_hash(body: Mapping[str, Any]) -> str:
    """Twelve digits that change with anything in a body without a zone, its metadata included."""
    text = json.dumps(plain(dict(body)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def request_id(name: str, zone: str, spec: str, moment: float) -> str:
    """The id under which one ask is repeated: Google takes repeats of it for the same request.

    The moment is a part of it because a name is asked for again after its lease ended, which is another request.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"bezel/{zone}/{name}/{spec}/{moment:.3f}"))


def differing_paths(old: Any, new: Any, path: str = "body") -> list[str]:
    """The paths at which two bodies differ, as a person would write them; what is not comparable differs."""
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
    """The name of a metadata entry, which says more than its place in the list."""
    return str(item["key"]) if isinstance(item, dict) and isinstance(item.get("key"), str) else ""
