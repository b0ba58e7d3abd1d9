"""Health check of a gateway whose leases have ended: it ends at once and says so, and waits for any that may serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel.leases.names import labels
from smoke.health import HealthCheckProvider
from smoke.lease_end import end_of
from smoke.poller import CheckFailedError, Poller, polling
from tests.support.leases.harness import ACCOUNT, TOKEN
from tests.support.rest.fake_google import Answer, Call, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smoke.client import Server as VllmServer

ZONE, NAME = "us-east5-a", "bezel-v6e4"
LABELS = labels(NAME, "v6e4")
RESOURCE = f"projects/acme/locations/{ZONE}"
# Every state of the discovery documents (tpu v2alpha1, compute v1 of November 2026) -> whether it may serve.
REQUESTS = {
    "STATE_UNSPECIFIED": True, "CREATING": True, "ACCEPTED": True, "WAITING_FOR_RESOURCES": True, "PROVISIONING": True,
    "ACTIVE": True, "SUSPENDING": False, "SUSPENDED": False, "FAILED": False, "DELETING": False, "(none)": False,
}  # fmt: skip
NODES = {
    "STATE_UNSPECIFIED": True, "CREATING": True, "READY": True, "RESTARTING": True, "REIMAGING": True,
    "REPAIRING": True, "STARTING": True, "UNHIDING": True, "UNKNOWN": True, "STOPPING": False, "STOPPED": False,
    "DELETING": False, "PREEMPTED": False, "TERMINATED": False, "HIDING": False, "HIDDEN": False,
}  # fmt: skip
INSTANCES = {
    "PENDING": True, "PROVISIONING": True, "STAGING": True, "RUNNING": True, "REPAIRING": True, "PENDING_STOP": False,
    "STOPPING": False, "STOPPED": False, "SUSPENDING": False, "SUSPENDED": False, "TERMINATED": False,
    "DEPROVISIONING": False, "(none)": False,
}  # fmt: skip


def lease(back_end: str, name: str = NAME) -> dict[str, Any]:
    zones = [{"zone": ZONE, "patience_seconds": 300.0}]
    own = {"project": "acme", "name": name, "stack": "v6e4", "back_end": back_end}
    return {**own, "zones": zones, "former_zones": [ZONE]}


class Cloud:
    """Both control planes with one lease in a state, and a gateway that answers 503."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.request, self.node, self.instance = "(none)", "READY", "(none)"
        self.status = 200
        self.asked = 0
        server.routes[:] = [self.answer]

    def answer(self, call: Call) -> Answer | None:
        if call.path == "/health":
            return Answer(503, json={"error": "no machine is available"})
        self.asked += 1
        if self.status != 200:
            return Answer(self.status, json={"error": {"code": self.status, "message": "denied"}})
        if "/queuedResources" in call.path and self.request != "(none)":
            node = {"labels": LABELS, "serviceAccount": {"email": ACCOUNT}}
            spec = [{"nodeId": NAME, "parent": RESOURCE, "node": node}]
            state = {"state": self.request, "failedData": {"error": {"message": "stocked out"}}}
            return Answer(
                json={"name": f"{RESOURCE}/queuedResources/{NAME}", "state": state, "tpu": {"nodeSpec": spec}}
            )
        if "/nodes" in call.path and self.request == "ACTIVE" and "Attributes" not in call.path:
            return Answer(json={"name": f"{RESOURCE}/nodes/{NAME}", "state": self.node, "labels": LABELS})
        if "/instances/" in call.path and self.instance != "(none)":
            zone = f"https://www.googleapis.com/compute/v1/projects/acme/zones/{ZONE}"
            return Answer(json={"name": NAME, "id": "1", "status": self.instance, "labels": LABELS, "zone": zone})
        return Answer(404, json={"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}})


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
    found = ends("queued_resource")
    assert (found == "") is serves
    assert serves or f"the lease {NAME} " in found
    assert state not in ("FAILED", "SUSPENDED") or f"{state} in {ZONE}" in found


@pytest.mark.parametrize(("state", "serves"), NODES.items())
def test_a_node_that_runs_no_more_is_the_end_of_an_active_request(cloud: Cloud, state: str, serves: bool) -> None:
    cloud.request, cloud.node = "ACTIVE", state
    assert (ends("queued_resource") == "") is serves


@pytest.mark.parametrize(("state", "serves"), INSTANCES.items())
def test_an_instance_has_ended_in_each_final_state(cloud: Cloud, state: str, serves: bool) -> None:
    cloud.instance = state
    assert (ends("flex_start_vm") == "") is serves


def test_one_lease_of_a_fleet_that_may_serve_and_one_that_cannot_be_read_are_no_end(cloud: Cloud) -> None:
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
        assert poller.elapsed() < 20
    assert f"the lease {NAME} has ended (SUSPENDED in {ZONE}" in caught.value.what
    assert "lease.renew: true" in str(caught.value.repair)
    assert "waited" not in caught.value.what


def test_a_check_of_a_lease_that_ends_meanwhile_ends_soon_after(cloud: Cloud) -> None:
    cloud.request, cloud.node = "ACTIVE", "READY"
    with polling(props(cloud), lambda _: None) as real:
        server: VllmServer = real._server
        clock = Clock()
        poller = Poller(server, "m", 900, show=lambda _: None, clock=clock, sleep=clock.sleep, end=real._end)
        clock.at = 60.0, lambda: setattr(cloud, "node", "PREEMPTED")
        with pytest.raises(CheckFailedError, match=f"the lease {NAME} has ended"):
            poller.response("health", "GET", "/health")
    assert 60 <= clock.now < 85
    assert cloud.asked < 40


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


class Clock:
    """Time that only `sleep` moves, with something that happens at one moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: Any = (float("inf"), None)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.at[0]:
            self.at[1]()
            self.at = (float("inf"), None)


def props(cloud: Cloud) -> dict[str, Any]:
    return {
        "url": cloud.server.url, "public": True, "served_model": "m", "deadline_seconds": 900.0,
        "leases": [lease("queued_resource")],
    }  # fmt: skip
