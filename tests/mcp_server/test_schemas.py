"""Schemas and commands of operations: the files are those of the models, so both faces show what is taken and given."""

import pytest

from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS
from tools.docs.operation_commands import commands
from tools.docs.operations import COMMANDS, SCHEMAS, schemas


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_the_file_is_that_of_the_models(each: Operation) -> None:
    text = (SCHEMAS / f"{each.name}.json").read_text(encoding="utf-8")
    assert text == schemas(each), "python -m tools.docs.operations --write"


def test_there_is_no_file_of_an_operation_that_is_gone() -> None:
    assert {file.stem for file in SCHEMAS.glob("*.json")} == {each.name for each in OPERATIONS}


def test_commands_file_is_that_of_the_models() -> None:
    assert COMMANDS.read_text(encoding="utf-8") == commands(), "python -m tools.docs.operations --write"
