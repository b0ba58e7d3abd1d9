"""The engine's saved plans: which values an execution may find other than the preview did.

Providers return the old outputs of a resource in the preview of its update, such as the newest revision of a service.
The engine takes these for known, so without this an execution would stop as soon as an update had made the next
revision. Leaves out making and executing plans (`engine`).
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bezel_base.atomic_write import write_whole

_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How the engine writes a value that only the execution knows."""
_UNCHANGED = frozenset({"same", "read"})


def let_computed_values_differ(file: Path) -> None:
    """Let values that come from resources that change be what the execution makes of them.

    These are the outputs of components and of the stack, which change nothing in the cloud, and those inputs of a
    resource that depend on one that changes and that the preview saw unchanged. Steps and all other inputs stay as
    planned: a resource that was to stay as it is still stays.

    Args:
        file: The plan, changed in place.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    resources: dict[str, Any] = content.get("resourcePlans") or {}
    changing = {urn for urn, plan in resources.items() if not _UNCHANGED.issuperset(plan.get("steps") or ())}
    for plan in resources.values():
        goal = plan.get("goal")
        if not goal:
            continue
        needed: dict[str, list[str]] = goal.get("propertyDependencies") or {}
        computed = [name for name, urns in needed.items() if not changing.isdisjoint(urns)]
        inputs = goal.setdefault("inputDiff", {})
        planned = {*(inputs.get("adds") or {}), *(inputs.get("updates") or {}), *(inputs.get("deletes") or ())}
        _let_differ(inputs, [name for name in computed if name not in planned])
        if not goal.get("custom"):
            _let_differ(goal.setdefault("outputDiff", {}), plan.get("state") or {})
    write_whole(file, json.dumps(content), mode=0o600)


def _let_differ(diff: dict[str, Any], names: Iterable[str]) -> None:
    adds = diff.get("adds") or {}
    for name in names:
        kind = "adds" if name in adds else "updates"
        diff[kind] = (diff.get(kind) or {}) | {name: _UNKNOWN}
