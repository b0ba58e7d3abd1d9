"""Planner: pure rules that turn a stack's settings into a Plan, or report all their problems at once.

Owns everything that can be known without the cloud. Knows nothing of Pulumi, HTTP or the clock. The rules are imported
with the first use of a name here: a command that only reads a project's files spares a quarter of a second.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.planner.assemble.build import make_plan
    from bezel.planner.assemble.plan import AnyPlan, LeasePlan, Plan
    from bezel.planner.base.deployment import SmokePlan
    from bezel.planner.base.problems import PlanError
    from bezel.planner.render.summary import plan_summary
    from bezel_base.errors import Problem
else:
    _MODULES = {
        "AnyPlan": "bezel.planner.assemble.plan",
        "LeasePlan": "bezel.planner.assemble.plan",
        "Plan": "bezel.planner.assemble.plan",
        "PlanError": "bezel.planner.base.problems",
        "Problem": "bezel_base.errors",
        "SmokePlan": "bezel.planner.base.deployment",
        "make_plan": "bezel.planner.assemble.build",
        "plan_summary": "bezel.planner.render.summary",
    }

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` at its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return value


__all__ = ["AnyPlan", "LeasePlan", "Plan", "PlanError", "Problem", "SmokePlan", "make_plan", "plan_summary"]
