"""Registry of operations: each is a command with the arguments of its model, and every field is described."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

from bezel.cli.command_table import command_table
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS, operation
from bezel_base.command_line.table import value_name

SPEC = command_table().spec
# What commands have beside the arguments of their operations: the form of the output, the answer to the question.
COMMON = {"json", "yes", "confirm_name"}
# What a command has for people only.
ADDED = {"watch": {"once"}}
# What only an agent is asked: a person names a stack on the command line to start it, and each option by its name.
NOT_OPTIONS = {"bench_run": {"options", "wake"}, "bench_sweep": {"wake"}}


def commands(spec: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, command in spec.get("commands", {}).items():
        yield " ".join((*above, name)), command
        yield from commands(command, (*above, name))


BY_COMMAND = {command_words: command for command_words, command in commands(SPEC) if "operation" in command}


def test_every_operation_is_a_command_and_every_such_command_an_operation() -> None:
    assert {each.command: each.name for each in OPERATIONS} == {
        command_words: command["operation"] for command_words, command in BY_COMMAND.items()
    }
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_command_has_the_arguments_of_its_operation(each: Operation) -> None:
    command, fields = BY_COMMAND[each.command], set(each.arguments().model_fields)
    arguments = command_table().arguments(command)
    values = {value_name(name, keys) for name, keys in arguments.items()} - COMMON
    # A command of the benchmark's package offers more than an agent needs, e.g. all patterns of a load.
    more = set() if each.command.startswith("bench ") else values - fields - ADDED.get(each.name, set())
    assert more == set()
    assert fields - values == NOT_OPTIONS.get(each.name, set())


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_command_is_listed_in_the_help_by_a_known_group(each: Operation) -> None:
    top = each.command.partition(" ")[0]
    assert SPEC["commands"][top]["group"] in SPEC["groups"]
    assert bool(each.group) == (top == each.command)


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_folder_of_an_operation_is_the_word_of_its_command(each: Operation) -> None:
    word = each.command.split()[0].replace("-", "_")
    assert {place.partition(".")[0] for place in (each.function, each.apply) if place} == {word}


@pytest.mark.parametrize("name", ["bench_run", "bench_sweep", "bench_report", "bench_audit"])
def test_benchmark_arguments_have_text_and_default_of_the_option(name: str) -> None:
    options = command_table().arguments(BY_COMMAND[operation(name).command])
    by_value = {value_name(option, keys): keys for option, keys in options.items()}
    for argument, field in operation(name).arguments().model_fields.items():
        if (keys := by_value.get(argument)) is not None:
            text = str(keys["help"]).partition(" (default: ")[0].removesuffix("; repeatable")
            # What is written is called by one name, and by each command with its own words.
            assert str(field.description).startswith(text) or argument == "out"
            assert keys.get("default") in (None, [], "") or field.default == keys["default"]


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
