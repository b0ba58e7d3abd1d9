"""Checks of deployed stacks: who has access, and what else was changed outside of the program. Reads only."""

from collections.abc import Iterable, Sequence
from functools import partial

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.doctor.check import Check, Job, check
from bezel.operations.outside import declared_by, outside_of
from bezel.operations.status.door import door_status
from bezel_base.errors import UserError
from bezel_base.text.shell import shell_word

_SHARE = 0.8  # of the whole deadline, so that what was answered by then is shown


def access_jobs(context: Context, stacks: Sequence[str], seconds: float) -> list[Job]:
    """A check for each of the stacks that is deployed; none where the backend cannot be read, which is reported."""
    try:
        deployed = context.stacks()
    except UserError:
        return []
    return [Job("access", stack, partial(_access, context, stack, seconds)) for stack in stacks if stack in deployed]


def _access(context: Context, stack: str, seconds: float) -> Iterable[Check]:
    deployment = context.deployment(stack)
    declared = declared_by(deployment.resources)
    yield from _door(context, deployment)
    outside = outside_of(context, stack, declared, seconds=seconds * _SHARE)
    for change in outside.changes:
        yield check("access", stack, "problem" if change.kind == "access" else "warning", change.line(), change.repair)
    for item in outside.not_judged:
        repair = f"let the project's owner grant this identity {item.permission}, e.g. by roles/iam.securityReviewer."
        yield check("access", stack, "unknown", item.line(), repair if item.denied else "repeat it.")
    if not outside.changes and not outside.not_judged and (declared.services or declared.machines):
        yield check("access", stack, "ok", "what costs money or opens access is as its program declares it")


def _door(context: Context, deployment: Deployment) -> Iterable[Check]:
    """The door for callers by key, as Cloud Run has it."""
    door = door_status(context, deployment)
    if door is None:
        return
    subject = f"door of {deployment.stack}"
    if door.verdict == "ready" and door.reasons:
        repair = "let the project's owner grant this identity roles/logging.viewer, and repeat it."
        yield check("access", subject, "unknown", f"{door.url} is ready; {'; '.join(door.reasons)}", repair)
    elif door.verdict == "ready":
        yield check("access", subject, "ok", f"{door.url} is ready for callers by key")
    elif door.verdict in {"failing", "degraded"}:
        repair = (
            f"`pulumi up --refresh --stack {shell_word(deployment.stack)}` makes grants again that are missing; "
            f"`bezel endpoint {shell_word(deployment.stack)}` shows whether an address answers."
        )
        text = f"it runs, but {'; '.join(door.reasons)}"
        yield check("access", subject, "problem", text, repair)
    else:
        repair = f"`bezel deploy {shell_word(deployment.stack)}` makes it anew, and says why it does not start."
        text = f"callers by key get no answer: the door is {door.verdict}: {'; '.join(door.reasons)}"
        yield check("access", subject, "problem", text, repair)
