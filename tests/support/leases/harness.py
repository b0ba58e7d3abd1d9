"""One back end over a `FakeLeaseApi`: what a test of leases asks for, how it runs the engine, and what is left."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bezel.leases.controller import LeaseController
from bezel.leases.inventory import back_end_of, new_client
from bezel.leases.names import labels
from bezel.leases.requests import LeaseSpec, ZoneChoice, instance_body, queued_body
from bezel.leases.state.observation import DesiredState, Goal

if TYPE_CHECKING:
    import pytest

    from bezel.leases.requests import BackEndName
    from bezel.leases.state.observation import Observation
    from tests.support.leases.fake_lease_api import FakeLeaseApi, Lease

NAME, STACK = "bezel-v6e4", "v6e4"
ZONES = ("us-east5-a", "europe-west4-a")
SUBNETWORKS = {
    "us-east5": "projects/acme/regions/us-east5/subnetworks/s",
    "europe-west4": "projects/acme/regions/europe-west4/subnetworks/s",
    "asia-northeast1": "projects/acme/regions/asia-northeast1/subnetworks/s",
}
PATIENCE = 300.0
RUN = 14400
ACCOUNT = "vllm@acme.iam.gserviceaccount.com"
TOKEN = "GOOGLE_OAUTH_ACCESS_TOKEN"


def body_of(back_end: str, *, image: str = "vllm@sha256:1", name: str = NAME, stack: str = STACK) -> dict[str, Any]:
    """A small body; another image makes it another lease."""
    metadata = {"bezel-image": image, "startup-script": "#!/bin/bash"}
    common: dict[str, Any] = {
        "labels": labels(name, stack, {"app": "vllm"}),
        "metadata": metadata,
        "service_account": ACCOUNT,
        "run_seconds": RUN,
        "tags": ("bezel-node",),
    }
    if back_end == "queued_resource":
        return queued_body(name, accelerator_type="v6e-4", runtime_version="v2-alpha-tpuv6e", **common)
    image = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
    return instance_body(machine_type="ct6e-standard-4t", source_image=image, **common)


@dataclass
class LeaseHarness:
    """A back end, its world, and what was shown.

    Attributes:
        lines: Each line that a run showed.
    """

    world: FakeLeaseApi
    kind: BackEndName
    lines: list[str] = field(default_factory=list)

    def spec(self, *, zones: tuple[str, ...] = ZONES, image: str = "vllm@sha256:1", **more: Any) -> LeaseSpec:
        patience = more.pop("patience", PATIENCE)
        return LeaseSpec(
            project="acme",
            name=NAME,
            stack=more.pop("stack", STACK),
            back_end=self.kind,
            zones=tuple(ZoneChoice(zone, patience) for zone in zones),
            subnetworks=SUBNETWORKS,
            body=body_of(self.kind, image=image),
            **more,
        )

    def run(
        self, goal: Goal = Goal.HEALTHY, spec: LeaseSpec | None = None, slack: float = 0.0, **wanted: Any
    ) -> Observation | None:
        clock = replace(self.world.clock, slack=slack)
        with new_client(clock) as client:
            engine = LeaseController(back_end_of(self.kind, client, "acme"), clock, self.lines.append)
            hourly = {"us-east5-a": 5.4}
            return engine.run(DesiredState(spec or self.spec(), goal, **{"hourly_usd": hourly, **wanted}))

    def remaining(self) -> list[Lease]:
        """What is there or still to come; Compute deletes by itself what failed and what ended."""
        gone = set() if self.kind == "queued_resource" else {"failed", "ended"}
        return [one for one in self.world.pending() if self.world.phase_of(one)[0] not in gone]

    def calls(self, method: str = "") -> list[str]:
        """Every call so far of a method, `METHOD zone`."""
        lines = [line for _, line in self.world.log if line.startswith(method)]
        return [line for line in lines if ":getGuestAttributes" not in line]


def point_at(world: FakeLeaseApi, monkeypatch: pytest.MonkeyPatch, caller: str = "planted-token-0") -> None:
    """An environment that leads to a world, as a caller of that name."""
    monkeypatch.setenv("GOOGLE_TPU_V2ALPHA1_CUSTOM_ENDPOINT", f"{world.server.url}/tpu/v2alpha1/")
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{world.server.url}/compute/v1/")
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT", f"{world.server.url}/cloudquotas/v1/")
    monkeypatch.setenv(TOKEN, caller)


def become(token: str) -> None:
    """Another caller from now on, in an environment that leads somewhere already."""
    os.environ[TOKEN] = token
