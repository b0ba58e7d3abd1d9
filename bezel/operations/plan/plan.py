"""Plan of a stack: what it deploys, needs and costs, and where each value comes from. Asks no cloud.

Leaves out how a plan is computed: see `bezel.planner`.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel.planner import AnyPlan, make_plan, plan_summary
from bezel.planner.assemble.provenance import STACK_FILE
from bezel_localcloud.core.paths import PROJECT


class PlanArguments(Arguments):
    """Which stack."""

    stack: Stack


class PlanReport(Result):
    """Plan of a stack."""

    stack: str
    project: str = Field(description="Google Cloud project that it is planned for")
    values: dict[str, Any] = Field(
        description="fit (GiB), weights, start (seconds), estimate (tokens per second), cost (USD), as in the outputs"
    )
    arguments: tuple[str, ...] = Field(description="vLLM's arguments")
    warnings: tuple[str, ...] = Field(description="what is to be known before a deploy, and refuses none")
    summary: str = Field(description="every value with its origin, as text")

    def text(self) -> str:
        """The summary."""
        return f"{self.summary}\n"


def plan(context: Context, arguments: PlanArguments) -> PlanReport:
    """The plan of a stack.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
    """
    made, project = plan_of(context, arguments.stack)
    return PlanReport(
        stack=arguments.stack,
        project=project,
        values=made.as_output(),
        arguments=tuple(made.server.arguments),
        warnings=made.warnings,
        summary=plan_summary(made),
    )


def plan_of(context: Context, stack: str) -> tuple[AnyPlan, str]:
    """The plan of a stack, and the project that it is for.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
    """
    project = context.project
    named = project.cloud_project(stack, context.environ)
    if named is None:
        context.show(f"No Google Cloud project is set (gcp:project, GOOGLE_PROJECT): planned for {PROJECT}.")
    today = datetime.now(UTC).date()
    made = make_plan(
        project.configuration(stack), project=named or PROJECT, stack=stack, today=today, models=project.models()
    )
    # The plan itself cannot distinguish a default of Pulumi.yaml from the same value in the stack's file.
    written = {key: STACK_FILE for key in project.given_keys(stack) if key in made.origins}
    return replace(made, origins={**made.origins, **written}), named or PROJECT
