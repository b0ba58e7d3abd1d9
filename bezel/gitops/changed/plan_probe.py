"""Plans of all stacks of the tree in the current folder, part by part, as JSON: a script of its own process.

Started with the tree on PYTHONPATH, so that an older tree is planned by its own rules and its own catalogue. Uses only
what every tree has: the project's files and `make_plan`. A stack that cannot be planned has its problems in place of
parts. Cloud and clock do not count: the project's name and the day are the same for both trees.
"""

import dataclasses
import hashlib
import json
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, make_plan
from bezel.planner.base.money import text
from bezel_base.errors import UserError

_PROJECT, _DAY = "bezel-compared", date(2026, 1, 1)


def plain(value: Any) -> Any:
    """A value as JSON, the same for equal values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def parts(project: Project, stack: str) -> dict[str, str]:
    """Kind, price per hour at most and digests of the parts of a stack's plan, by name."""
    # A tree from before projects had models of their own has neither the method nor the argument.
    more = {"models": project.models()} if hasattr(project, "models") else {}
    try:
        plan = make_plan(project.configuration(stack), project=_PROJECT, stack=stack, today=_DAY, **more)
    except UserError as error:
        return {"kind": "", "problems": str(error)}
    kind = "lease" if isinstance(plan, LeasePlan) else "service"
    # Nor has its plan a sum of several regions.
    price = f"{text(getattr(plan, 'total', plan.cost).hourly_at_max, 4)} USD/h"
    content = {name: json.dumps(value, sort_keys=True) for name, value in plain(plan).items()}
    if len(getattr(plan, "regions", ())) == 1:  # which says again what the other parts do
        del content["regions"]
    digests = {name: hashlib.sha256(part.encode()).hexdigest() for name, part in content.items()}
    return {"kind": kind, "price": price} | digests


if __name__ == "__main__":
    here = Project(Path.cwd())
    sys.stdout.write(json.dumps({stack: parts(here, stack) for stack in here.stacks()}))
