"""An agent edits stack files: with what was shown, once, by its own token, and within its server's stacks."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from bezel.mcp_server.scope import Scope
from tests.support.mcp_server.answers import call_for_json
from tests.support.mcp_server.sessions import ask

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, tmp_path)
    for stack in ("mine", "theirs"):
        shutil.copy(ROOT / "Pulumi.l4-qat.yaml", tmp_path / f"Pulumi.{stack}.yaml")
    return tmp_path


async def token_of(client: Client, *settings: str, stack: str = "mine") -> str:
    result = await call_for_json(client, "stack_edit", {"stack": stack, "set": list(settings)})
    assert not result.is_error, result.content
    assert result.structured_content["plan"]["price_after"]["usd_per_hour"]
    return str(result.structured_content["token"])


async def confirm(client: Client, token: str, target: str = "mine") -> str:
    """The verdict, or the code of the refusal with its text."""
    arguments = {"token": token, "operation": "stack_edit", "target": target}
    result = await call_for_json(client, "confirm", arguments)
    return str(result.content[0].text if result.is_error else result.structured_content["verdict"])  # type: ignore[union-attr]


@pytest.mark.slow  # the rules of the planner
def test_token_writes_its_file_once_and_no_other(folder: Path) -> None:
    file, others = folder / "Pulumi.mine.yaml", folder / "Pulumi.theirs.yaml"
    foreign = others.read_text()
    tokens: list[str] = []

    async def first(client: Client) -> None:
        tokens.extend([await token_of(client, f"labels.team=t{number}") for number in range(3)])
        assert "the token confirms stack_edit mine" in await confirm(client, tokens[0], "theirs")
        assert await confirm(client, tokens[0]) == "done"
        assert 'team: "t0"' in file.read_text()
        assert "no plan waits" in await confirm(client, tokens[0])
        assert "the stack's file" in await confirm(client, tokens[1])

    async def second(client: Client) -> None:
        assert "no plan waits" in await confirm(client, tokens[2])  # its server has ended, and the plan with it
        mine, later = await token_of(client, "rollout=gated"), await token_of(client, "labels.team=late")
        assert await confirm(client, later) == "done"
        assert "the stack's file" in await confirm(client, mine)

    ask(folder, first)
    ask(folder, second)
    assert "rollout" not in file.read_text()
    assert others.read_text() == foreign
    assert {each.name for each in folder.iterdir()} == {"Pulumi.yaml", "__main__.py", file.name, others.name}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"stack": "theirs", "set": ["rollout=gated"]}, "serves the stacks mine only"),
        ({"set": ["weights.bucket=their-bucket"]}, "serves that stack only"),
        ({"set": ["secrets={HF_TOKEN: their-token}"]}, "serves that stack only"),
        ({"unset": ["service_name"]}, "serves that stack only"),
        ({"stack": "new", "new": True, "set": ["rollout=gated"]}, "serves the stacks mine only"),
        ({"new": True, "copy_of": "theirs"}, "takes no copy_of here"),
        ({"set": ["x" * 30_000]}, "it has no value"),
        ({"set": ["rollout=gated"] * 60}, "it is too long"),
        ({"set": "rollout=gated"}, "expected a list"),
    ],
)
def test_edit_beyond_the_served_stack_or_without_bounds_is_refused(
    folder: Path, arguments: dict[str, Any], text: str
) -> None:
    before = {each.name: each.read_bytes() for each in folder.iterdir()}

    async def use_client(client: Client) -> None:
        result = await client.call_tool("stack_edit", arguments)
        assert result.is_error
        assert text in str(result.content[0].text)  # type: ignore[union-attr]
        assert result.meta["bezel/error"]["code"] == "invalid_arguments"

    ask(folder, use_client, Scope(stacks=("mine",)))
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


def test_client_that_may_only_read_has_no_edit(folder: Path) -> None:
    async def use_client(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "stack_list" in names
        assert not names & {"stack_edit", "confirm"}

    ask(folder, use_client, Scope(read_only=True))
