"""Metrics, advice and page of a leased stack while its fallback serves: read at the fallback's path, and said so."""

from typing import Any

import pytest

from bezel.operations.advise.advise import AdviseArguments, advise
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.metrics.result import Metrics
from bezel.operations.watch.page import WatchArguments, watch
from tests.operations.test_lease_status import GATEWAY, lease_resources
from tests.operations.test_metrics import TEXT
from tests.support.leases.fake_lease_api import FakeLeaseApi
from tests.support.leases.harness import LeaseHarness
from tests.support.operations.deployed import NOW, SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.operations.model_server import ModelServer
from tests.support.operations.prometheus_server import Prometheus
from tests.support.rest.fake_google import Answer

FALLBACK = f"{SERVICE}-fallback"
NOTE = "no lease serves: of the fallback llm-fallback, at /fallback of the address"


class LeasedStack:
    """The stack `dev` of one lease with a fallback, which keeps `minimum` instances; its gateway answers."""

    def __init__(self, cloud: Deployed, world: FakeLeaseApi, minimum: int = 1, *, has_fallback: bool = True) -> None:
        self.cloud, self.lease, self.server = cloud, LeaseHarness(world, "queued_resource"), ModelServer(cloud)
        fallback = service_resource(name="llm-fallback") | {"id": FALLBACK, "urn": "urn:fallback"}
        resources = [GATEWAY, *([fallback] if has_fallback else []), *lease_resources(self.lease)]
        cloud.keep("dev", state_of(*resources, url=cloud.server.url, model="gemma", simulated=True))
        cloud.live[FALLBACK] = live_service(scaling={"minInstanceCount": minimum})
        for path in ("/metrics", "/fallback/metrics"):
            self.server.answers[path] = Answer(text=TEXT)

    def metrics(self) -> Metrics:
        return metrics(self.cloud.context, MetricsArguments(stack="dev"))

    @property
    def paths(self) -> set[str]:
        return {call.path for call in self.server.calls}


def test_metrics_are_those_of_the_fallback_while_no_lease_serves(cloud: Deployed, world: FakeLeaseApi) -> None:
    stack = LeasedStack(cloud, world)
    report = stack.metrics()
    assert (report.is_read, report.url) == (True, f"{cloud.server.url}/fallback")
    assert NOTE in report.notes
    assert stack.paths == {"/fallback/metrics"}


def test_a_fallback_without_an_instance_is_not_started(cloud: Deployed, world: FakeLeaseApi) -> None:
    stack = LeasedStack(cloud, world, minimum=0)
    report = stack.metrics()
    assert (report.is_read, stack.paths) == (False, set())
    assert NOTE in report.notes


@pytest.mark.parametrize("has_fallback", [True, False])
def test_metrics_are_those_of_the_lease_that_serves(cloud: Deployed, world: FakeLeaseApi, has_fallback: bool) -> None:
    stack = LeasedStack(cloud, world, has_fallback=has_fallback)
    if has_fallback:  # without one there is nothing else to read, with or without a lease
        stack.lease.run()
    report = stack.metrics()
    assert (report.url, stack.paths) == (cloud.server.url, {"/metrics"})
    assert NOTE not in report.notes


@pytest.mark.slow
def test_page_and_advice_say_that_the_fallback_serves(cloud: Deployed, world: FakeLeaseApi) -> None:
    stack = LeasedStack(cloud, world)
    page: Any = watch(cloud.context, WatchArguments(stack="dev", interval=1))
    assert "because: the fallback llm-fallback serves" in page.text()
    assert page.metrics.url.endswith("/fallback")
    advice = advise(cloud.context, AdviseArguments(stack="dev"))
    assert any(note.startswith(f"{NOTE}; the log is that of the leased machines") for note in advice.notes)
    assert stack.paths <= {"/fallback/metrics", "/fallback/v1/chat/completions"}


def test_leases_that_are_over_are_told_of_by_their_series(cloud: Deployed, world: FakeLeaseApi) -> None:
    """Their series name the gateway, their cluster the leases; the gateway itself is not asked."""
    stack, collected = LeasedStack(cloud, world, has_fallback=False), Prometheus()
    state = state_of(GATEWAY, *lease_resources(stack.lease), url=cloud.server.url, plan={"metrics": {"interval": 30}})
    cloud.keep("dev", state)
    cloud.server.routes[:0] = [collected.answer]
    recorded = TEXT[TEXT.index("# HELP") :]
    target = {"cluster": "__lease__", "namespace": "gateway", "location": "us-east5-a"}
    name = cloud.context.deployment("dev").region_services[0].name
    collected.scrape(recorded, NOW - 7200, instance="dev-one", **{**target, "namespace": name})
    collected.scrape(recorded, NOW - 7200, instance="other", **target | {"cluster": "gke"})
    report = stack.metrics()
    assert (report.source, report.starts, stack.paths) == ("series", 1, set())
    assert sum(window.prompt_tokens or 0 for window in report.course) == 196
    assert "no lease serves" in report.notes[0]
    stack.lease.run()
    assert stack.metrics().source == "instance"
