"""Tools about the whole project, as an agent calls them: a quota requested once by its token, a secret never set."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from tests.support.mcp_server.answers import call_for_json
from tests.support.operations.project_cloud import ROOT, OneProject, one_project

pytestmark = pytest.mark.slow  # a cloud behind a socket each
L4 = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
REQUEST = {"quota": L4, "amount": 5, "region": "us-east4"}


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    with one_project(tmp_path, monkeypatch) as project_cloud:
        yield project_cloud


def answers(*calls: tuple[str, dict[str, Any]], scope: Scope | None = None) -> list[Any]:
    """What one client gets for its calls; an argument `token` is that of the last plan."""

    async def asking() -> list[Any]:
        results: list[Any] = []
        with anyio.fail_after(60):
            async with Client(server_of(ROOT, scope or Scope())) as client:
                for name, arguments in calls:
                    offers = [each.structured_content for each in results if not each.is_error]
                    token = next((offer["token"] for offer in reversed(offers) if "token" in offer), "")
                    sent = {**arguments, "token": token} if name == "confirm" else arguments
                    results.append(await call_for_json(client, name, sent))
        return results

    return anyio.run(asking)


def test_a_quota_is_requested_by_the_token_of_its_plan_and_once(cloud: OneProject) -> None:
    target = f"{L4} in us-east4"
    confirm = ("confirm", {"operation": "quota_request", "target": target})
    planned, done, again = answers(("quota_request", REQUEST), confirm, confirm)
    assert planned.structured_content["plan"]["target"] == target
    assert done.structured_content["verdict"] == "done"
    assert "pending" in done.content[0].text
    assert again.is_error
    assert len(cloud.changing_calls) == 1


def test_a_plan_alone_and_a_token_for_another_place_request_nothing(cloud: OneProject) -> None:
    wrong = ("confirm", {"operation": "quota_request", "target": f"{L4} in europe-west1"})
    _, refused = answers(("quota_request", REQUEST), wrong)
    assert refused.meta["bezel/error"]["code"] == "refused"
    assert cloud.changing_calls == []


def test_a_server_for_one_stack_requests_quota_for_that_stack_only(cloud: OneProject) -> None:
    only = Scope(stacks=("l4-qat",))
    other, own_stack = answers(
        ("quota_request", {**REQUEST, "stack": "l4-fp8"}), ("quota_request", REQUEST), scope=only
    )
    assert other.is_error
    assert own_stack.structured_content["plan"]["arguments"]["stack"] == "l4-qat"
    assert cloud.changing_calls == []


def test_an_agent_gets_the_command_for_a_secret_and_cannot_give_a_value(cloud: OneProject) -> None:
    shown, refused = answers(
        ("secret_show", {"name": "hf-token"}), ("secret_show", {"name": "hf-token", "value": "hf_PlantedPlanted12"})
    )
    assert shown.structured_content["command"] == "bezel secret set hf-token"
    assert not shown.structured_content["has_value"]
    assert refused.meta["bezel/error"]["code"] == "invalid_arguments"
    assert "hf_PlantedPlanted12" not in refused.model_dump_json()
    assert cloud.changing_calls == []
