"""Scaling of a service in two steps: minimum and maximum of its instances, by the stack's file and a deploy.

Leaves out the text of the file (`file_text`) and the run of the engine (bezel.operations.deploy.deploy).
"""

from typing import Annotated

from pydantic import Field

from bezel.engine.project.own_program import check_settings
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack, Wait
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.changes.stack_lock import wait_of
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import apply_stack, plan_stack
from bezel.operations.stack_edits.file_text import with_setting
from bezel.operations.stack_edits.other_changes import other_changes
from bezel.planner.base.problems import NAMESPACE
from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError
from bezel_base.text.shell import shell_word

_SECTION = "scaling"
_OWN = ("scaling", "template.scaling")


class NothingAskedError(WrongValueError):
    """Neither a minimum nor a maximum is given."""


class ScaleArguments(Arguments):
    """Which stack, and how many instances."""

    stack: Stack
    min: Annotated[int | None, Reach.INSIDE, Option("N")] = Field(
        None, ge=0, le=1000, description="instances kept running without traffic; they cost money"
    )
    max: Annotated[int | None, Reach.INSIDE, Option("N")] = Field(
        None, ge=1, le=1000, description="maximum of instances; each needs GPU quota"
    )
    wait: Wait = "15m"


def plan_scale(context: Context, arguments: ScaleArguments) -> Plan:
    """Plan another minimum or maximum of a deployed service.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: Nothing is asked for, the stack leases machines, its file cannot be changed, or the preview failed.
    """
    wait_of(arguments.wait)
    if arguments.min is None and arguments.max is None:
        repair = "add --min N, --max N or both."
        raise NothingAskedError(Problem("--min, --max", NOT_SET, "there is nothing to change.", repair))
    stack = arguments.stack
    context.project.stack_file(stack)
    deployment = context.deployment(stack)
    check_settings(context.project, stack)
    if deployment.leases:
        consequence = "it leases machines, and a lease has no minimum and no maximum of instances."
        repair = f"set `bezel:lease.count` in Pulumi.{stack}.yaml, then `bezel deploy {shell_word(stack)}`."
        raise UserError(Problem("STACK", stack, consequence, repair))
    plan = plan_stack(context, "scale", stack, arguments, lambda text: _text(arguments, text))
    return plan.model_copy(update={"warnings": (*other_changes(plan.changes, *_OWN), *plan.warnings)})


def apply_scale(context: Context, plan: Plan) -> Outcome:
    """Write the stack's file, and deploy what was planned.

    Raises:
        ChangedError: Something has changed since; nothing was done.
        LockedError: Another run works on the stack.
        UserError: The backend cannot be used.
    """
    arguments = ScaleArguments.model_validate(plan.arguments)
    return apply_stack(context, plan, arguments.stack, arguments.wait, lambda text: _text(arguments, text))


def _text(arguments: ScaleArguments, text: str) -> str:
    for name, value in (("min_instances", arguments.min), ("max_instances", arguments.max)):
        if value is not None:
            file = f"Pulumi.{arguments.stack}.yaml"
            text = with_setting(text, file, NAMESPACE, (_SECTION, name), value)
    return text
