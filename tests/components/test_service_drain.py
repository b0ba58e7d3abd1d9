"""The wait before a service behind an address is deleted: only while an address may lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel.leases.clock import PlatformClock
from bezel_components.providers.service_drain import ServiceDrainProvider
from tests.support.rest.fake_google import Answer, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.rest.fake_google import Server

SERVICE = "projects/acme-llm/locations/us-east4/services/chat"
PROPS: dict[str, Any] = {"project": "acme-llm", "service": SERVICE, "stack_label": "chat-prod", "seconds": 300.0}


@pytest.fixture
def compute(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Compute Engine on a real socket."""
    with serving() as server:
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{server.url}/compute/v1/")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.planted-access-token")
        yield server


def seconds_waited(compute: Server, answer: Answer) -> float:
    """Platform seconds that a delete waits at double speed."""
    pauses: list[float] = []

    class Drain(ServiceDrainProvider):
        clock = staticmethod(lambda: PlatformClock(pause=pauses.append, speed=2.0))

    compute.routes[:] = [lambda _: answer]
    Drain().delete("id", PROPS)
    assert [call.path for call in compute.calls[-1:]] == ["/compute/v1/projects/acme-llm/global/forwardingRules"]
    return 2 * sum(pauses)


def error(status: int, message: str) -> Answer:
    return Answer(status, {"error": {"code": status, "message": message, "status": "TEST"}})


def test_requests_may_end_while_a_rule_of_the_stack_is_there(compute: Server) -> None:
    rule = {"name": "address-rule-1a2b3c4", "labels": {"stack": "chat-prod"}}
    assert seconds_waited(compute, Answer(json={"items": [{"name": "other"}, rule]})) == 300
    assert seconds_waited(compute, error(403, "Required 'compute.globalForwardingRules.list' permission")) == 300


def test_a_destroy_waits_for_nothing(compute: Server) -> None:
    """Its rule is gone, or there never was one."""
    other = {"name": "other", "labels": {"stack": "chat-dev"}}
    assert seconds_waited(compute, Answer(json={"items": [other]})) == 0
    assert seconds_waited(compute, Answer(json={})) == 0
    assert seconds_waited(compute, error(403, "Compute Engine API has not been used in project acme-llm before")) == 0


def test_another_service_replaces_the_wait_and_a_length_changes_it() -> None:
    provider = ServiceDrainProvider()
    assert provider.diff("id", PROPS, {**PROPS, "service": SERVICE.replace("chat", "answers")}).replaces == ["service"]
    longer = provider.diff("id", PROPS, {**PROPS, "seconds": 600.0})
    assert (longer.changes, longer.replaces) == (True, [])
    assert not provider.diff("id", {**PROPS, "__provider": "pickle"}, PROPS).changes
    assert provider.create({**PROPS, "__provider": "pickle"}).outs == PROPS
