"""docs/operations.md: its tables are those of the registry, and every test that it names exists."""

import re

from tools.docs.generated_sections import END, ROOT
from tools.docs.operations import ARGUMENTS, DOCUMENT, SEED_TOOLS, arguments, tables


def test_the_tables_are_those_of_the_registry() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, content in tables().items():
        command = f".venv/bin/python -m tools.docs.operations {name}"
        assert f"<!-- made by: {command} -->\n{content}{END}" in text, f"{command.rpartition(' ')[0]} --write"


def test_page_of_arguments_is_that_of_the_models() -> None:
    command = ".venv/bin/python -m tools.docs.operations"
    text = ARGUMENTS.read_text(encoding="utf-8")
    assert f"<!-- made by: {command} arguments -->\n{arguments()}{END}" in text, f"{command} --write"


def test_every_test_that_the_table_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", tables()["counterparts"])
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_every_tool_of_the_seed_systems_has_a_row() -> None:
    assert tables()["counterparts"].count("\n") == len(SEED_TOOLS) + 2
