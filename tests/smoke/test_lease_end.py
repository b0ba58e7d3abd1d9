"""Health check of a gateway whose leases have ended: it ends at once and says so, and waits for any that may serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel_smoke.health import HealthCheckProvider
from bezel_smoke.lease_end import end_of
from bezel_smoke.poller import CheckFailedError, Poller, polling
from tests.support.clock import Clock
from tests.support.leases.harness import TOKEN
from tests.support.leases.state_cloud import INSTANCES, NAME, NODES, REQUESTS, ZONE, Cloud, lease
from tests.support.rest.fake_google import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.diagnosis.client import Server as VllmServer


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    with serving() as server:
        for api in ("TPU_V2ALPHA1", "TPU", "COMPUTE"):
            monkeypatch.setenv(f"GOOGLE_{api}_CUSTOM_ENDPOINT", f"{server.url}/")
        monkeypatch.setenv(TOKEN, "planted-token-0")
        yield Cloud(server)


def ends(back_end: str) -> str:
    return end_of([lease(back_end)])


@pytest.mark.parametrize(("state", "serves"), REQUESTS.items())
def test_a_queued_resource_has_ended_in_each_final_state(cloud: Cloud, state: str, serves: bool) -> None:
    cloud.request = state
    texts = ends("queued_resource")
    assert (texts == "") is serves
    assert serves or f"the lease {NAME} " in texts
    assert state not in ("FAILED", "SUSPENDED") or f"{state} in {ZONE}" in texts


@pytest.mark.parametrize(("state", "serves"), NODES.items())
def test_a_node_that_runs_no_more_is_the_end_of_an_active_request(cloud: Cloud, state: str, serves: bool) -> None:
    cloud.request, cloud.node = "ACTIVE", state
    assert (ends("queued_resource") == "") is serves


@pytest.mark.parametrize(("state", "serves"), INSTANCES.items())
def test_an_instance_has_ended_in_each_final_state(cloud: Cloud, state: str, serves: bool) -> None:
    cloud.instance = state
    assert (ends("flex_start_vm") == "") is serves


def test_a_fleet_with_one_lease_that_may_serve_has_not_ended(cloud: Cloud) -> None:
    """One lease of a fleet that may serve and one that cannot be read are no end."""
    cloud.instance = "RUNNING"
    assert end_of([lease("queued_resource"), lease("flex_start_vm")]) == ""
    cloud.instance = "TERMINATED"
    text = end_of([lease("queued_resource"), lease("flex_start_vm")])
    assert text.count(NAME) == 2
    cloud.status = 403
    assert end_of([lease("queued_resource")]) == ""


def test_a_check_of_an_ended_lease_ends_at_once_and_says_so(cloud: Cloud) -> None:
    cloud.request = "SUSPENDED"
    shown: list[str] = []
    with polling(props(cloud), shown.append) as poller:
        with pytest.raises(CheckFailedError) as caught:
            poller.response("health", "GET", "/health")
        assert poller.elapsed_seconds() < 20
    assert f"the lease {NAME} has ended (SUSPENDED in {ZONE}" in caught.value.what
    assert "lease.renew: true" in str(caught.value.repair)
    assert "waited" not in caught.value.what


def test_a_check_of_a_lease_that_ends_meanwhile_ends_soon_after(cloud: Cloud) -> None:
    cloud.request, cloud.node = "ACTIVE", "READY"
    with polling(props(cloud), lambda _: None) as real:
        server: VllmServer = real._server
        clock = Clock()
        poller = Poller(server, "m", 900, show=lambda _: None, clock=clock, sleep=clock.sleep, end=real._end)
        clock.events.append((60.0, lambda: setattr(cloud, "node", "PREEMPTED")))
        with pytest.raises(CheckFailedError, match=f"the lease {NAME} has ended"):
            poller.response("health", "GET", "/health")
    assert 60 <= clock.now < 85
    assert cloud.asked < 40


@pytest.mark.slow
def test_a_server_without_leases_is_waited_for_until_the_deadline(cloud: Cloud) -> None:
    cloud.request = "SUSPENDED"
    clock = Clock()
    with polling({**props(cloud), "leases": None}, lambda _: None) as real:
        poller = Poller(real._server, "m", 900, show=lambda _: None, clock=clock, sleep=clock.sleep, end=real._end)
        with pytest.raises(CheckFailedError, match="waited"):
            poller.response("health", "GET", "/health")
    assert (clock.now > 800, cloud.asked) == (True, 0)


def test_other_leases_alone_do_not_run_the_check_again(cloud: Cloud) -> None:
    olds = {**props(cloud), "service": "projects/acme/locations/l/services/s", "planned": None}
    without = {key: value for key, value in olds.items() if key != "leases"}
    assert not HealthCheckProvider().diff("i", without, olds).changes
    assert HealthCheckProvider().diff("i", olds, {**olds, "revision": "another"}).changes


def props(cloud: Cloud) -> dict[str, Any]:
    return {
        "url": cloud.server.url, "public": True, "served_model": "m", "deadline_seconds": 900.0,
        "leases": [lease("queued_resource")],
    }  # fmt: skip
