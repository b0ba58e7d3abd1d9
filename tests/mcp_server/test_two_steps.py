"""Changing tools of the server: a plan with a token, and nothing without the confirmation of exactly that plan."""

import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from bezel.engine.local.place import PLUGINS
from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from tests.support.gitops.pipeline import STACK
from tests.support.mcp_server.answers import call_for_json
from tests.support.operations.deployed import Deployed, deployed_stack, service_resource, state_of
from tests.support.operations.two_steps import TwoSteps

pytestmark = pytest.mark.slow  # an engine

Asked = Callable[[Client], Coroutine[Any, Any, None]]


def ask(folder: Path, asked: Asked, scope: Scope | None = None) -> None:
    async def asking() -> None:
        with anyio.fail_after(240):
            async with Client(server_of(folder, scope or Scope())) as client:
                await asked(client)

    anyio.run(asking)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A stack whose state holds a service; the engine can read it."""
    with deployed_stack(tmp_path) as deployment:
        (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
        root = {"urn": "urn:pulumi:dev::bezel::pulumi:pulumi:Stack::bezel-dev", "type": "pulumi:pulumi:Stack"}
        state = state_of()
        state["checkpoint"]["latest"]["resources"] = [root, service_resource()]
        deployment.keep("dev", state)
        for name, value in deployment.context.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "not a secret")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("PATH", f"{PLUGINS}:/usr/bin:/bin")
        yield deployment


async def plan_destroy(client: Client) -> dict[str, Any]:
    result = await call_for_json(client, "destroy", {"stack": "dev", "wait": "0s"})
    assert not result.is_error, result.content
    answer: dict[str, Any] = result.structured_content
    return answer


async def refusal_text(client: Client, **arguments: Any) -> str:
    result = await client.call_tool("confirm", arguments)
    assert result.is_error
    assert result.meta["bezel/error"]["code"] == "refused"
    return str(result.content[0].text)  # type: ignore[union-attr]


def test_a_plan_names_what_is_destroyed_and_its_token_confirms_that_alone(cloud: Deployed) -> None:
    async def use_client(client: Client) -> None:
        answer = await plan_destroy(client)
        assert answer["plan"]["confirm_name"] == "dev"
        assert answer["plan"]["destroyed"][0].startswith("service (gcp:cloudrunv2/service:Service)")
        confirmation = {"token": answer["token"], "operation": "destroy", "target": "dev", "name": "dev"}
        assert "its name has to be repeated" in await refusal_text(client, **{**confirmation, "name": ""})
        assert "the token confirms destroy dev" in await refusal_text(client, **{**confirmation, "target": "prod"})
        assert "the token confirms destroy dev" in await refusal_text(client, **{**confirmation, "operation": "deploy"})
        assert "no plan waits" in await refusal_text(client, **{**confirmation, "token": "0" * 32})
        assert "altered" in await refusal_text(client, **{**confirmation, "token": f"{answer['token'][:-1]}~"})

    ask(cloud.folder, use_client)


def test_a_token_fails_for_another_client_and_after_any_change(cloud: Deployed) -> None:
    file = cloud.folder / "state/.pulumi/stacks/bezel/dev.json"
    confirmation = {"operation": "destroy", "target": "dev", "name": "dev"}
    tokens: list[str] = []

    async def first(client: Client) -> None:
        tokens.extend([(await plan_destroy(client))["token"] for _ in range(3)])
        state = json.loads(file.read_text())
        state["checkpoint"]["latest"]["resources"].append(
            service_resource() | {"urn": f"{'urn:pulumi:dev::bezel'}::t::x"}
        )
        before = file.read_text()
        file.write_text(json.dumps(state))
        assert "the stack's state" in await refusal_text(client, token=tokens[0], **confirmation)
        file.write_text(before)
        assert "no plan waits" in await refusal_text(client, token=tokens[0], **confirmation)
        (cloud.folder / "Pulumi.dev.yaml").write_text("config: {bezel:hardware: l4}\n")
        assert "the stack's file" in await refusal_text(client, token=tokens[1], **confirmation)

    async def second(client: Client) -> None:
        assert "no plan waits" in await refusal_text(client, token=tokens[2], **confirmation)

    ask(cloud.folder, first)
    ask(cloud.folder, second)
    assert [call.path for call in cloud.server.calls if call.method != "GET"] == []


@pytest.mark.wide
def test_an_agent_deploys_and_destroys_a_stack_with_what_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = TwoSteps.on_a_folder(tmp_path)
    for name, value in small.pipeline.environment.items():
        monkeypatch.setenv(name, value)
    lines: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(lines) + 1, None)
        lines.append(message or "")

    async def use_client(client: Client) -> None:
        deploy = (await call_for_json(client, "deploy", {"stack": STACK, "wait": "0s"})).structured_content
        assert {row["op"] for row in deploy["plan"]["changes"]} == {"create"}
        assert small.buckets() == []
        confirmation = {"token": deploy["token"], "operation": "deploy", "target": STACK}
        done = await call_for_json(client, "confirm", confirmation, progress_callback=progress)
        assert not done.is_error, done.content
        assert done.structured_content["verdict"] == "done"
        assert any("done: creating" in line for line in lines)
        assert len(small.buckets()) == 1
        assert "no plan waits" in await refusal_text(client, **confirmation)
        again = await call_for_json(client, "deploy", {"stack": STACK, "wait": "0s"})
        assert (again.structured_content["token"], again.structured_content["plan"]["is_empty"]) == (None, True)
        destroy = (await call_for_json(client, "destroy", {"stack": STACK, "wait": "0s"})).structured_content
        confirmation = {"token": destroy["token"], "operation": "destroy", "target": STACK, "name": STACK}
        done = await call_for_json(client, "confirm", confirmation)
        assert done.structured_content["verdict"] == "done"
        assert small.buckets() == []

    try:
        ask(small.pipeline.folder, use_client)
    finally:
        small.pipeline.stop()
