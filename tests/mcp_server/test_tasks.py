"""Tasks in users' words lead to the tool that they need, by what the list says of it, without a model."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bezel.mcp_server.scope import Scope
from bezel.mcp_server.tools import tool_of
from bezel.operations.registry import OPERATIONS
from tests.support.mcp_server.retrieval import Index, text_of

TASKS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))["task"]
HELD_BACK = [task for task in TASKS if task.get("held_back")]
TOOLS = {each.name: tool_of(each, Scope()) for each in OPERATIONS}
TEXTS = {name: text_of(tool) for name, tool in TOOLS.items()}
INDEX = Index(TEXTS)


@pytest.mark.parametrize("task", [task for task in TASKS if task not in HELD_BACK], ids=lambda task: task["words"])
def test_words_of_a_task_lead_to_its_tool_first(task: dict[str, Any]) -> None:
    assert INDEX.ranking(task["words"])[0] == task["tool"]


def test_tasks_that_no_description_was_written_for_lead_there_too() -> None:
    """Six of seven did when they were tried, once; the seventh is left as it was."""
    assert len(HELD_BACK) == 7
    assert sum(INDEX.ranking(task["words"])[0] == task["tool"] for task in HELD_BACK) >= 6


def test_words_do_not_lead_there_where_descriptions_are_exchanged() -> None:
    names = [*TEXTS]
    exchanged = Index(dict(zip(names, [TEXTS[name] for name in (*names[1:], names[0])], strict=True)))
    assert sum(exchanged.ranking(task["words"])[0] == task["tool"] for task in TASKS) <= 1


@pytest.mark.parametrize("task", [task for task in TASKS if "arguments" in task], ids=lambda task: task["words"])
def test_arguments_of_a_task_are_offered_by_its_tool(task: dict[str, Any]) -> None:
    offered = TOOLS[task["tool"]].input_schema["properties"]
    for name, value in task["arguments"].items():
        Draft202012Validator(offered[name]).validate(value)
