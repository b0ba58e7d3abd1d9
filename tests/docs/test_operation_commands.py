"""Commands that are made of models of arguments: each type, place, default and repetition, as argparse is to get it."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach, Word
from bezel.operations.arguments.shared import Zone
from bezel.operations.operation import Operation
from bezel.operations.registry import operation
from tools.docs.operation_commands import argument, arguments_inside, command


class Given(Arguments):
    stack: Annotated[str, Reach.INSIDE] = Field(description="name of the stack")
    action: Annotated[Literal["start", "stop"], Reach.INSIDE] = Field(description="what to do")
    bucket: Annotated[str | None, Reach.BEYOND, Word("gs://BUCKET")] = Field(None, description="a bucket")
    project: Annotated[str, Reach.BEYOND, Option("ID")] = Field(description="Google Cloud project")
    max_tokens: Annotated[int, Reach.INSIDE, Option("N")] = Field(512, description="longest answer")
    seconds: Annotated[float | None, Reach.INSIDE] = Field(None, description="time (default: since the start)")
    deadline: Annotated[float, Reach.INSIDE] = Field(45.0, description="time limit")
    hours: Annotated[float, Reach.INSIDE] = Field(6.0, description="time limit (default: 6 hours)")
    origin: Annotated[str | None, Reach.INSIDE, Option(flag="--from")] = Field(None, description="source")
    zone: Annotated[tuple[Zone, ...], Reach.INSIDE] = Field((), description="only these zones (default: every zone)")
    wake: bool = Field(False, description="start an instance")


@pytest.mark.parametrize(
    ("name", "shown", "keys"),
    [
        ("stack", "stack", {"help": "name of the stack"}),
        ("action", "action", {"choices": ["start", "stop"], "help": "what to do"}),
        ("bucket", "bucket", {"nargs": "?", "metavar": "gs://BUCKET", "help": "a bucket"}),
        ("project", "--project", {"required": True, "metavar": "ID", "help": "Google Cloud project"}),
        ("max_tokens", "--max-tokens", {"type": "int", "metavar": "N", "help": "longest answer (default: 512)"}),
        ("seconds", "--seconds", {"type": "positive", "help": "time (default: since the start)"}),
        ("deadline", "--deadline", {"type": "positive", "help": "time limit (default: 45)"}),
        ("hours", "--hours", {"type": "positive", "help": "time limit (default: 6 hours)"}),
        ("origin", "--from", {"dest": "origin", "help": "source"}),
        ("zone", "--zone", {"action": "append", "help": "only these zones; repeatable (default: every zone)"}),
        ("wake", "--wake", {"action": "store_true", "help": "start an instance"}),
    ],
)
def test_argument_has_its_place_and_keys(name: str, shown: str, keys: dict[str, Any]) -> None:
    assert argument(name, Given.model_fields[name]) == (shown, keys)


def test_argument_without_a_reach_is_kept_from_limited_servers() -> None:
    assert {*Given.model_fields} - {*arguments_inside(Given)} == {"bucket", "project", "wake"}


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("quota", "alone", True),
        ("plan", "alone", None),
        ("explain", "dashed_values", True),
        ("query", "dashed_values", None),
        ("compare", "needs_project", "optional"),
        ("cost", "needs_project", None),
        ("scale", "options", ["json", "change"]),
        ("logs", "options", ["json"]),
        ("logs", "group", "operate"),
        ("tpu_list", "group", None),
    ],
)
def test_command_has_the_keys_of_its_operation(name: str, key: str, value: object) -> None:
    assert command(operation(name)).get(key) == value


def test_command_of_a_new_operation_needs_no_text_elsewhere() -> None:
    new = Operation("ask", "plan.plan:plan", "reading", "ask", "ask", group="operate")
    assert command(new)["arguments"] == command(operation("plan"))["arguments"]
