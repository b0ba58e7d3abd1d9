"""Registry of operations: the command line and the models of arguments agree, and every field is described."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

from bezel.cli.command_table import command_table, root_parser
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.registry import OPERATIONS, Operation

SPEC = command_table().spec
# What every command has beside the arguments of its operation.
COMMON = {
    "json",
    "errors",
    "operation",
    "run",
    "call",
    "needs_project",
    "command",
    "action",
    "help",
    "parser",
    "pulumi",
}
RUNNER = "bezel.cli.operation:run"
# What only an agent is asked: a person who names a stack on the command line starts it.
FACE = {"bench_run": {"wake"}, "bench_sweep": {"wake"}}
CHANGE = {"yes", "confirm_name"}  # of a changing one: how it is confirmed


def commands(spec: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, command in spec.get("commands", {}).items():
        yield " ".join((*above, name)), command
        yield from commands(command, (*above, name))


BY_COMMAND = {words: command for words, command in commands(SPEC) if "operation" in command}


def test_every_operation_is_a_command_and_every_such_command_an_operation() -> None:
    assert {each.command: each.name for each in OPERATIONS} == {
        words: command["operation"] for words, command in BY_COMMAND.items()
    }
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_the_command_has_the_arguments_of_the_operation(each: Operation) -> None:
    command = BY_COMMAND[each.command]
    positional = [name for name in command.get("arguments", {}) if not name.startswith("-")]
    required = [name for name in positional if command["arguments"][name].get("nargs") not in ("?", "*")]
    named = [name for name, option in command.get("arguments", {}).items() if option.get("required")]
    named += [next(iter(SPEC["tables"][name]["arguments"])) for name in command.get("require", ())]
    words = [command["arguments"][name].get("choices", ["x"])[0] for name in required]
    given = [*words, *(word for name in named for word in (name, "x"))]
    options = vars(root_parser().read([*each.command.split(), *given]))
    extra = CHANGE if each.kind == "changing" else set()
    own = set(options) - (COMMON - set(each.arguments().model_fields)) - extra
    # A command with a runner of its own may offer more than an agent needs, e.g. all patterns of a load.
    left_out = own - set(each.arguments().model_fields) if command.get("run") != RUNNER else set()
    assert own - left_out == set(each.arguments().model_fields) - FACE.get(each.name, set())


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_the_help_of_the_command_is_that_of_the_operation(each: Operation) -> None:
    assert BY_COMMAND[each.command]["help"] == each.help


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_every_result_and_argument_is_described(each: Operation) -> None:
    for model in (each.arguments(), each.result()):
        assert issubclass(model, BaseModel)
        assert model.__doc__
        assert model.model_json_schema(mode="serialization")


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_a_changing_operation_plans_first_and_no_other_does(each: Operation) -> None:
    assert (each.kind == "changing") == (each.result() is Plan) == bool(each.apply)
    if each.apply:
        hints = get_type_hints(each.load_apply())
        assert hints["plan"] is Plan
        assert issubclass(hints["return"], Outcome)
