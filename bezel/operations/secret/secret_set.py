"""Value of a secret in two steps: what is created, then the value as a new version. The value is no argument.

It is passed from memory to Secret Manager: no model, plan, outcome, log or file holds it. Earlier versions stay, so
that a mistake can be undone. Leaves reading the value from a terminal or a pipe to the command, and has no counterpart
for agents, which get `secret_show`.
"""

from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange
from bezel.operations.context import Context
from bezel.operations.secret.secret_show import ENABLED, MANAGED_BY, SecretArguments, is_bezels
from bezel.operations.secret.users import users_of
from bezel.planner.base.names import PREFIX
from bezel.planner.base.problems import setting
from bezel.rest.secret_manager import MAX_BYTES, SecretState, add_version, create_secret, secret_of
from bezel_base.errors import Problem, UserError

NAME = "secret_set"
_SECRET, _VERSION = "secretmanager.googleapis.com/Secret", "secretmanager.googleapis.com/SecretVersion"


def plan_set(context: Context, arguments: SecretArguments) -> Plan:
    """Plan a new value.

    Raises:
        UserError: No project is named, or there is no such stack.
        RestError: Secret Manager refused.
    """
    project = context.cloud_project(arguments.stack)
    secret = secret_of(context.google, project, arguments.name)
    newest = secret.newest if secret else None
    changes = [] if secret else [PlannedChange(op="create", name=arguments.name, type=_SECRET)]
    number = newest.number + 1 if newest else 1
    changes.append(PlannedChange(op="create", name=f"{arguments.name}, version {number}", type=_VERSION))
    warnings = (
        [] if secret is None or is_bezels(secret) else ["it was not created by bezel: its labels stay as they are"]
    )
    if newest is not None and newest.state == ENABLED:
        warnings.append(f"version {newest.number} stays, and is no longer the latest")
    return Plan(
        operation=NAME,
        target=arguments.name,
        summary=f"create it in {project}, with a value" if secret is None else f"add version {number}, in {project}",
        arguments=arguments.model_dump(mode="json"),
        changes=tuple(changes),
        warnings=tuple(warnings),
        basis=_basis(context, project, secret),
    )


def apply_set(context: Context, plan: Plan, value: bytes) -> Outcome:
    """Create the secret if it is missing, and add the value as its latest version.

    Args:
        context: The context.
        plan: What was planned.
        value: The value, as `stored_value` returns it.

    Raises:
        ChangedError: The secret has changed since; nothing was done.
        RestError: Secret Manager refused; no text holds the value.
    """
    arguments = SecretArguments.model_validate(plan.arguments)
    check_place(context, plan)
    project = context.cloud_project(arguments.stack)
    secret = secret_of(context.google, project, arguments.name)
    check(plan, _basis(context, project, secret))
    if secret is None:
        create_secret(context.google, project, arguments.name, labels_of(context, arguments.stack))
    made = add_version(context.google, project, arguments.name, value)
    users = users_of(context, arguments.name)
    return Outcome(
        operation=NAME,
        target=arguments.name,
        verdict="done",
        changes=plan.changes,
        details=(f"version {made.number} of {arguments.name} is the latest", *_next(arguments.name, users)),
    )


def stored_value(value: bytes) -> bytes:
    """A value as it is stored: without the one line end that `echo` and editors add.

    Raises:
        UserError: It is empty, or larger than Secret Manager allows; the text does not hold it.
    """
    stored = value.removesuffix(b"\n").removesuffix(b"\r") if value.endswith(b"\n") else value
    if not stored:
        text, repair = "the value is empty, so nothing was changed.", "type it, or pipe it into the command."
        raise UserError(Problem("value", None, text, repair))
    if len(stored) > MAX_BYTES:
        text = f"the value has {len(stored)} bytes; Secret Manager takes {MAX_BYTES} at most. Nothing was changed."
        raise UserError(Problem("value", None, text, "check what was piped into the command."))
    return stored


def labels_of(context: Context, stack: str | None) -> dict[str, str]:
    """Labels of a new secret: Bezel's own, and with a stack its own labels and its environment.

    It has no stack's label: several stacks may read it, and destroying one of them must leave it.
    """
    configuration = {} if stack is None else context.project.configuration(stack)
    own_labels, environment = configuration.get("labels"), configuration.get("environment")
    labels = {str(key): str(value) for key, value in own_labels.items()} if isinstance(own_labels, dict) else {}
    return {**labels, MANAGED_BY: PREFIX, **({"environment": str(environment)} if environment else {})}


def _next(name: str, users: tuple[str, ...]) -> tuple[str, ...]:
    if not users:
        return (
            f"no stack of this folder names it yet: `{setting('secrets')}: {{VARIABLE: {name}}}` in a stack file does",
        )
    return (f"read by {', '.join(users)}: instances and machines that start from now on get it, running ones do not",)


def _basis(context: Context, project: str, secret: SecretState | None) -> dict[str, str]:
    newest = secret.newest if secret else None
    state = f"{newest.number} {newest.state}" if newest else "no version" if secret else "none"
    return {**place_of(context), "secret_project": project, "secret": state}
