"""MCP server, asked by the official SDK's client: what it lists, what it refuses, and what never leaves it."""

import json
import re
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from bezel.mcp_server.calls import Call, run
from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from bezel.mcp_server.tools import tool_of
from bezel.mcp_server.two_steps import confirm_tool
from bezel.operations.arguments.model import Arguments
from bezel.operations.context import Context
from bezel.operations.registry import OPERATIONS
from bezel.operations.results import Result
from bezel.operations.schemas import schemas_of
from tests.support.mcp_server.answers import call_for_json
from tests.support.operations.deployed import (
    SERVICE,
    Deployed,
    deployed_stack,
    live_service,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import ACCESS_TOKEN

ROOT = Path(__file__).parents[2]
CHARACTERS_OF_A_TOKEN = 3.5  # of JSON with English texts; four in prose
Asked = Callable[[Client], Coroutine[Any, Any, None]]


@asynccontextmanager
async def client_of(folder: Path, scope: Scope) -> AsyncIterator[Client]:
    async with Client(server_of(folder, scope)) as client:
        yield client


def ask(folder: Path, asked: Asked, scope: Scope | None = None) -> None:
    """Run a client against a server of the folder."""

    async def asking() -> None:
        with anyio.fail_after(240):
            async with client_of(folder, scope or Scope()) as client:
                await asked(client)

    anyio.run(asking)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with deployed_stack(tmp_path) as deployment:
        shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
        for name, value in deployment.context.environ.items():
            monkeypatch.setenv(name, value)
        yield deployment


@pytest.mark.slow
def test_every_operation_is_a_tool_with_schemas_and_annotations(tmp_path: Path) -> None:
    async def use_client(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {*(operation.name for operation in OPERATIONS), "confirm"}
        for operation in OPERATIONS:
            tool = tools[operation.name]
            Draft202012Validator.check_schema(tool.input_schema)
            assert tool.annotations
            assert bool(tool.annotations.read_only_hint) is (operation.kind == "reading")

    ask(tmp_path, use_client)


def test_list_of_tools_costs_a_model_below_10000_tokens() -> None:
    shown = [tool_of(each, Scope()) for each in OPERATIONS]
    texts = json.dumps([[tool.name, tool.description, tool.input_schema] for tool in [*shown, confirm_tool()]])
    assert len(texts) / CHARACTERS_OF_A_TOKEN < 10_000


def test_every_schema_of_a_result_is_one() -> None:
    for each in OPERATIONS:
        for part in {"result", "outcome"} & set(schemas_of(each.name)):
            Draft202012Validator.check_schema(schemas_of(each.name)[part])


@pytest.mark.slow
def test_a_result_is_one_text_or_json_that_fits_its_schema(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example"))
    cloud.live[SERVICE] = live_service()

    async def use_client(client: Client) -> None:
        for detail in ({}, {"detail": "short"}, {"detail": "full"}):
            shown = await client.call_tool("status", {"stack": "dev", **detail})
            assert (shown.is_error, shown.structured_content) == (False, None)
            assert "ready" in shown.content[0].text  # type: ignore[union-attr]
        result = await call_for_json(client, "status", {"stack": "dev"})
        assert result.structured_content["stacks"][0]["verdict"] == "ready"
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]

    ask(cloud.folder, use_client)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ({"stack": 5}, "invalid_arguments", "stack = 5"),
        ({"stack": "dev", "yes": True}, "invalid_arguments", "yes"),
        ({"stack": "dev", "detail": "long"}, "invalid_arguments", "choose short, full, json"),
        ({"stack": 5, "detail": None}, "invalid_arguments", "2 problems"),
        ({"stack": "x" * 200_000}, "invalid_arguments", "longer than"),
        ({"stack": "\ud800dev"}, "invalid_arguments", "surrogate"),
        ({"stack": "../../outside"}, "failed", "a stack's name has"),
        ({"stack": ".."}, "failed", "a stack's name has"),
        ({"stack": "gone"}, "failed", "no state"),
    ],
)
def test_a_failure_is_an_error_with_a_code_and_no_result(
    cloud: Deployed, arguments: dict[str, Any], code: str, text: str
) -> None:
    async def use_client(client: Client) -> None:
        result = await client.call_tool("status", arguments)
        assert result.is_error
        assert result.meta["bezel/error"]["code"] == code
        assert text in result.content[0].text  # type: ignore[union-attr]
        assert ACCESS_TOKEN not in str(result)

    ask(cloud.folder, use_client)


def test_a_fault_of_the_program_shows_no_traceback_and_no_value(cloud: Deployed) -> None:
    broken = state_of(service_resource())
    broken["checkpoint"]["latest"]["resources"] = [{"type": ACCESS_TOKEN, "urn": 1, "id": 2, "custom": True}, 7]
    cloud.keep("dev", broken)

    async def use_client(client: Client) -> None:
        result = await client.call_tool("status", {"stack": "dev"})
        assert result.is_error
        assert result.meta["bezel/error"]["code"] in {"internal", "failed"}
        assert "Traceback" not in str(result)
        assert ACCESS_TOKEN not in str(result)

    ask(cloud.folder, use_client)


def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    async def use_client(client: Client) -> None:
        with pytest.raises(MCPError, match="unknown tool 'rm'") as refused:
            await client.call_tool("rm", {})
        assert refused.value.code == -32602

    ask(tmp_path, use_client)


@pytest.mark.slow
def test_a_server_of_one_stack_answers_for_it_alone_and_by_default(cloud: Deployed) -> None:
    for stack in ("dev", "prod"):
        cloud.keep(stack, state_of(service_resource()))
    cloud.live[SERVICE] = live_service()

    async def use_client(client: Client) -> None:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "status"]
        assert tool.input_schema["properties"]["stack"]["enum"] == ["dev"]
        alone = await call_for_json(client, "status", {})
        assert [stack["stack"] for stack in alone.structured_content["stacks"]] == ["dev"]
        other = await client.call_tool("status", {"stack": "prod"})
        assert other.is_error
        assert "prod" not in other.content[0].text  # type: ignore[union-attr]

    ask(cloud.folder, use_client, Scope(stacks=("dev",)))


def test_a_server_of_one_stack_changes_nothing_that_belongs_to_no_stack(tmp_path: Path) -> None:
    async def use_client(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "destroy" in tools
        assert "explain" in tools
        changing = [each.name for each in OPERATIONS if each.kind == "changing" and each.name in tools]
        assert all("stack" in tools[name].input_schema["properties"] for name in changing)
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("tpu_delete", {"name": "bezel-one"})

    ask(tmp_path, use_client, Scope(stacks=("dev",)))


@pytest.mark.slow
def test_a_server_of_one_stack_shows_no_lease_of_another(tmp_path: Path) -> None:
    leases = {"tpu_list", "tpu_describe"}

    async def narrow(client: Client) -> None:
        assert leases.isdisjoint(tool.name for tool in (await client.list_tools()).tools)
        for name in leases:
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool(name, {"name": "bezel-other"} if name == "tpu_describe" else {})

    async def wide(client: Client) -> None:
        assert leases <= {tool.name for tool in (await client.list_tools()).tools}

    ask(tmp_path, narrow, Scope(stacks=("dev",)))
    ask(tmp_path, wide)


def test_a_server_of_two_stacks_takes_no_call_without_a_stack(cloud: Deployed) -> None:
    async def use_client(client: Client) -> None:
        assert (await client.call_tool("status", {})).is_error

    ask(cloud.folder, use_client, Scope(stacks=("dev", "prod")))


def test_a_read_only_server_has_only_tools_that_read(tmp_path: Path) -> None:
    async def use_client(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {"diagnose", "compare"}
        for name in ("deploy", "confirm"):
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool(name, {"stack": "dev"})
        with pytest.raises(MCPError, match="unknown prompt"):
            await client.get_prompt("deploy", {"stack": "dev"})

    ask(tmp_path, use_client, Scope(read_only=True))


def test_resources_are_stacks_plans_and_documents_alone(tmp_path: Path) -> None:
    """Files outside of these cannot be read."""
    for name in ("Pulumi.yaml", "Pulumi.l4-qat.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/guide.md").write_text("# Guide\n")
    (tmp_path / "secret.md").write_text(ACCESS_TOKEN)

    async def use_client(client: Client) -> None:
        uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert uris == {"bezel://stacks", "bezel://plan/l4-qat", "bezel://docs/guide"}
        texts = [(await client.read_resource(uri)).contents[0].text for uri in sorted(uris)]  # type: ignore[union-attr]
        assert texts[0] == "# Guide\n"
        assert "--served-model-name" in texts[1]
        assert texts[2] == "l4-qat\n"
        for uri in (
            "bezel://docs/../secret",
            "bezel://plan/../secret",
            "file:///etc/passwd",
            "bezel://docs/%2e%2e/secret",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    ask(tmp_path, use_client)


def test_a_prompt_is_filled_in_and_a_missing_argument_is_refused(tmp_path: Path) -> None:
    async def use_client(client: Client) -> None:
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {"deploy", "diagnose", "compare"}
        filled = await client.get_prompt("deploy", {"stack": "l4-qat"})
        assert "Deploy the stack l4-qat." in filled.messages[0].content.text  # type: ignore[union-attr]
        refused = ("", "x" * 101, "l4; rm -rf .", "{stack}", "-rf", "a\nb")
        for name, arguments in (
            ("deploy", {}),
            ("destroy", {"stack": "dev"}),
            *(("deploy", {"stack": stack}) for stack in refused),
        ):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)

    ask(tmp_path, use_client)


def test_a_prompt_names_only_tools_that_are_served(tmp_path: Path) -> None:
    async def use_client(client: Client) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        named: set[str] = set()
        for listed in (await client.list_prompts()).prompts:
            arguments = {argument.name: "dev" for argument in listed.arguments or ()}
            text = (await client.get_prompt(listed.name, arguments)).messages[0].content.text  # type: ignore[union-attr]
            named |= set(", ".join(re.findall(r"Use the tools (.+)\.$", text)).split(", ")) - {""}
        assert named == {"plan", "deploy", "confirm", "status", "metrics", "logs", "analyze_logs", "compare"}
        assert named <= tools

    ask(tmp_path, use_client)


class Long(Result):
    """A long result."""

    lines: tuple[str, ...]

    def text(self) -> str:
        return "\n".join(self.lines)


class Other(Result):
    """Another result."""


LONG, OTHER = (lambda: Long), (lambda: Other)


class Nothing(Arguments):
    """No arguments."""


def test_a_cancelled_call_learns_of_it_and_ends_in_order(tmp_path: Path) -> None:
    ended: list[bool] = []

    def wait(context: Context, _: Nothing) -> Long:
        context.show("begun")
        ended.append(context.cancelled.wait(60))
        context.show("ends its running operations")  # to a client that no longer listens
        return Long(lines=())

    async def asking() -> None:
        with anyio.fail_after(60), anyio.CancelScope() as scope:

            async def report(_number: float, _line: str) -> None:
                scope.cancel()

            await run(Call("wait", lambda: Nothing, wait, {}), tmp_path, report)

    anyio.run(asking)
    assert ended == [True]


def test_an_answer_that_is_not_the_tool_s_result_is_a_fault_of_the_program(tmp_path: Path) -> None:
    async def report(_number: float, _line: str) -> None: ...

    call = Call("wrong", lambda: Nothing, lambda _context, _arguments: Long(lines=()), {})
    right, wrong = (anyio.run(run, replace(call, result=result), tmp_path, report) for result in (LONG, OTHER))
    assert not right.is_error
    assert wrong.meta["bezel/error"]["code"] == "internal"


def test_lines_of_any_thread_are_progress_of_a_call_that_goes_on(tmp_path: Path) -> None:
    def answer(context: Context, _: Nothing) -> Long:
        thread = threading.Thread(target=context.show, args=("a line of an engine's thread",))
        thread.start()
        thread.join(60)
        return Long(lines=("x" if not context.cancelled.is_set() else "cancelled",))

    result, lines = result_and_progress(answer, tmp_path)
    assert result.content[0].text == "x"  # type: ignore[union-attr]
    assert lines == [(1, "a line of an engine's thread")]


def test_progress_of_several_threads_at_once_never_falls(tmp_path: Path) -> None:
    def answer(context: Context, _: Nothing) -> Long:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(context.show, map(str, range(200))))
        return Long(lines=())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns in the middle of everything
    try:
        _, lines = result_and_progress(answer, tmp_path)
    finally:
        sys.setswitchinterval(before)
    assert [number for number, _ in lines] == [*range(1, 201)]
    assert {line for _, line in lines} == {*map(str, range(200))}


def result_and_progress(
    function: Callable[[Context, Any], Result], folder: Path
) -> tuple[CallToolResult, list[tuple[float, str]]]:
    """The answer of a call, and the number and text of each line of its progress."""
    lines: list[tuple[float, str]] = []

    async def asking() -> CallToolResult:
        async def report(number: float, line: str) -> None:
            lines.append((number, line))

        return await run(Call("answer", lambda: Nothing, function, {}, result=LONG), folder, report)

    return anyio.run(asking), lines
