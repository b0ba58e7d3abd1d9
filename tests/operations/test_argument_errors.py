"""Errors of an operation's arguments: each has its value, what is wrong and a repair in the field's words."""

from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError

from bezel.operations.arguments.errors import argument_problems
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Region, Zone
from bezel.operations.registry import OPERATIONS


class Given(Arguments):
    stack: str = Field(min_length=1, max_length=5, description="name of the stack")
    users: int = Field(1, ge=1, le=9, description="number of users")
    region: Region | None = None
    zones: tuple[Zone, ...] = Field(("us-east5-a",), min_length=1, max_length=2)
    action: Literal["start", "stop"] = "start"
    wake: bool = False


def problems(**arguments: Any) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        Given.model_validate(arguments)
    return [str(problem) for problem in argument_problems(refused.value, Given, {"stack": "STACK"})]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "STACK = (not set)\n   it is required.\n   Repair: add it (name of the stack)."),
        (
            {"stack": ""},
            'STACK = ""\n   it is empty.\n   Repair: write at least 1 character (name of the stack).',
        ),
        (
            {"stack": "abcdef"},
            "STACK = abcdef\n   it is too long.\n   Repair: write at most 5 characters (name of the stack).",
        ),
        ({"stack": 5}, "STACK = 5\n   expected text.\n   Repair: write text (name of the stack)."),
        (
            {"stack": "a", "users": 0},
            "users = 0\n   it is out of range.\n   Repair: set it to at least 1 (number of users).",
        ),
        (
            {"stack": "a", "users": "many"},
            "users = many\n   expected a whole number.\n   Repair: write a whole number (number of users).",
        ),
        ({"stack": "a", "region": "mars"}, "region = mars\n   its form is wrong.\n   Repair: write it e.g. us-east4."),
        (
            {"stack": "a", "zones": ["mars"]},
            "zones = mars\n   its form is wrong.\n   Repair: write it e.g. us-east5-a.",
        ),
        ({"stack": "a", "zones": []}, "zones = []\n   it is empty.\n   Repair: write at least 1 item."),
        (
            {"stack": "a", "action": "halt"},
            "action = halt\n   it is not one of the known values.\n   Repair: choose start or stop.",
        ),
        ({"stack": "a", "wake": "soon"}, "wake = soon\n   expected true or false.\n   Repair: write true or false."),
        ({"stack": "a", "user": 3}, "user = 3\n   there is no such argument.\n   Repair: did you mean users?"),
        (
            {"stack": "a", "yes": True},
            (
                "yes = true\n   there is no such argument.\n"
                "   Repair: choose of STACK, users, region, zones, action, wake."
            ),
        ),
    ],
)
def test_a_wrong_argument_is_named_with_what_to_write_instead(arguments: dict[str, Any], text: str) -> None:
    assert problems(**arguments) == [text]


def test_every_wrong_argument_is_reported_at_once_and_a_right_one_is_not() -> None:
    assert [text.partition(" ")[0] for text in problems(stack="", users=0, zones=["us-east5-a"])] == ["STACK", "users"]


def test_no_value_that_looks_like_a_credential_is_shown() -> None:
    assert "hf_" not in "".join(problems(stack="hf_" + "a" * 30))


def patterns(schema: object, examples: bool = False) -> list[str]:
    """Patterns of a schema that have no example beside them."""
    if isinstance(schema, dict):
        has = examples or "examples" in schema
        own_patterns = [schema["pattern"]] if "pattern" in schema and not has else []
        return own_patterns + [pattern for part in schema.values() for pattern in patterns(part, has)]
    return [pattern for part in schema for pattern in patterns(part, examples)] if isinstance(schema, list) else []


def test_whatever_has_a_form_has_an_example_of_it() -> None:
    missing = {each.name: patterns(each.arguments().model_json_schema()) for each in OPERATIONS}
    assert {name: lacking for name, lacking in missing.items() if lacking} == {}
    assert patterns({"properties": {"a": {"pattern": "x"}}}) == ["x"]
