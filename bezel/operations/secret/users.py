"""Stacks that give their servers a secret: by `secrets` of each stack's file."""

from bezel.operations.context import Context
from bezel_base.errors import UserError

SETTING = "secrets"


def users_of(context: Context, name: str) -> tuple[str, ...]:
    """`STACK (VARIABLE)` of each stack file that names a secret."""
    return tuple(f"{stack} ({variable})" for stack, variable in named_by(context, name))


def named_by(context: Context, name: str) -> tuple[tuple[str, str], ...]:
    """(stack, variable) of each stack file that names a secret; a file that cannot be read names none."""
    users: list[tuple[str, str]] = []
    for stack in context.project.stacks():
        try:
            variables = context.project.configuration(stack).get(SETTING)
        except UserError:
            continue
        if isinstance(variables, dict):
            users += [(stack, str(variable)) for variable, secret in variables.items() if secret == name]
    return tuple(users)
