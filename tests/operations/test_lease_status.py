"""Status of leased machines: what Google says of each lease now decides, and its cost so far is known or null."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bezel.leases.clock import PlatformClock, rfc3339
from bezel.leases.state.container import ATTRIBUTE, request_text
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.service_use.call_counts import Call, counted_calls
from bezel.operations.status.status import LeaseStatus, StackStatus, Status, StatusArguments, status, verdict_of
from bezel.resource_cost.prices.load_balancing import GLOBAL_RULE
from tests.support.leases.fake_lease_api import START, answers, error
from tests.support.leases.harness import NAME, ZONES, LeaseHarness
from tests.support.operations.deployed import (
    NOW,
    SERVICE,
    Deployed,
    live_service,
    logged_request,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import Answer

NO_GATEWAY = ("no condition yet",)  # the stack has no service, so its verdict is `deploying` at best
KIND = "pulumi-python:dynamic/components"


def lease_resources(trial: LeaseHarness, **node: Any) -> list[dict[str, Any]]:
    zones = [{"zone": zone, "patience_seconds": 300} for zone in ZONES]
    request = {"name": NAME, "project": "acme", "zones": zones, "back_end": trial.kind}
    hourly = dict.fromkeys(ZONES, 10.8)
    awaited = {**request, "hourly_usd": hourly, "active_at": None, "ends_at": None, **node}
    return [
        {"urn": "urn:a", "type": f"{KIND}:TpuRequest", "custom": True, "id": "a", "inputs": {}, "outputs": request},
        {"urn": "urn:b", "type": f"{KIND}:TpuNode", "custom": True, "id": "b", "inputs": {}, "outputs": awaited},
    ]


@pytest.fixture
def read(trial: LeaseHarness, tmp_path: Path) -> Any:
    """Reads the status of a stack with one lease; its arguments are the outputs that the state has of the machine."""
    import os

    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")

    def reading(*others: dict[str, Any], **node: Any) -> StackStatus:
        environ = {**os.environ, "PULUMI_BACKEND_URL": f"file://{tmp_path}/state"}
        clock: PlatformClock = trial.world.clock
        with Context(tmp_path, environ, clock=clock, show=lambda _line: None) as context:
            Deployed(tmp_path, trial.world.server, context).keep(
                "v6e4", state_of(*lease_resources(trial, **node), *others)
            )
            (stack_status,) = status(context, StatusArguments(stack="v6e4")).stacks
        return stack_status

    return reading


@pytest.mark.slow
def test_an_active_lease_is_shown_with_its_zone_the_time_left_and_its_cost(trial: LeaseHarness, read: Any) -> None:
    trial.run()
    trial.world.now += 3600
    (lease,) = read().leases
    assert (lease.state, lease.zone) == ("active", ZONES[0])
    assert 0 < lease.left_seconds < 14400
    assert Decimal("10.8") <= lease.usd_so_far <= Decimal("11.2")


@pytest.mark.slow
def test_a_container_that_was_stopped_or_loads_its_model_is_not_ready(trial: LeaseHarness, read: Any) -> None:
    trial.run()
    machine = trial.world.zone(ZONES[0]).machine
    stack = read()
    assert (stack.reasons, stack.leases[0].container, stack.leases[0].serves) == (NO_GATEWAY, "running", True)
    (lease,) = trial.remaining()
    lease.set_attributes(trial.world.now, {ATTRIBUTE: request_text("1" * 32, "stop")})
    trial.world.now += machine.take_seconds
    stack = read()
    assert (stack.verdict, stack.leases[0].container, stack.leases[0].serves) == ("stopped", "exited", False)
    assert stack.reasons == (f"the container of {NAME} is exited: `bezel container start v6e4` starts it",)
    lease.set_attributes(trial.world.now, {ATTRIBUTE: request_text("2" * 32, "start")})
    trial.world.now += machine.take_seconds
    stack = read()
    assert (stack.verdict, stack.reasons) == ("deploying", (f"the container of {NAME} does not serve yet",))
    trial.world.now += machine.load_seconds
    assert read().reasons == NO_GATEWAY


@pytest.mark.slow
def test_a_container_that_cannot_be_read_is_unknown(trial: LeaseHarness, read: Any) -> None:
    trial.run()
    trial.world.faults.append(answers(9, error(403, "denied"), path="getGuestAttributes"))
    (lease,) = read().leases
    assert (lease.state, lease.container, lease.serves) == ("active", None, None)


def test_a_lease_that_is_gone_before_its_end_has_an_unknown_cost(read: Any) -> None:
    stack = read(zone=ZONES[0], active_at=rfc3339(START - 60), ends_at=rfc3339(START + 7200))
    assert (stack.verdict, stack.leases[0].state, stack.leases[0].usd_so_far) == ("ended", "absent", None)
    assert stack.usd_so_far is None


def test_an_address_costs_while_its_lease_is_gone(read: Any) -> None:
    balancer = {"loadBalancingScheme": "EXTERNAL_MANAGED", "target": "projects/p/global/targetHttpsProxies/a"}
    rule = {"urn": "urn:r", "type": GLOBAL_RULE, "custom": True, "id": "r", "inputs": balancer, "outputs": {}}
    assert read(rule, zone=ZONES[0], active_at=rfc3339(START - 7200)).usd_per_hour_idle == Decimal("0.025")
    assert read(zone=ZONES[0], active_at=rfc3339(START - 7200)).usd_per_hour_idle == 0


def test_a_lease_that_reached_its_end_has_its_whole_cost(read: Any) -> None:
    stack = read(zone=ZONES[0], active_at=rfc3339(START - 7200), ends_at=rfc3339(START - 3600))
    assert (stack.verdict, stack.usd_so_far) == ("ended", Decimal("10.8"))


# The world begins on a Monday at 14:13 UTC.
INSIDE, OUTSIDE = [["0 14 * * *", "0 18 * * *", "UTC"]], [["0 18 * * *", "0 14 * * *", "UTC"]]


def test_an_absent_lease_outside_its_hours_is_expected_and_names_its_start(read: Any) -> None:
    """That the lease is absent is as declared then, so it is no failure."""
    stack = read(zone=ZONES[0], hours=OUTSIDE)
    assert stack.verdict == "off-hours"
    at = "2026-09-21 18:00 UTC"
    assert stack.reasons == (f"lease {NAME} is outside its hours: the next one is requested at {at}",)
    assert (stack.leases[0].is_in_hours, stack.leases[0].state) == (False, "absent")
    assert Status(stacks=(stack,)).exit_code == 0
    assert f"next start {at}" in Status(stacks=(stack,)).text()


def test_a_lease_that_is_not_there_in_its_hours_has_ended(read: Any) -> None:
    stack = read(zone=ZONES[0], hours=INSIDE)
    assert (stack.verdict, stack.leases[0].is_in_hours) == ("ended", True)
    assert Status(stacks=(stack,)).exit_code == 1


@pytest.mark.slow
def test_a_lease_that_runs_is_shown_whatever_its_hours(trial: LeaseHarness, read: Any) -> None:
    trial.run()
    stack = read(zone=ZONES[0], hours=OUTSIDE)
    assert (stack.leases[0].state, stack.reasons) == ("active", NO_GATEWAY)


@pytest.mark.slow
def test_a_lease_without_a_price_has_an_unknown_cost(trial: LeaseHarness, read: Any) -> None:
    trial.run()
    (lease,) = read(hourly_usd=dict.fromkeys(ZONES)).leases
    assert (lease.state, lease.usd_per_hour, lease.usd_so_far) == ("active", None, None)


GATEWAY = {
    "urn": "urn:g",
    "type": "gcp:cloudrunv2/service:Service",
    "custom": True,
    "id": SERVICE,
    "inputs": {"location": "us-east4", "name": "llm", "template": {"scaling": {"maxInstanceCount": 3}}},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "kept", "verdict"),
    [
        ([200] * 5, True, "ready"),
        ([503] * 5, True, "failing"),
        ([], True, "no-callers"),
        ([200] * 5, False, "ended"),  # they are those of before its end
        ([], False, "ended"),
    ],
)
def test_requests_to_the_gateway_decide_while_a_lease_serves(
    trial: LeaseHarness, tmp_path: Path, requests: list[int], kept: bool, verdict: str
) -> None:
    import os

    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    trial.run()
    if not kept:
        trial.world.now += 86_400
    server = trial.world.server
    environ = {
        **os.environ,
        "PULUMI_BACKEND_URL": f"file://{tmp_path}/state",
        "GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT": f"{server.url}/run/v2/",
        "GOOGLE_LOGGING_CUSTOM_ENDPOINT": f"{server.url}/logging/v2/",
        "GOOGLE_MONITORING_CUSTOM_ENDPOINT": f"{server.url}/monitoring/",
    }
    now = trial.world.now
    with Context(tmp_path, environ, clock=trial.world.clock, show=lambda _line: None) as context:
        deployment = Deployed(tmp_path, server, context, live={SERVICE: live_service()})
        deployment.requests = [logged_request(status, NOW - now + 30) for status in requests]
        server.set_clock(lambda: now)
        monitoring = Answer(json={})
        server.routes[:0] = [lambda call: monitoring if call.path.endswith("/timeSeries") else None, deployment.answer]
        resources = lease_resources(trial, zone=ZONES[0], active_at=rfc3339(START))
        deployment.keep("v6e4", state_of(GATEWAY, *resources))
        (stack,) = status(context, StatusArguments(stack="v6e4")).stacks
    assert stack.verdict == verdict
    assert Status(stacks=(stack,)).exit_code == (verdict not in {"ready", "no-callers"})
    assert stack.calls is not None
    assert stack.calls.number == len(requests)


def lease(name: str, **changes: Any) -> LeaseStatus:
    values = {
        "name": name, "zone": "z", "state": "active", "ends_at": None, "left_seconds": None, "usd_per_hour": None,
        "usd_so_far": None, "is_in_hours": None, "next_start": None, "container": "running", "serves": True,
        "ending": None,
    }  # fmt: skip
    return LeaseStatus(**{**values, **changes})


@pytest.mark.parametrize(
    "other",
    [{"state": "ended"}, {"state": "waiting"}, {"state": "failed"}, {"container": "exited"}, {"serves": False}],
)
def test_a_lease_that_serves_is_enough_where_callers_get_their_answers(other: dict[str, Any]) -> None:
    deployment = Deployment("fleet", {}, [GATEWAY])
    served = counted_calls([Call(NOW, 200, "", "llm-2")], window=600, now=NOW, read=("request log",))
    silent = counted_calls([], window=600, now=NOW, read=("request log", "Cloud Monitoring"))
    leases = [lease("a"), lease("b", **other)]
    verdict, reasons = verdict_of(deployment, live_service(), leases, served)
    assert verdict == "ready"
    assert "b" in reasons[0]
    assert verdict_of(deployment, live_service(), leases, silent)[0] != "no-callers"
    assert verdict_of(deployment, live_service(), leases[1:], served)[0] not in {"ready", "no-callers"}


def test_a_fallback_serves_while_no_lease_does_and_the_status_says_why() -> None:
    node = {
        "urn": "urn:b",
        "type": f"{KIND}:TpuNode",
        "custom": True,
        "id": "b",
        "inputs": {},
        "outputs": {"name": "a"},
    }
    other = service_resource() | {"id": f"{SERVICE}-fallback", "urn": "urn:fallback"}
    deployment = Deployment("fleet", {}, [other, GATEWAY, node])
    assert deployment.service is not None
    assert (deployment.service.has_gpu, deployment.fallback and deployment.fallback.name) == (False, "llm-fallback")
    served = counted_calls([Call(NOW, 200, "", "llm-2")], window=600, now=NOW, read=("request log",))
    verdict, reasons = verdict_of(deployment, live_service(), [lease("a", state="ended")], served)
    assert verdict == "ready"
    assert reasons[0] == "the fallback llm-fallback serves"
    assert "lease a is ended" in reasons[1]
    assert verdict_of(deployment, live_service(), [lease("a")], served) == ("ready", ())
    refused = node | {"outputs": {"name": "a", "state": "not granted"}}
    _, reasons = verdict_of(
        Deployment("fleet", {}, [other, GATEWAY, refused]), live_service(), [lease("a", state="absent")], served
    )
    assert reasons[1:] == ("lease a was not granted: `bezel deploy fleet` requests it again",)
    alone = Deployment("fleet", {}, [GATEWAY, node])
    assert alone.fallback is None
    assert verdict_of(alone, live_service(), [lease("a", state="ended")], served)[0] == "ended"
