"""Keys by an agent: in two steps, and no answer in any length holds the key, which is in a file of the user's own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp_types import CallToolResult

from bezel.mcp_server.answers import DETAILS
from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from bezel_door.key_file import KeyRefusal, judge_key
from tests.support.operations.door_cloud import DoorCloud, door_cloud

pytestmark = pytest.mark.slow  # a server and a cloud behind a socket


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DoorCloud]:
    with door_cloud(tmp_path) as deployed:
        for name, value in deployed.context().environ.items():
            monkeypatch.setenv(name, value)
        yield deployed


async def plan_and_confirm(client: Client, tool: str, arguments: dict[str, object], detail: str) -> CallToolResult:
    offered = await client.call_tool(tool, {**arguments, "detail": "json"})
    assert not offered.is_error, offered.content
    answer = offered.structured_content
    assert answer is not None
    confirmation = {"token": answer["token"], "operation": tool, "target": "dev", "detail": detail}
    return await client.call_tool("confirm", confirmation)


def test_an_agent_makes_replaces_and_revokes_a_key_and_never_reads_it(cloud: DoorCloud) -> None:
    files = cloud.deployed.folder / "home/bezel/keys"

    async def use_server() -> str:
        answers = []
        async with Client(server_of(cloud.deployed.folder, Scope(stacks=("dev",)))) as client:
            for number, detail in enumerate(DETAILS):
                arguments = {"stack": "dev", "team": f"team-{number}"}
                answers.append(await plan_and_confirm(client, "keys_create", arguments, detail))
            identifier = next(files.iterdir()).name.removeprefix("dev-")
            answers.append(await plan_and_confirm(client, "keys_rotate", {"id": identifier, "overlap": "0s"}, "short"))
            answers.append(await client.call_tool("keys_list", {"detail": "json"}))
            answers.append(await plan_and_confirm(client, "keys_revoke", {"team": "team-1"}, "short"))
            wrong = await client.call_tool("keys_create", {"team": "a team"})
            assert wrong.is_error
        assert not [answer for answer in answers if answer.is_error], answers
        return "".join(answer.model_dump_json() for answer in answers)

    shown = anyio.run(use_server)
    texts = {file.read_text().strip() for file in files.iterdir()}
    assert len(texts) == len(cloud.keys()) == 4
    judged = [judge_key(cloud.keys(), text, datetime.now(UTC)) for text in texts]
    assert sum(isinstance(each, tuple) for each in judged) == 2
    assert judged.count(KeyRefusal.REVOKED) == 2
    assert not [text for text in texts if text.split("-", 2)[2] in shown]
    assert all(str(file) in shown for file in files.iterdir())
    assert not [key for key in cloud.keys().values() if key.hash in shown]
