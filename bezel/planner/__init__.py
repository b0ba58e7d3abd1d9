"""Pure rules: a stack's settings become a Plan, or everything that is wrong with them is said at once.

Owns what can be known without the cloud. Knows nothing of Pulumi, HTTP or the clock.
"""

from bezel.planner.lease_plan import LeasePlan
from bezel.planner.lease_summary import plan_summary
from bezel.planner.making import make_plan
from bezel.planner.outputs import plan_output
from bezel.planner.plan import ImagePlan, Plan, ProbePlan, ServicePlan, SmokePlan, WeightsPlan
from bezel.planner.problems import PlanError, Problem

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
