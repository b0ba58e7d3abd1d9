"""Restart of a service in two steps: a new revision that is as the last one, by the stack's file and a deploy.

The time of the restart is a setting of the stack, which becomes an annotation of the revision: so the program, drift
and the next deploy know about it. The old revision serves until the new one is ready. Leaves out containers of leased
machines.
"""

from datetime import UTC, datetime

from bezel.engine.project.own_program import check_settings
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack, Wait
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.changes.stack_lock import wait_of
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import Edit, apply_stack, plan_stack
from bezel.operations.stack_edits.file_text import with_setting
from bezel.operations.stack_edits.other_changes import other_changes
from bezel.planner.base.problems import NAMESPACE
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_SETTING = "restarted_at"


class RestartArguments(Arguments):
    """Which stack, and how long to wait."""

    stack: Stack
    wait: Wait = "15m"


def plan_restart(context: Context, arguments: RestartArguments) -> Plan:
    """Plan a new revision of a deployed service.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: The stack leases machines, its file cannot be changed, or the preview failed.
    """
    wait_of(arguments.wait)
    stack = arguments.stack
    context.project.stack_file(stack)
    deployment = context.deployment(stack)
    check_settings(context.project, stack)
    if deployment.leases:
        consequence = "it leases machines, which have no revisions: a new lease is a new machine."
        repair = f"`bezel status {shell_word(stack)}` shows them; their server starts again whenever it ends."
        raise UserError(Problem("STACK", stack, consequence, repair))
    now = datetime.fromtimestamp(context.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    plan = plan_stack(context, "restart", stack, arguments, _edit(stack, now))
    warnings = (*other_changes(plan.changes), *plan.warnings)
    return plan.model_copy(update={"warnings": warnings, "basis": {**plan.basis, _SETTING: now}})


def apply_restart(context: Context, plan: Plan) -> Outcome:
    """Write the stack's file, and deploy what was planned.

    Raises:
        ChangedError: Something has changed since; nothing was done.
        LockedError: Another run works on the stack.
        UserError: The backend cannot be used.
    """
    arguments = RestartArguments.model_validate(plan.arguments)
    edit = _edit(arguments.stack, plan.basis[_SETTING])
    return apply_stack(context, plan, arguments.stack, arguments.wait, edit)


def _edit(stack: str, time: str) -> Edit:
    return lambda text: with_setting(text, f"Pulumi.{stack}.yaml", NAMESPACE, (_SETTING,), time)
