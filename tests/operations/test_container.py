"""Start, stop and restart of leased machines' containers, against both lease APIs at the wire."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.leases.state.container import ATTRIBUTE
from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.confirmations import ConfirmationError, Confirmations
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.container.container import ContainerArguments, apply_container, plan_container
from bezel.operations.context import Context
from bezel.operations.results import utc
from bezel.rest import ApiError
from bezel_base.errors import UserError
from tests.support.leases.fake_lease_api import START, answers, error
from tests.support.leases.fake_machine import FakeMachine
from tests.support.leases.harness import NAME, STACK, ZONES, LeaseHarness, body_of
from tests.support.operations.deployed import service_resource, state_of

KIND = "pulumi-python:dynamic/components"
URL = "http://127.0.0.1:9"  # nobody listens there


class Machines:
    """A deployed stack with one lease, whose machine has booted."""

    def __init__(self, folder: Path, trial: LeaseHarness) -> None:
        self.folder, self.trial = folder, trial
        self.shown: list[str] = []
        self.cancelled = threading.Event()
        (folder / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
        trial.run()

    @property
    def machine(self) -> FakeMachine:
        return self.trial.world.zone(ZONES[0]).machine

    @property
    def attributes(self) -> dict[str, str]:
        (lease,) = self.trial.remaining()
        return lease.attributes

    def keep(self, *names: str) -> None:
        """The stack's state, with these leases."""
        file = self.folder / f"state/.pulumi/stacks/bezel/{STACK}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        zones = [{"zone": zone, "patience_seconds": 300} for zone in ZONES]
        asked = {"project": "acme", "zones": zones, "back_end": self.trial.kind}
        granted = {**asked, "zone": ZONES[0], "hourly_usd": {ZONES[0]: 5.4}, "active_at": None, "ends_at": None}
        resources = [
            {"urn": f"{name}/{type_}", "type": type_, "custom": True, "id": "a", "inputs": {}, "outputs": outputs}
            for name in names
            for type_, outputs in (
                (f"{KIND}:TpuRequest", {**asked, "name": name}),
                (f"{KIND}:TpuNode", {**granted, "name": name}),
            )
        ]
        file.write_text(json.dumps(state_of(*resources, url=URL)))

    def context(self) -> Context:
        environ = {**os.environ, "PULUMI_BACKEND_URL": f"file://{self.folder}/state"}
        clock = self.trial.world.clock
        return Context(self.folder, environ, clock=clock, show=self.shown.append, cancelled=self.cancelled)

    def plan(self, action: str, **more: Any) -> Plan:
        with self.context() as context:
            return plan_container(context, ContainerArguments(action=action, stack=STACK, wait="0s", **more))

    def apply(self, plan: Plan) -> Outcome:
        with self.context() as context:
            return apply_container(context, plan)

    def do(self, action: str) -> Outcome:
        return self.apply(self.plan(action))


@pytest.fixture
def machines(tmp_path: Path, trial: LeaseHarness) -> Iterator[Machines]:
    made = Machines(tmp_path, trial)
    made.keep(NAME)
    return made


@pytest.mark.slow
def test_a_stop_warns_of_the_lease_s_cost_and_waits_for_confirmation(
    machines: Machines,
) -> None:
    """The lease goes on and is billed while the container is stopped; nothing changes before the confirmation."""
    plan = machines.plan("stop")
    assert plan.summary == f"stop the container of {ZONES[0]}/{NAME} (running, serves)"
    billed, ends, callers, used = plan.warnings
    end = utc(START + 20 + 14400)
    assert end is not None
    assert billed.startswith(f"{ZONES[0]}/{NAME} is billed as before while it is stopped: 5.40 USD/h until 2026-")
    assert f"`pulumi destroy --stack {STACK}`" in ends
    assert callers == f"callers of {URL} get 503 until it is started"
    assert used.startswith("how many requests the server works on is unknown: ")
    assert plan.price is not None
    assert "->" not in plan.price
    assert plan.price_before == plan.price_after
    assert plan.lost == (f"{ZONES[0]}/{NAME}: the requests under way",)
    assert machines.attributes == {}
    assert machines.trial.calls("P") == machines.trial.calls("POST")[:1]


@pytest.mark.slow
def test_a_stop_needs_the_stack_s_name_and_a_start_does_not(machines: Machines) -> None:
    plan, confirmations = machines.plan("stop"), Confirmations()
    with pytest.raises(ConfirmationError, match="its name has to be repeated"):
        confirmations.take(confirmations.offer(plan, "a").token, "a", name="yes")
    assert machines.plan("restart").confirm_name is None
    machines.apply(plan)
    assert machines.plan("start").confirm_name is None


@pytest.mark.slow
def test_a_container_is_stopped_and_started_beside_unchanged_attributes(machines: Machines) -> None:
    before = dict(machines.trial.spec().body_in(machines.trial.spec().zones[0]))
    stopped = machines.do("stop")
    assert (stopped.verdict, stopped.problems) == ("done", ())
    assert stopped.details[0] == f"{ZONES[0]}/{NAME}: stopped; exited, exit code 137"
    assert f"`bezel container start {STACK}`" in stopped.details[1]
    assert {key: value for key, value in machines.attributes.items() if key != ATTRIBUTE} == {
        "bezel-image": "vllm@sha256:1", "startup-script": "#!/bin/bash"
    }  # fmt: skip
    began = machines.trial.world.now
    assert machines.do("start").details == (f"{ZONES[0]}/{NAME}: started; running, serves",)
    assert machines.trial.world.now - began >= machines.machine.load_seconds
    assert any("start: waiting for /health" in line and " left" in line for line in machines.shown)
    assert machines.do("restart").verdict == "done"
    (lease,) = machines.trial.remaining()
    asked = [json.loads(text) for _, text in lease.requests]
    assert [each["verb"] for each in asked] == ["stop", "start", "restart"]
    assert len({each["id"] for each in asked}) == 3
    # What was asked for is no part of the request, so a deploy leaves the lease as it is.
    assert before == dict(machines.trial.spec().body_in(machines.trial.spec().zones[0]))
    assert lease.labels["bezel-spec"] == machines.trial.spec().hash


@pytest.mark.slow
@pytest.mark.parametrize(("before", "action"), [(None, "start"), ("stop", "stop")])
def test_what_is_so_already_is_left_alone(machines: Machines, before: str | None, action: str) -> None:
    if before:
        machines.do(before)
    asked = dict(machines.attributes)
    plan = machines.plan(action)
    assert plan.is_empty
    assert plan.confirm_name is None
    assert plan.summary.startswith(f"nothing to {action}")
    assert machines.apply(plan).verdict == "unchanged"
    assert machines.attributes == asked


@pytest.mark.slow
def test_a_plan_is_refused_after_a_container_or_lease_has_changed(machines: Machines) -> None:
    plan = machines.plan("stop")
    machines.do("stop")
    asked = dict(machines.attributes)
    with pytest.raises(ChangedError, match="the machines and their containers"):
        machines.apply(plan)
    assert machines.attributes == asked


@pytest.mark.slow
def test_a_failed_start_has_the_machine_s_reason_and_exit_code(machines: Machines) -> None:
    machines.do("stop")
    machines.machine.failure = "vLLM ended with exit code 1 before it served, 3 restarts (ValueError: no memory)"
    outcome = machines.do("start")
    assert (outcome.verdict, outcome.exit_code, outcome.changes) == ("failed", 1, ())
    (problem,) = outcome.problems
    assert problem == f"{ZONES[0]}/{NAME}: started it was not: {machines.machine.failure}"


@pytest.mark.slow
def test_a_machine_that_takes_no_request_is_given_up_after_its_deadline(machines: Machines) -> None:
    machines.machine.is_deaf = True
    began = machines.trial.world.now
    outcome = machines.do("stop")
    assert outcome.verdict == "failed"
    assert "the machine has not taken the request yet" in outcome.problems[0]
    assert "`bezel tpu describe" in outcome.problems[0]
    assert 300 < machines.trial.world.now - began < 320


@pytest.mark.slow
def test_a_request_that_another_one_replaced_is_said_to_be_lost(machines: Machines) -> None:
    machines.machine.is_deaf = True

    def overwrite(line: str) -> None:
        machines.shown.append(line)
        machines.attributes[ATTRIBUTE] = json.dumps({"id": "1" * 32, "verb": "start"})

    plan = machines.plan("stop")
    with Context(
        machines.folder, machines.context().environ, clock=machines.trial.world.clock, show=overwrite
    ) as context:
        outcome = apply_container(context, plan)
    assert "another request has replaced this one" in outcome.problems[0]


@pytest.mark.slow
def test_a_lease_that_ends_meanwhile_is_not_awaited(machines: Machines) -> None:
    plan = machines.plan("stop")
    machines.machine.is_deaf = True
    machines.trial.world.zone(ZONES[0]).preempted_seconds = machines.trial.world.now - START + 30
    outcome = machines.apply(plan)
    assert "its lease ended meanwhile" in outcome.problems[0]


@pytest.mark.slow
def test_what_google_refuses_is_told_and_what_passes_is_repeated(machines: Machines) -> None:
    path = "setMetadata" if machines.trial.kind == "flex_start_vm" else f"/nodes/{NAME}"
    method = "POST" if machines.trial.kind == "flex_start_vm" else "PATCH"
    machines.trial.world.faults.append(answers(1, error(503, "later"), method=method, path=path))
    assert machines.do("stop").verdict == "done"
    permission = "Permission 'tpu.nodes.update' denied on resource"
    machines.trial.world.faults.append(answers(1, error(403, permission), method=method, path=path))
    outcome = machines.do("start")
    assert (outcome.verdict, outcome.changes) == ("failed", ())
    assert permission in outcome.problems[0]


@pytest.mark.slow
def test_metadata_that_another_caller_changed_meanwhile_is_read_again(machines: Machines) -> None:
    faults = machines.trial.world.faults
    faults.append(answers(2, error(412, "Supplied fingerprint does not match"), path="setMetadata"))
    assert machines.do("stop").verdict == "done"
    faults.append(answers(99, error(412, "Supplied fingerprint does not match"), path="setMetadata"))
    outcome = machines.do("start")
    if machines.trial.kind == "flex_start_vm":
        assert "does not match" in outcome.problems[0]
    else:
        assert outcome.verdict == "done"  # the TPU API has no fingerprints


@pytest.mark.slow
def test_a_caller_that_gives_up_takes_nothing_back(machines: Machines) -> None:
    plan = machines.plan("stop")
    machines.cancelled.set()
    with pytest.raises(UserError, match="nothing was changed"):
        machines.apply(plan)
    assert machines.attributes == {}
    machines.cancelled.clear()

    def give_up(_: str) -> None:
        machines.cancelled.set()

    environ, clock = machines.context().environ, machines.trial.world.clock
    with Context(machines.folder, environ, clock=clock, show=give_up, cancelled=machines.cancelled) as context:
        outcome = apply_container(context, plan)
    assert (outcome.verdict, outcome.exit_code) == ("cancelled", 130)
    assert "the machine does what it was asked for nevertheless" in outcome.problems[0]
    machines.trial.world.now += 10
    machines.cancelled.clear()
    assert machines.plan("stop").is_empty


OTHER = f"{NAME}-1"


@pytest.fixture
def fleet(machines: Machines) -> Machines:
    """The stack with two machines."""
    spec = machines.trial.spec()
    machines.trial.run(spec=replace(spec, name=OTHER, body=body_of(machines.trial.kind, name=OTHER)))
    machines.keep(NAME, OTHER)
    return machines


@pytest.mark.slow
def test_machines_of_a_fleet_restart_one_after_the_other(fleet: Machines) -> None:
    """The next machine restarts once the one before it serves again."""
    plan = fleet.plan("restart")
    assert [change.name for change in plan.changes] == [f"{ZONES[0]}/{NAME}", f"{ZONES[0]}/{OTHER}"]
    assert [text for text in plan.warnings if "503" in text] == []  # the other machine serves
    assert len(fleet.apply(plan).changes) == 2
    first, second = (lease.requests[0][0] for lease in fleet.trial.remaining())
    assert second - first >= fleet.machine.load_seconds
    assert any("503" in text for text in fleet.plan("stop").warnings)


@pytest.mark.slow
def test_a_fleet_whose_first_machine_fails_keeps_the_others_as_they_are(fleet: Machines) -> None:
    fleet.machine.failure = "vLLM ended with exit code 1"
    outcome = fleet.do("restart")
    assert (outcome.verdict, outcome.changes) == ("failed", ())
    assert outcome.problems[1] == f"not asked: {ZONES[0]}/{OTHER}"
    assert [len(lease.requests) for lease in fleet.trial.remaining()] == [1, 0]


@pytest.mark.slow
def test_one_machine_of_a_fleet_is_stopped_by_its_name(
    fleet: Machines,
) -> None:
    """A start is then for the machine that does not run, and a stop for the other one."""
    plan = fleet.plan("stop", lease=OTHER)
    assert plan.confirm_name == OTHER
    assert [text for text in plan.warnings if "503" in text] == []  # the other machine may serve
    outcome = fleet.apply(plan)
    assert f"`bezel container start {STACK} --lease {OTHER}`" in outcome.details[1]
    assert [change.name for change in fleet.plan("start").changes] == [f"{ZONES[0]}/{OTHER}"]
    assert [change.name for change in fleet.plan("stop").changes] == [f"{ZONES[0]}/{NAME}"]
    assert [len(lease.requests) for lease in fleet.trial.remaining()] == [0, 1]


REFUSALS = {
    "preempted": (
        lambda zone: setattr(zone, "preempted_seconds", 40.0),
        "there is no container",
        "lease: {renew: true}",
    ),
    "booting": (lambda zone: setattr(zone, "boot_seconds", 10**5), "its boot has not come to its end", "tpu describe"),
    "earlier": (lambda zone: setattr(zone.machine, "is_silent", True), "of an earlier release", "`bezel deploy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSALS)
def test_a_machine_that_cannot_take_a_request_is_refused_with_what_to_do(machines: Machines, name: str) -> None:
    spoil, consequence, repair = REFUSALS[name]
    if name == "booting":  # its script is the present one
        (lease,) = machines.trial.remaining()
        lease.attributes = {"startup-script": f"# {ATTRIBUTE}"}
        machines.trial.world.zone(ZONES[0]).machine.is_silent = True
    spoil(machines.trial.world.zone(ZONES[0]))
    machines.trial.world.now += 60
    with pytest.raises(UserError) as caught:
        machines.plan("stop")
    assert consequence in str(caught.value)
    assert repair in str(caught.value)


@pytest.mark.slow
def test_a_stack_without_machines_and_a_lease_of_another_name_are_refused(machines: Machines) -> None:
    with pytest.raises(UserError, match=f"choose one of {NAME}"):
        machines.plan("stop", lease="bezel-other")
    file = machines.folder / f"state/.pulumi/stacks/bezel/{STACK}.json"
    file.write_text(json.dumps(state_of(service_resource())))
    with pytest.raises(UserError, match=f"`bezel restart {STACK}` makes a new revision"):
        machines.plan("stop")


@pytest.mark.slow
def test_a_request_for_a_lease_that_is_not_the_stack_s_is_not_made(machines: Machines) -> None:
    (lease,) = machines.trial.remaining()
    lease.labels["stack"] = "another"
    node = lease.body["tpu"]["nodeSpec"][0]["node"] if "tpu" in lease.body else lease.body
    node["labels"]["stack"] = "another"
    with pytest.raises(UserError, match="absent from its zones"):
        machines.plan("stop")


@pytest.mark.slow
def test_a_zone_that_cannot_be_read_is_an_error(machines: Machines) -> None:
    machines.trial.world.faults.append(answers(99, error(403, "Permission 'x.get' denied")))
    with pytest.raises(ApiError, match="denied"):
        machines.plan("stop")
