"""Planner: pure rules that turn a stack's settings into a Plan, or report all their problems at once.

Owns everything that can be known without the cloud. Knows nothing of Pulumi, HTTP or the clock.
"""

from bezel.planner.assemble.build import make_plan
from bezel.planner.assemble.plan import LeasePlan, Plan
from bezel.planner.base.deployment import SmokePlan
from bezel.planner.base.problems import PlanError
from bezel.planner.render.summary import plan_summary
from bezel_base.errors import Problem

AnyPlan = Plan | LeasePlan

__all__ = ["AnyPlan", "LeasePlan", "Plan", "PlanError", "Problem", "SmokePlan", "make_plan", "plan_summary"]
