"""Schemas of operations: the files are those of the models, so the server lists what it takes and gives."""

import pytest

from bezel.operations.registry import OPERATIONS, Operation
from tools.docs.operations import SCHEMAS, schemas


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_the_file_is_that_of_the_models(each: Operation) -> None:
    text = (SCHEMAS / f"{each.name}.json").read_text(encoding="utf-8")
    assert text == schemas(each), "python -m tools.docs.operations --write"


def test_there_is_no_file_of_an_operation_that_is_gone() -> None:
    assert {file.stem for file in SCHEMAS.glob("*.json")} == {each.name for each in OPERATIONS}
