"""Servers of one stack: every tool and argument is classified, and nothing of another stack is shown or changed."""

import json
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from bezel.mcp_server.answers import MAX_TOKENS
from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from bezel.operations.arguments.model import Reach
from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS
from bezel.operations.schemas import schemas_of
from tests.support.mcp_server.answers import call_for_json, tokens_of
from tests.support.operations.project_cloud import PROJECT, ROOT, OneProject, one_project

ONLY = Scope(stacks=("mine",))
L4 = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
RTX = "NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion"
# Names that only the other stack's file, bucket, secret and results have.
FOREIGN = {"theirs", "their-token", "their-bucket", "their-model", "their-first-line", "their-field"}
MINE, THEIRS = ({"HF_TOKEN": "my-token"}, "my-bucket"), ({"HF_TOKEN": "their-token"}, "their-bucket")
APIS = re.findall(r'"([A-Z0-9_]+)": "https://', (ROOT / "bezel/rest/endpoints.py").read_text())
Asked = Callable[[Client], Coroutine[Any, Any, None]]


def ask(folder: Path, asked: Asked, scope: Scope = ONLY) -> None:
    """Run a client against a server of the folder."""

    async def asking() -> None:
        with anyio.fail_after(120):
            async with Client(server_of(folder, scope)) as client:
                await asked(client)

    anyio.run(asking)


def write_stack(folder: Path, stack: str, secrets: dict[str, str], bucket: str, region: str) -> None:
    text = (ROOT / "Pulumi.l4-qat.yaml").read_text().replace("us-east4", region)
    text += f"  bezel:secrets: {json.dumps(secrets)}\n"
    text += f"  bezel:weights: {{bucket: {bucket}}}\n  gcp:project: {PROJECT}\n"
    (folder / f"Pulumi.{stack}.yaml").write_text(text)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    (tmp_path / "project").mkdir()
    with one_project(tmp_path / "cloud", monkeypatch) as project_cloud:
        monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/state")
        monkeypatch.setenv("HF_ENDPOINT", project_cloud.server.url)
        for api in APIS:  # so that none is asked outside of this machine
            if f"GOOGLE_{api}_CUSTOM_ENDPOINT" not in os.environ:
                monkeypatch.setenv(f"GOOGLE_{api}_CUSTOM_ENDPOINT", f"{project_cloud.server.url}/other/")
        (tmp_path / "state").mkdir()
        yield project_cloud


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two stacks, documents, and files of other kinds."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    shutil.copy(ROOT / "Pulumi.yaml", project)
    write_stack(project, "mine", *MINE, region="us-east4")
    write_stack(project, "theirs", *THEIRS, region="europe-west1")
    (project / "docs").mkdir()
    (project / "docs" / "guide.md").write_text("# Guide\n")
    (project / "docs" / "link.md").symlink_to("../Pulumi.theirs.yaml")
    (project / "notes.txt").write_text("their-first-line, users of it\n")
    (project / "other.json").write_text('{"their-field": "their-first-line", "schema": "their-first-line"}')
    (project / "list.csv").write_text("their-field,their-first-line\n1,2\n")
    (project / "outside.json").symlink_to("/proc/self/environ")
    os.mkfifo(project / "pipe.json")
    return project


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_every_operation_and_argument_says_what_it_touches(each: Operation) -> None:
    assert each.touches is not None, "say in the registry what it touches"
    for name, field in each.arguments().model_fields.items():
        assert sum(isinstance(reach, Reach) for reach in field.metadata) == 1, f"say the reach of {name}"
    assert each.touches.subject != "stack" or "stack" in schemas_of(each.name)["arguments_inside"]
    assert each.kind != "changing" or each.touches.subject in {"stack", "project"}


def test_an_operation_or_argument_without_a_class_is_refused() -> None:
    new = Operation("plan", "plan.plan:plan", "reading", "new", "new")
    assert not ONLY.serves(new)
    assert Scope().serves(new)
    assert ONLY.input_schema(new)["properties"] == {}


def test_the_served_tools_are_those_of_a_stack_of_records_and_of_results() -> None:
    served = {each.name for each in ONLY.operations()}
    left_out = {each.name for each in OPERATIONS} - served
    assert left_out == {"tpu_list", "tpu_describe", "tpu_create", "tpu_delete", "catalog_add_model", "expiry"}


BEYOND = [
    ("quota_request", {"quota": RTX, "amount": 9, "region": "us-east4"}),
    ("quota_request", {"quota": L4, "amount": 9, "region": "europe-west1"}),
    ("quota_request", {"quota": L4, "amount": 9, "zone": "us-east4-a"}),
    ("quota_request", {"quota": L4, "amount": 9}),
    ("quota_request", {"quota": "TPUV6EPerProjectPerZoneForTPUAPI", "amount": 4, "zone": "us-east5-a"}),
    ("quota_request", {"quota": L4, "amount": 9, "region": "us-east4", "stack": "theirs"}),
    ("secret_show", {"name": "their-token"}),
    ("secret_show", {"name": "nobodys-token"}),
    ("secret_show", {"name": "their-token", "stack": "theirs"}),
    ("weights_copy", {"origin": "gs://their-bucket/model"}),
    ("weights_copy", {"origin": " gs://their-bucket/model"}),
    ("weights_copy", {"origin": "gs://my-bucket-2/model"}),
    ("model_files", {"stack": "gs://their-bucket"}),
    ("model_files", {"stack": "gs://my-bucket"}),
    ("bench_run", {"url": "http://127.0.0.1:9", "out": "a.json"}),
    ("bench_sweep", {"url": "http://127.0.0.1:9", "out": "a.json"}),
    ("quota", {"stack": "theirs"}),
    ("stack_edit", {"set": ["weights.bucket=their-bucket"]}),
    ("stack_edit", {"new": True, "copy_of": "theirs"}),
    ("stack_list", {"stack": "theirs"}),
    ("drift", {"stack": "theirs"}),
    ("recover", {"stack": "theirs"}),
    ("doctor", {"stack": "theirs"}),
    ("plan", {"stack": ["mine", "theirs"]}),
]


@pytest.mark.slow
def test_an_argument_that_reaches_beyond_the_stack_is_refused(cloud: OneProject, folder: Path) -> None:
    async def use_client(client: Client) -> None:
        for name, arguments in BEYOND:
            result = await client.call_tool(name, arguments)
            assert result.is_error, (name, arguments)
            assert result.meta["bezel/error"]["code"] == "invalid_arguments", (name, arguments, result)

    ask(folder, use_client)
    assert [call.path for call in cloud.server.calls] == []


@pytest.mark.slow
def test_what_belongs_to_the_stack_is_shown_and_planned(cloud: OneProject, folder: Path) -> None:
    cloud.put("my-bucket", "other-model/config.json", b"{}")

    async def use_client(client: Client) -> None:
        quota = await call_for_json(client, "quota_request", {"quota": L4, "amount": 9, "region": "us-east4"})
        assert quota.structured_content["token"]
        secret = await call_for_json(client, "secret_show", {"name": "my-token"})
        assert secret.structured_content["used_by"] == ["mine (HF_TOKEN)"]
        files = await client.call_tool("model_files", {})
        assert not files.is_error
        assert "other-model" not in str(files)
        copy = await client.call_tool("weights_copy", {"origin": "gs://my-bucket/other-model"})
        assert "serves that stack only" not in str(copy)
        assert "their" not in str([quota, secret, files])

    ask(folder, use_client)


@pytest.mark.slow
@pytest.mark.usefixtures("cloud")
def test_no_result_of_any_tool_names_another_stack(folder: Path) -> None:
    """Each text argument of each tool in turn names a stack, a file or a word; the answer names nothing foreign."""
    values = ["mine", "min", "other.json", "outside.json", "pipe.json", "../project/Pulumi.theirs.yaml", "us-east4-a"]

    async def use_client(client: Client) -> None:
        calls = 0
        for tool in (await client.list_tools()).tools:
            assert not FOREIGN & set(json.dumps(tool.input_schema).split('"')), tool.name
            schemas = {name: json.dumps(schema) for name, schema in tool.input_schema["properties"].items()}
            for name in [name for name, schema in schemas.items() if "string" in schema]:
                for value in ("mine", "theirs") if name == "stack" else values:
                    arguments = {name: [value] if '"array"' in schemas[name] else value}
                    result = await client.call_tool(tool.name, {**_required_arguments(tool, value), **arguments})
                    assert tokens_of(result) <= MAX_TOKENS["short"], (tool.name, arguments)
                    shown = result.model_dump_json().replace("Pulumi.theirs.yaml", "")
                    assert not [word for word in FOREIGN if word in shown], (tool.name, arguments, shown)
                    calls += 1
        assert calls > 400

    ask(folder, use_client)


def _required_arguments(tool: Any, value: str) -> dict[str, Any]:
    """A value of each required argument."""
    arguments: dict[str, Any] = {}
    for name in tool.input_schema.get("required", ()):
        schema = tool.input_schema["properties"][name]
        if name == "stack" or "enum" in schema:
            arguments[name] = schema["enum"][0]
        elif schema.get("type") == "array":
            arguments[name] = [value]
        else:
            arguments[name] = 1 if schema.get("type") in {"number", "integer"} else "x"
    return arguments


FILES = ("notes.txt", "other.json", "list.csv", "Pulumi.theirs.yaml", "outside.json", "pipe.json", "docs")
PATHS = ("../secret", "/etc/passwd", "/proc/self/environ", ".git/config", "docs/../../secret", "\0", "x" * 290)


@pytest.mark.slow
@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(("tool", "key"), [("bench_audit", "files"), ("bench_report", "results"), ("query", "image")])
def test_a_tool_that_takes_a_path_repeats_nothing_of_other_files(folder: Path, tool: str, key: str) -> None:
    (folder.parent / "secret").write_text("their-first-line")

    async def use_client(client: Client) -> None:
        for name in (*FILES, *PATHS):
            sent = {"prompt": "x", "image": name} if tool == "query" else {key: [name]}
            result = await call_for_json(client, tool, sent)
            assert result.is_error or result.structured_content["unreadable"], name
            text = result.model_dump_json().replace(name, "")
            foreign_texts = ["their-", "root:", "PATH=", "bezel:model", "users of it"]
            assert not [word for word in foreign_texts if word in text], (name, text)

    ask(folder, use_client)
    ask(folder, use_client, Scope())


def test_resources_are_those_of_the_stack_and_real_documents(folder: Path) -> None:
    async def use_client(client: Client) -> None:
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        assert listed == ["bezel://stacks", "bezel://plan/mine", "bezel://docs/guide"]
        (text,) = (await client.read_resource("bezel://stacks")).contents
        assert text.text == "mine\n"  # type: ignore[union-attr]
        for uri in ("bezel://plan/theirs", "bezel://docs/link", "bezel://docs/../Pulumi.theirs", "bezel://plan/x"):
            with pytest.raises(MCPError, match="unknown resource"):
                await client.read_resource(uri)

    ask(folder, use_client)


def test_prompts_take_the_served_stack_only(folder: Path) -> None:
    async def use_client(client: Client) -> None:
        for name in ("deploy", "diagnose"):
            assert (await client.get_prompt(name, {"stack": "mine"})).messages
            with pytest.raises(MCPError, match="serves the stacks mine only"):
                await client.get_prompt(name, {"stack": "theirs"})
        assert (await client.get_prompt("compare", {"model": "gemma-4-12b"})).messages

    ask(folder, use_client)


def test_a_stack_without_a_file_is_refused_without_the_names_of_others(folder: Path) -> None:
    async def use_client(client: Client) -> None:
        result = await client.call_tool("plan", {})
        assert result.is_error
        assert "theirs" not in str(result)

    ask(folder, use_client, Scope(stacks=("their",)))
