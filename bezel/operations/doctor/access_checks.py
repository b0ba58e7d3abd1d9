"""Checks of deployed stacks: who has access, and what else was changed outside of the program. Reads only."""

from collections.abc import Iterable, Sequence
from functools import partial

from bezel.operations.context import Context
from bezel.operations.doctor.check import Check, Job, check
from bezel.operations.outside import declared_by, outside_of
from bezel_base.errors import UserError

_SHARE = 0.8  # of the whole deadline, so that what was answered by then is shown


def access_jobs(context: Context, stacks: Sequence[str], seconds: float) -> list[Job]:
    """A check for each of the stacks that is deployed; none where the backend cannot be read, which is reported."""
    try:
        deployed = context.stacks()
    except UserError:
        return []
    return [Job("access", stack, partial(_access, context, stack, seconds)) for stack in stacks if stack in deployed]


def _access(context: Context, stack: str, seconds: float) -> Iterable[Check]:
    declared = declared_by(context.deployment(stack).resources)
    outside = outside_of(context, stack, declared, seconds=seconds * _SHARE)
    for change in outside.changes:
        yield check("access", stack, "problem" if change.kind == "access" else "warning", change.line(), change.repair)
    for item in outside.not_judged:
        repair = f"let the project's owner grant this identity {item.permission}, e.g. by roles/iam.securityReviewer."
        yield check("access", stack, "unknown", item.line(), repair if item.denied else "repeat it.")
    if not outside.changes and not outside.not_judged and (declared.services or declared.machines):
        yield check("access", stack, "ok", "what costs money or opens access is as its program declares it")
