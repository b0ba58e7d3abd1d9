"""Token of the hub for a stack that may have no plan yet: by its settings alone."""

from collections.abc import Mapping

from bezel.operations.context import Context
from bezel.operations.weights.hub_token import TOKEN, hub_token


def stack_token(context: Context, stack: str | None) -> str:
    """Return the token of the environment, else of the secret that a stack names; "" for none.

    Raises:
        UserError: There is no such stack, or its secret has no value.
        RestError: Secret Manager refuses.
    """
    if stack is None or context.environ.get(TOKEN, "").strip():
        return hub_token(context, {}, "")
    secrets = context.project.configuration(stack).get("secrets")
    named = {str(name): str(secret) for name, secret in secrets.items()} if isinstance(secrets, Mapping) else {}
    return hub_token(context, named, context.cloud_project(stack)) if TOKEN in named else ""
