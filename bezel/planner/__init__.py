"""Planner: pure rules that turn a stack's settings into a Plan, or report all their problems at once.

Owns everything that can be known without the cloud. Knows nothing of Pulumi, HTTP or the clock.
"""

from bezel.errors import Problem
from bezel.planner.assemble.build import make_plan
from bezel.planner.assemble.lease_plan import LeasePlan
from bezel.planner.assemble.plan import Plan
from bezel.planner.base.deployment import ImagePlan, ProbePlan, ServicePlan, SmokePlan, WeightsPlan
from bezel.planner.base.problems import PlanError
from bezel.planner.render.lease_summary import plan_summary
from bezel.planner.render.outputs import plan_output

AnyPlan = Plan | LeasePlan

__all__ = [
    "AnyPlan",
    "ImagePlan",
    "LeasePlan",
    "Plan",
    "PlanError",
    "ProbePlan",
    "Problem",
    "ServicePlan",
    "SmokePlan",
    "WeightsPlan",
    "make_plan",
    "plan_output",
    "plan_summary",
]
