"""Token of the Hugging Face hub: of the environment, else of the secret that a stack names."""

import base64
from collections.abc import Mapping

from bezel.operations.context import Context
from bezel.rest import ApiError
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

TOKEN = "HF_TOKEN"  # noqa: S105 - a variable's name


def hub_token(context: Context, secrets: Mapping[str, str], project: str) -> str:
    """Return the token; "" for none.

    Args:
        context: The context.
        secrets: A stack's secrets, by the variable that has their value.
        project: Google Cloud project of the secrets.

    Raises:
        UserError: The stack names a secret that has no value.
        RestError: Secret Manager refuses.
    """
    if token := context.environ.get(TOKEN, "").strip():
        return token
    secret = secrets.get(TOKEN)
    if secret is None:
        return ""
    url = f"{context.address('SECRET_MANAGER')}projects/{project}/secrets/{secret}/versions/latest:access"
    try:
        return base64.b64decode(context.google.get(url)["payload"]["data"]).decode().strip()
    except ApiError as error:
        if error.status != 404:
            raise
        consequence = "the stack names this secret for the hub's token, and it has no value."
        repair = f"set it: `bezel secret set {shell_word(secret)}`."
        raise UserError(Problem(f"bezel:secrets.{TOKEN}", secret, consequence, repair)) from None
