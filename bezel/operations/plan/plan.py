"""Plan of a stack: what it deploys, needs and costs, and where each value comes from. Asks no cloud.

A model that has no row is read from its hub (`unwritten_model`).

Leaves out how a plan is computed: see `bezel.planner`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from bezel.engine.project.own_program import check_settings
from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.context import Context
from bezel.operations.plan.unwritten_model import unwritten_model
from bezel.operations.results import Result
from bezel.planner import AnyPlan, make_plan, plan_summary
from bezel.planner.assemble.provenance import STACK_FILE
from bezel.planner.render.short_summary import short_blocks
from bezel.planner.render.summary import plan_blocks
from bezel_base.terminal.blocks import Block, Line
from bezel_catalog import Model
from bezel_localcloud.core.paths import PROJECT


class PlanArguments(Arguments):
    """Which stack, and how much of its plan."""

    stack: Stack
    all: Annotated[bool, Reach.INSIDE] = Field(default=False, description="show every value with its origin as text")


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
    read: str | None = Field(None, description="what was read of a hub, for a model without a row in catalog.toml")

    blocks: tuple[Any, ...] = Field(exclude=True, repr=False, description="what the text shows of it")

    def page(self) -> Iterator[Block]:
        """The short or the whole summary, and what was read for it."""
        yield from self.blocks
        yield from (Line(), Line(self.read)) if self.read else ()


def plan(context: Context, arguments: PlanArguments) -> PlanReport:
    """The plan of a stack.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
        UserError: It names a model of a hub that cannot be read.
    """
    project_models = context.project.models()
    unwritten = unwritten_model(context, arguments.stack, project_models)
    models = {**project_models, unwritten[0].id: unwritten[0]} if unwritten else project_models
    made, project = plan_of(context, arguments.stack, models)
    return PlanReport(
        stack=arguments.stack,
        project=project,
        values=made.as_output(),
        arguments=tuple(made.server.arguments),
        warnings=made.warnings,
        summary=plan_summary(made),
        read=unwritten[1] if unwritten else None,
        blocks=tuple(plan_blocks(made) if arguments.all else short_blocks(made)),
    )


def plan_of(context: Context, stack: str, models: Mapping[str, Model] | None = None) -> tuple[AnyPlan, str]:
    """The plan of a stack, and the project that it is for.

    Args:
        context: The context.
        stack: The stack's name.
        models: The project's models; None for the rows of its `catalog.toml`.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
        ProjectError: Its program declares its services itself.
    """
    project = context.project
    check_settings(project, stack)
    named = project.cloud_project(stack, context.environ)
    if named is None:
        context.show(f"No Google Cloud project is set (gcp:project, GOOGLE_PROJECT): planned for {PROJECT}.")
    today = datetime.now(UTC).date()
    project_models = project.models() if models is None else models
    made = make_plan(
        project.configuration(stack), project=named or PROJECT, stack=stack, today=today, models=project_models
    )
    # The plan itself cannot distinguish a default of Pulumi.yaml from the same value in the stack's file.
    written = {key: STACK_FILE for key in project.given_keys(stack) if key in made.origins}
    return replace(made, origins={**made.origins, **written}), named or PROJECT
