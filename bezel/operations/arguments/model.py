"""Base of argument models, and what an argument says of itself beside its type, default and description. Pure.

An argument is described once, in its operation's model: `Annotated[TYPE, Reach..., Option(...)] = Field(DEFAULT,
description=...)`. `python -m tools.docs.operations --write` makes the command's arguments, the schema of the MCP tool
and the documents from it. Leaves out what several operations share (`shared`).
"""

from dataclasses import dataclass
from enum import Enum

from pydantic import BaseModel, ConfigDict


class Arguments(BaseModel):
    """Arguments of an operation. An unknown name is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Reach(Enum):
    """What an argument may name, by which a server of some stacks takes it or refuses it; without one it is refused."""

    INSIDE = "inside"
    """Nothing beyond the stack, the records or the results that its operation touches, or what the check refuses."""
    BEYOND = "beyond"
    """Something that belongs to no stack, or to any."""


@dataclass(frozen=True)
class Word:
    """An argument given by its place on the command line; one without a default is a Word unless it is an Option.

    Attributes:
        metavar: What the usage line calls it; by default its name in capitals.
        dashed: Whether it may begin with dashes.
    """

    metavar: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Option:
    """An argument given by an option; one with a default is an Option unless it is a Word.

    Attributes:
        metavar: What the help calls its value; by default the option's name in capitals.
        flag: The option, where it is not the argument's name, e.g. `--from`.
    """

    metavar: str = ""
    flag: str = ""
