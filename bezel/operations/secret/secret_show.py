"""State of a secret: its newest version, the stacks that read it, and the command by which a person sets it.

Never reads a value. An agent gets this instead of an operation that sets one: a value has no place in a conversation.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.arguments.shared import ProjectStack
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel.operations.secret.users import SETTING, named_by, users_of
from bezel.operations.touches import BeyondStackError
from bezel.planner.base.names import PREFIX
from bezel.planner.base.problems import setting
from bezel.rest.secret_manager import SecretState, secret_of
from bezel_base.errors import NOT_SHOWN, format_value
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role
from bezel_base.text.shell import shell_word


def _no_value(name: str) -> str:
    """Refuse a value in place of a name: it would be shown and sent as one."""
    if format_value(name) == NOT_SHOWN:
        raise PydanticCustomError("value", "it looks like a value: give the secret's id, and the value when it is read")
    return name


SecretName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_-]{1,255}$", max_length=255, examples=["hf-token"]), AfterValidator(_no_value)
]
MANAGED_BY = "managed-by"
ENABLED = "ENABLED"


class SecretArguments(Arguments):
    """Which secret."""

    name: Annotated[SecretName, Reach.INSIDE] = Field(description="id of the secret, e.g. hf-token")
    stack: ProjectStack = None


class Secret(Result):
    """A secret without its value."""

    name: str
    project: str
    exists: bool
    has_value: bool = Field(description="whether its newest version can be read")
    version: int | None = Field(description="number of its newest version; null without one")
    version_state: str | None = Field(description="ENABLED, DISABLED or DESTROYED")
    set_at: str | None = Field(description="creation of that version, RFC 3339")
    is_bezels: bool = Field(description="whether its labels say that bezel created it")
    used_by: tuple[str, ...] = Field(description="stacks of this project folder that name it, with the variable")
    command: str = Field(description="what a person runs to set it; the value is typed there, or read from a pipe")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where it has no value."""
        return 0 if self.has_value else 1

    def page(self) -> tuple[Block, ...]:
        """The secret's state."""
        state = f"version {self.version}, {self.version_state}, set {self.set_at}" if self.version else "no version"
        rows = [
            ("project", self.project),
            ("state", state if self.exists else "does not exist"),
            ("created by bezel", ("yes" if self.is_bezels else "no") if self.exists else None),
            ("used by", ", ".join(self.used_by) or "no stack of this folder"),
        ]
        verb = "replace its value" if self.has_value else "set its value"
        command = Line(f"{verb} (a person, at a terminal): {self.command}", is_verbatim=True)
        return (Line(self.name, Role.HEADING), NamedValues(rows), command)


def show(context: Context, arguments: SecretArguments) -> Secret:
    """The state of a secret.

    Raises:
        UserError: No project is named, or there is no such stack.
        RestError: Secret Manager refused.
    """
    project = context.cloud_project(arguments.stack)
    secret = secret_of(context.google, project, arguments.name)
    newest = secret.newest if secret else None
    option = f" --stack {shell_word(arguments.stack)}" if arguments.stack else ""
    return Secret(
        name=arguments.name,
        project=project,
        exists=secret is not None,
        has_value=newest is not None and newest.state == ENABLED,
        version=newest.number if newest else None,
        version_state=newest.state if newest else None,
        set_at=newest.created if newest else None,
        is_bezels=is_bezels(secret),
        used_by=users_of(context, arguments.name),
        command=f"bezel secret set {shell_word(arguments.name)}{option}",
    )


def check_scope(context: Context, arguments: SecretArguments) -> None:
    """Check that a secret is one of those that the stack's file names.

    Raises:
        BeyondStackError: It is not.
    """
    if arguments.stack not in {stack for stack, _ in named_by(context, arguments.name)}:
        repair = f"name a secret of `{setting(SETTING)}` in the stack's file."
        raise BeyondStackError("NAME", arguments.name, arguments.stack, repair)


def is_bezels(secret: SecretState | None) -> bool:
    """Whether a secret has Bezel's label."""
    return secret is not None and secret.labels.get(MANAGED_BY) == PREFIX
