"""Leases on localcloud's own APIs, over their wire: two views of Google's behaviour that know nothing of each other.

The embedded cloud runs in this process on a clock that only waiting moves; it holds every request and every answer
against Google's discovery documents, and what is left is read from its inventory.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bezel.leases.clock import PlatformClock
from bezel.leases.controller import LeaseController
from bezel.leases.inventory import LeaseInventory, back_end_of, new_client, sweep_plan
from bezel.leases.names import labels
from bezel.leases.requests import LeaseSpec, ZoneChoice, instance_body, queued_body
from bezel.leases.state.observation import PHASES, DesiredState, Goal, State
from localcloud_support.in_process import PARENT, Project
from tests.support.rest.fake_google import Answer, Call, serving

pytestmark = pytest.mark.slow  # a whole cloud each
FIRST, SECOND = "us-east5-a", "southamerica-west1-a"
REGIONS = ("us-east5", "southamerica-west1")
NAME, STACK = "bezel-v6e4", "v6e4"
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"


@dataclass
class Leased:
    """A lease on a localcloud."""

    project: Project
    kind: Any
    lines: list[str]

    def __post_init__(self) -> None:
        self.clock = PlatformClock(now=self.project.clock.now, pause=self.project.passes)
        common: dict[str, Any] = {
            "labels": labels(NAME, STACK),
            "metadata": {"bezel-port": "8000", "enable-guest-attributes": "TRUE"},
            "service_account": "default",
            "run_seconds": 14400,
            "tags": ("bezel-node",),
        }
        made = {
            "queued_resource": lambda: queued_body(
                NAME, accelerator_type="v6e-4", runtime_version="v2-alpha-tpuv6e", **common
            ),
            "flex_start_vm": lambda: instance_body(machine_type="ct6e-standard-4t", source_image=IMAGE, **common),
        }
        self.spec = LeaseSpec(
            PARENT.partition("/")[2],
            NAME,
            STACK,
            self.kind,
            (ZoneChoice(FIRST, 1800.0), ZoneChoice(SECOND, 1800.0)),
            {region: f"{PARENT}/regions/{region}/subnetworks/net-{region}" for region in REGIONS},
            made[self.kind](),
        )

    def run(self, goal: Goal, **wanted: Any) -> Any:
        with new_client(self.clock) as client:
            back_end = back_end_of(self.kind, client, self.spec.project)
            return LeaseController(back_end, self.clock, self._show).run(DesiredState(self.spec, goal, **wanted))

    def _show(self, line: str) -> None:
        """The node gets healthy while it is waited for."""
        self.lines.append(line)
        done = json.dumps({"state": "done", "at": self.clock.now(), "detail": ""})
        for name in self.project.nodes.running:
            self.project.nodes.attributes[name] = {f"bezel/{phase}": done for phase in PHASES}

    def remaining(self) -> list[Any]:
        with new_client(self.clock) as client:
            return LeaseInventory(client, self.clock, self.spec.project, (FIRST, SECOND)).list()


@pytest.fixture(params=["queued_resource", "flex_start_vm"])
def leases(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leased]:
    project = Project(tmp_path)
    network, _ = project.network()
    project.subnetwork(network, REGIONS[1], "10.64.16.0/20")

    def forward(call: Call) -> Answer:
        answer = project.call(call.method, call.path, call.json if call.body else None, **call.query)
        return Answer(answer.status_code, text=answer.text)

    with serving() as server:
        server.routes.append(forward)
        monkeypatch.setenv("GOOGLE_TPU_V2ALPHA1_CUSTOM_ENDPOINT", f"{server.url}/tpu/v2alpha1/")
        monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{server.url}/compute/v1/")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "planted-token-0")
        yield Leased(project, request.param, [])
    project.close()


def test_a_lease_goes_its_whole_way(leases: Leased) -> None:
    got = leases.run(Goal.HEALTHY)
    assert (got.zone, got.state, got.address.startswith("127.64.")) == (FIRST, State.ACTIVE, True)
    assert got.ends_at == pytest.approx(got.active_at + 14400, abs=1)
    assert [one.zone for one in leases.remaining()] == [FIRST]
    leases.run(Goal.GONE)
    assert leases.remaining() == []
    assert leases.project.nodes.running == {}


def test_after_a_stock_out_it_is_in_the_next_zone_and_nowhere_else(leases: Leased) -> None:
    leases.project.ok("POST", "/localcloud/faults", {"kind": "lease-stock-out", "parameters": {"zone": "us-east5-*"}})
    got = leases.run(Goal.HEALTHY)
    assert got.zone == SECOND
    assert [one.zone for one in leases.remaining()] == [SECOND]


def test_after_a_refusal_it_is_in_the_next_zone_and_nowhere_else(leases: Leased) -> None:
    leases.project.ok("POST", "/localcloud/faults", {"kind": "lease-zone-refused", "parameters": {"zone": FIRST}})
    got = leases.run(Goal.HEALTHY)
    assert got.zone == SECOND
    assert [one.zone for one in leases.remaining()] == [SECOND]


def test_a_lease_that_ended_is_not_bought_again_unasked_and_is_swept(leases: Leased) -> None:
    leases.run(Goal.HEALTHY)
    leases.project.passes(14400 + 600)
    assert leases.run(Goal.HEALTHY, may_request=False) is None
    with new_client(leases.clock) as client:
        fleet = LeaseInventory(client, leases.clock, leases.spec.project, (FIRST, SECOND))
        plan = sweep_plan(fleet.list(), now=leases.clock.now())
        assert len(plan) == (1 if leases.kind == "queued_resource" else 0)
        assert fleet.sweep(plan) == {}
        assert fleet.list() == []
