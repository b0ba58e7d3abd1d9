"""An embedded cloud in this process, and `bezel tpu` on it at the wire."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bezel.cli.main import main
from bezel.leases.names import labels
from bezel.leases.requests import LeaseSpec, ZoneChoice, instance_body, queued_body
from localcloud_support.in_process import COMPUTE, PARENT, Clock, Project
from tests.support.rest.fake_google import Answer, Call, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pytest

ZONE, OTHER, EMPTY = "us-east5-a", "europe-west4-a", "asia-northeast1-b"
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
HERE = ("--zone", ZONE, "--zone", OTHER)
SPEED = 6000.0
TPU = f"/tpu/v2alpha1/{PARENT}/locations"


class PassingClock(Clock):
    """The real time, and what a test lets pass besides."""

    def __init__(self) -> None:
        super().__init__(SPEED)
        self.time = 0.0

    def now(self) -> float:
        return time.time() + self.time


@dataclass
class ProgressLog:
    """How a command ended."""

    code: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cloud:
    """An embedded cloud, and the command on it."""

    def __init__(self, project: Project, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
        self.project, self.server, self._capsys = project, server, capsys

    def tpu(self, *arguments: str) -> ProgressLog:
        self.server.calls.clear()
        self._capsys.readouterr()
        code = main(["tpu", *arguments])
        return ProgressLog(code, *self._capsys.readouterr())

    @property
    def changing_calls(self) -> list[str]:
        """What was asked of the cloud beyond looking."""
        return [f"{call.method} {call.path}" for call in self.server.calls if call.method != "GET"]

    def lease(
        self,
        name: str,
        *,
        stack: str = "demo",
        zone: str = ZONE,
        vm: bool = False,
        ours: bool = True,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """A request as a stack sends it; one that is not ours differs in its labels only, as does one with `more`."""
        common: dict[str, Any] = {
            "labels": {**(labels(name, stack) if ours else {"team": "research", "stack": stack}), **more},
            "metadata": {},
            "service_account": "default",
            "run_seconds": 14400,
        }
        body = (
            instance_body(machine_type="ct6e-standard-1t", source_image=IMAGE, **common)
            if vm
            else queued_body(name, accelerator_type="v6e-1", runtime_version="v2-alpha-tpuv6e", **common)
        )
        region = zone.rpartition("-")[0]
        subnetworks = {region: f"{PARENT}/regions/{region}/subnetworks/net-{region}"}
        back_end: Any = "flex_start_vm" if vm else "queued_resource"
        choice = ZoneChoice(zone, 3600.0)
        spec = LeaseSpec(PARENT.partition("/")[2], name, stack, back_end, (choice,), subnetworks, body)
        if vm:
            self.project.ok("POST", f"{COMPUTE}/zones/{zone}/instances", spec.body_in(choice))
        else:
            self.project.ok("POST", f"{TPU}/{zone}/queuedResources", spec.body_in(choice), queuedResourceId=name)
        self.wait_until_settled(name, zone, vm=vm)

    def wait_until_settled(self, name: str, zone: str, *, vm: bool = False, wanted: str = "") -> None:
        """Wait until a machine runs, or until its request is as wanted."""
        path = f"{COMPUTE}/zones/{zone}/instances/{name}" if vm else f"{TPU}/{zone}/queuedResources/{name}"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            machine = self.project.ok("GET", path)
            word = machine["status"] if vm else machine["state"]["state"]
            if word in ({wanted} if wanted else {"RUNNING", "ACTIVE", "FAILED"}):
                return
        raise AssertionError(f"{name} is {word}")

    def remaining_names(self) -> set[str]:
        """What there is in the zones of these tests, read from the cloud itself."""
        names = set()
        for zone in (ZONE, OTHER, EMPTY, "southamerica-west1-a"):
            for kind in ("queuedResources", "nodes"):
                rows = self.project.ok("GET", f"{TPU}/{zone}/{kind}").get(kind, [])
                names |= {row["name"].rpartition("/")[2] for row in rows}
            rows = self.project.ok("GET", f"{COMPUTE}/zones/{zone}/instances").get("items", [])
            names |= {row["name"] for row in rows}
        return names


@contextmanager
def running(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cloud]:
    """One with a network in two regions; what the command asks Google goes there."""
    project = Project(folder, clock=PassingClock(), default_network=False)
    network, _ = project.network()
    project.subnetwork(network, "europe-west4", "10.64.16.0/20")

    def forward(call: Call) -> Answer:
        answer = project.call(call.method, call.path, call.json if call.body else None, **call.query)
        return Answer(answer.status_code, text=answer.text)

    with serving() as server:
        server.routes.append(forward)
        for name, path in (
            ("TPU_V2ALPHA1", "tpu/v2alpha1"), ("COMPUTE", "compute/v1"), ("CLOUD_QUOTAS", "cloudquotas/v1"),
        ):  # fmt: skip
            monkeypatch.setenv(f"GOOGLE_{name}_CUSTOM_ENDPOINT", f"{server.url}/{path}/")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "planted-token-0")
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", PARENT.partition("/")[2])
        monkeypatch.setenv("BEZEL_SPEED", str(SPEED))
        project.cloud.store.put("api", "cloudquotas.googleapis.com", {"state": "ENABLED"})
        yield Cloud(project, server, capsys)
    project.close()
