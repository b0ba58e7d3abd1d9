"""List of tools: what a model pays for it, and that each tool says when to use it, what it costs and what is next."""

import pytest
from mcp_types import ListToolsResult

from bezel.mcp_server.answers import BYTES_OF_A_TOKEN, DETAIL
from bezel.mcp_server.listing import listed_schema
from bezel.mcp_server.scope import Scope
from bezel.mcp_server.tools import description_of, tool_of
from bezel.mcp_server.two_steps import confirm_tool
from bezel.operations.guides import Guide, guides, operations_in
from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS, operation
from bezel.operations.schemas import schemas_of

TOOLS = {tool.name: tool for tool in [*(tool_of(each, Scope()) for each in OPERATIONS), confirm_tool()]}
# Those that say how a deployed stack is, which are easily taken for each other.
READERS = ("status", "watch", "metrics", "analyze_logs", "advise", "doctor")


def test_whole_answer_with_the_list_is_below_10000_tokens() -> None:
    answer = ListToolsResult(tools=[*TOOLS.values()]).model_dump_json(by_alias=True, exclude_none=True)
    assert len(answer.encode()) / BYTES_OF_A_TOKEN < 10_000


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_every_operation_has_a_whole_guide(each: Operation) -> None:
    guide = guides()[each.name]
    assert all((guide.title, guide.when, guide.costs, guide.next)), guide
    assert operations_in(f"{guide.when} {guide.costs} {guide.next}") <= {other.name for other in OPERATIONS}
    assert set(guide.narrows) <= set(schemas_of(each.name)["arguments"]["properties"])
    assert DETAIL not in schemas_of(each.name)["arguments"]["properties"]


def test_there_is_no_guide_of_an_operation_that_is_gone() -> None:
    assert set(guides()) == {each.name for each in OPERATIONS}


def test_titles_tell_tools_apart() -> None:
    assert len({tool.title for tool in TOOLS.values()}) == len(TOOLS)


@pytest.mark.parametrize("name", READERS)
def test_each_tool_about_a_server_names_another_that_is_called_instead(name: str) -> None:
    assert operations_in(guides()[name].when) & {*READERS}


def test_guide_names_operations_as_its_reader_does() -> None:
    guide = Guide("Title", "first; why: {logs}", "free", "{analyze_logs}")
    assert guide.text(lambda name: name) == "Use it first; why: logs. Costs: free. Next: analyze_logs."
    named = guide.text(lambda name: f"`bezel {operation(name).command}`")
    assert named == "Use it first; why: `bezel logs`. Costs: free. Next: `bezel analyze-logs`."
    assert Guide().text(str) == ""


def test_a_tool_that_changes_says_that_it_only_plans() -> None:
    assert "plan only, then confirm" in description_of(operation("deploy"), Scope())
    assert "plan only" not in description_of(operation("plan"), Scope())


def test_a_tool_that_is_not_served_is_named_by_its_command() -> None:
    assert "Next: `bezel deploy`." in description_of(operation("plan"), Scope(read_only=True))
    assert "Next: deploy." in description_of(operation("plan"), Scope())
    assert "one machine: `bezel tpu delete`;" in description_of(operation("destroy"), Scope(stacks=("dev",)))


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_listed_arguments_are_those_that_are_accepted(each: Operation) -> None:
    accepted, listed = schemas_of(each.name)["arguments"], TOOLS[each.name].input_schema
    assert {*listed["properties"]} - {DETAIL} == {*accepted.get("properties", {})}
    assert listed.get("required", []) == accepted.get("required", [])
    assert (DETAIL in listed["properties"]) == guides()[each.name].is_long


def test_listed_argument_drops_only_what_a_refusal_says() -> None:
    text = {"anyOf": [{"type": "string", "maxLength": 5, "pattern": "^a"}, {"type": "null"}], "default": None}
    number = {"type": "integer", "minimum": 0, "maximum": 9, "default": 0, "description": "how many"}
    choice = {"type": "string", "enum": ["a", "b"], "default": "a", "title": "Choice"}
    limit = {"type": "integer", "minimum": 1, "maximum": 10**9}
    properties = {"text": text, "number": number, "choice": choice, "limit": limit}
    schema = {"properties": properties, "required": ["number"]}
    assert listed_schema(schema, is_long=False) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "number": number,
            "choice": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "limit": {"type": "integer", "minimum": 1},
        },
        "required": ["number"],
    }


def test_hints_are_those_of_what_a_tool_does() -> None:
    reading, files, planning, loading, doing = (
        TOOLS[name].annotations for name in ("status", "explain", "destroy", "bench_run", "confirm")
    )
    assert reading and files and planning and loading and doing  # noqa: PT018 - for the types
    assert reading.read_only_hint
    assert (reading.open_world_hint, files.open_world_hint) == (None, False)
    assert (planning.read_only_hint, planning.destructive_hint, planning.idempotent_hint) == (None, False, True)
    assert (loading.destructive_hint, loading.idempotent_hint) == (False, False)
    assert (doing.read_only_hint, doing.destructive_hint, doing.idempotent_hint) == (False, True, False)
