"""Judgement of a stack file's text: its plan, or every problem of it, and what it costs. Asks no cloud.

Leaves out policies and quotas, which a deploy judges, and writing.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime

from bezel.engine.project.project import cloud_project_of
from bezel.operations.context import Context
from bezel.planner import AnyPlan, Plan, make_plan, plan_summary
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.cost.lease_cost import LeaseTotal
from bezel.planner.cost.total_cost import TotalCost
from bezel.resource_cost.stack_cost import StackCost
from bezel_base.errors import Problem, UserError
from bezel_localcloud.core.paths import PROJECT


@dataclass(frozen=True)
class JudgedText:
    """A text with its plan, or its problems.

    Attributes:
        plan: Its plan; None where it has problems.
        problems: Every problem, each as one line.
    """

    plan: AnyPlan | None
    problems: tuple[str, ...] = ()

    @property
    def cost(self) -> StackCost | None:
        """Its price; None without a plan."""
        return None if self.plan is None else _cost_of(self.plan)

    @property
    def digest(self) -> str:
        """Digest of all that it says: it differs where the catalogue or the rules do."""
        parts = [*self.problems]
        if self.plan is not None:
            figures = json.dumps(self.plan.as_output(), sort_keys=True, default=str)
            parts += [plan_summary(self.plan), figures, *self.plan.server.arguments, *self.plan.warnings]
        return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def judge(context: Context, stack: str, text: str) -> JudgedText:
    """Plan a text as a preview plans the file.

    Args:
        context: The context.
        stack: The stack's name.
        text: Content of its file.
    """
    project, today = context.project, datetime.now(UTC).date()
    try:
        values = project.configuration_in(text, f"Pulumi.{stack}.yaml")
        named = values.get("gcp:project") or cloud_project_of(context.environ)
        settings = {
            key.removeprefix(f"{NAMESPACE}:"): value for key, value in values.items() if key.startswith(f"{NAMESPACE}:")
        }
        models = project.models()
        return JudgedText(make_plan(settings, project=str(named or PROJECT), stack=stack, today=today, models=models))
    except UserError as error:
        return JudgedText(None, tuple(map(problem_line, error.problems)))


def problem_line(problem: Problem | str) -> str:
    """A problem with value, consequence and repair, as one line."""
    if isinstance(problem, str):
        return " ".join(problem.split())
    return f"{problem.head}: {problem.consequence} Repair: {problem.repair}"


def _cost_of(plan: AnyPlan) -> StackCost:
    of = plan.total if isinstance(plan, Plan) else plan.cost
    most = list(plan.server_hours.values())[-1]
    samples = None if plan.metrics is None else plan.metrics.cost.usd(most)
    if isinstance(of, LeaseTotal):
        month = of.machines_monthly if of.machines_monthly is not None else of.lease_at_max
        return StackCost(of.hourly_at_max, month, of.machines_hourly, of.missing, samples=samples)
    regions = {region: each.hourly_at_max for region, each in of.services.items()} if isinstance(of, TotalCost) else {}
    amounts = of.hourly_at_max, of.monthly_at_max, of.hourly_at_min
    return StackCost(*amounts, of.missing, regions=regions, samples=samples)
