"""Changes of a program as the recordings of single changes describe them: a path, and what becomes of its value."""

import copy
import re
from typing import Any

from bezel_pulumi_offline.lifecycle.values import UNKNOWN

OPERATIONS = frozenset({"none", "remove", "change", "add", "append", "reverse", "spelling", "unknown"})


def place(inputs: dict[str, Any], path: str) -> tuple[Any, Any]:
    """The object that holds a property, and the property's name or index there."""
    parts: list[Any] = [
        int(part[1:-1]) if part.startswith("[") else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", path)
    ]
    into: Any = inputs
    for part in parts[:-1]:
        into = into[part] if isinstance(into, list) else into.setdefault(part, {})
    return into, parts[-1]


def with_change(program: dict[str, Any], change: dict[str, Any]) -> dict[str, Any] | None:
    """The program after a recorded change; None where the recording does not hold the change's value."""
    if change["op"] not in OPERATIONS:
        return None
    wanted = copy.deepcopy(program)
    if change["op"] == "none":
        return wanted
    into, last = place(wanted, change["path"])
    if change["op"] == "remove":
        del into[last]
    elif change["op"] == "append":
        into[last].append(change["item"])
    elif change["op"] == "reverse":
        into[last].reverse()
    else:
        into[last] = UNKNOWN if change["op"] == "unknown" else change["to"]
    return wanted


def with_value(program: dict[str, Any], path: str, value: Any) -> dict[str, Any] | None:
    """The program with a value in a place; None where it has no object there, whose other values it would lack."""
    value_there: Any = program
    for part in re.findall(r"\[\d+\]|[^.\[\]]+", path)[:-1]:
        key: Any = int(part[1:-1]) if part.startswith("[") else part
        try:
            value_there = value_there[key]
        except (KeyError, IndexError, TypeError):
            return None
    wanted = copy.deepcopy(program)
    into, last = place(wanted, path)
    if isinstance(into, list) and (not isinstance(last, int) or last >= len(into)):
        return None
    if value is not None:
        into[last] = value
    elif isinstance(into, list) or last in into:
        del into[last]
    return wanted
