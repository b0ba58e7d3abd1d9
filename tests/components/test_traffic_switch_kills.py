"""The process that moves traffic, killed at each call that it makes: another one ends what it began, with one move."""

import os
import threading
from collections.abc import Iterator

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from bezel_components.providers.traffic_switch import TrafficSwitchProvider
from tests.support.components.fake_cloud_run import SERVICE, TAGGED, FakeRun, description, pin, running
from tests.support.rest.fake_google import Answer, Call
from tests.support.smoke.plugin import bag, plugin_running

pytestmark = pytest.mark.slow
PROPS = {"service": SERVICE, "revision": f"{SERVICE}/revisions/chat-2", "deadline_seconds": 30.0}
WAIT = 30
CALLS = ["GET", "PATCH", "GET"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        fake.service = description(pin("chat-1"), TAGGED)
        yield fake


def test_a_move_makes_these_calls(run: FakeRun) -> None:
    TrafficSwitchProvider().create(PROPS)
    assert [call.method for call in run.server.calls] == CALLS


@pytest.mark.wide_except("1-before", "3-after")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, len(CALLS) + 1))
def test_a_move_that_was_killed_is_made_once_by_the_next_run(run: FakeRun, number: int, when: str) -> None:
    reached, released = threading.Event(), threading.Event()

    def gate(call: Call) -> Answer:
        if len(run.server.calls) != number:
            return run.route(call)
        answer = run.route(call) if when == "after" else Answer(reset=True)
        reached.set()
        released.wait(WAIT)
        return answer

    run.server.routes[:] = [gate]
    environment = {name: value for name, value in os.environ.items() if name.startswith("GOOGLE_")}
    with plugin_running(environment) as plugin:
        properties = bag(TrafficSwitchProvider(), PROPS)
        creating = plugin.stub.Create.future(provider_pb2.CreateRequest(properties=properties))
        assert reached.wait(WAIT)
        plugin.process.kill()
        plugin.process.wait(WAIT)
        released.set()
        with pytest.raises(grpc.RpcError):
            creating.result(WAIT)

    run.server.routes[:] = [run.route]
    assert TrafficSwitchProvider().create(PROPS).outs["serving"] == {"chat-2": 100}
    assert len(run.bodies) == 1
