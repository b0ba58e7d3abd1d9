"""`bezel tpu` against localcloud's own APIs at the wire: what it shows, what it deletes, and all that it leaves alone.

The embedded cloud runs in this process; its platform's waits pass thousands of times as fast as the clock.
"""

import io
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from bezel.leases.bodies import LeaseSpec, ZoneChoice, instance_body, queued_body
from bezel.leases.names import labels
from bezel.ops.cli import main
from tests.rest.fake_google import Answer, Call, Server, serving

sys.path.append(str(Path(__file__).parents[1] / "localcloud"))
from cloud_in_process import COMPUTE, PARENT, Clock, Project

pytestmark = pytest.mark.slow  # a whole cloud each
ZONE, OTHER, EMPTY = "us-east5-a", "europe-west4-a", "asia-northeast1-b"
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
HERE = ("--zone", ZONE, "--zone", OTHER)
SPEED = 6000.0
TPU = f"/tpu/v2alpha1/{PARENT}/locations"


class Passing(Clock):
    """The real time, and what a test lets pass besides."""

    def __init__(self) -> None:
        super().__init__(SPEED)
        self.time = 0.0

    def now(self) -> float:
        return time.time() + self.time


@dataclass
class Said:
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

    def tpu(self, *arguments: str) -> Said:
        self.server.calls.clear()
        self._capsys.readouterr()
        code = main(["tpu", *arguments])
        return Said(code, *self._capsys.readouterr())

    @property
    def written(self) -> list[str]:
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
            self.project.ok("POST", f"{COMPUTE}/zones/{zone}/instances", spec.request(choice))
        else:
            self.project.ok("POST", f"{TPU}/{zone}/queuedResources", spec.request(choice), queuedResourceId=name)
        self.settled(name, zone, vm=vm)

    def settled(self, name: str, zone: str, *, vm: bool = False, wanted: str = "") -> None:
        """Wait until a machine runs, or until its request is as wanted."""
        path = f"{COMPUTE}/zones/{zone}/instances/{name}" if vm else f"{TPU}/{zone}/queuedResources/{name}"
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = self.project.ok("GET", path)
            word = found["status"] if vm else found["state"]["state"]
            if word in ({wanted} if wanted else {"RUNNING", "ACTIVE", "FAILED"}):
                return
        raise AssertionError(f"{name} is {word}")

    def left(self) -> set[str]:
        """What there is in the zones of these tests, read from the cloud itself."""
        found = set()
        for zone in (ZONE, OTHER, EMPTY, "southamerica-west1-a"):
            for kind in ("queuedResources", "nodes"):
                rows = self.project.ok("GET", f"{TPU}/{zone}/{kind}").get(kind, [])
                found |= {row["name"].rpartition("/")[2] for row in rows}
            rows = self.project.ok("GET", f"{COMPUTE}/zones/{zone}/instances").get("items", [])
            found |= {row["name"] for row in rows}
        return found


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cloud]:
    project = Project(tmp_path, clock=Passing())
    network, _ = project.network()
    project.subnetwork(network, "europe-west4", "10.64.16.0/20")

    def forwarded(call: Call) -> Answer:
        found = project.call(call.method, call.path, call.json if call.body else None, **call.query)
        return Answer(found.status_code, text=found.text)

    with serving() as server:
        server.routes.append(forwarded)
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


def answered(monkeypatch: pytest.MonkeyPatch, line: str, then: Callable[[], None] = lambda: None) -> None:
    """Somebody sits at the terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, *_: Any) -> str:
            then()
            return line

    monkeypatch.setattr(sys, "stdin", Terminal())


def test_a_list_shows_every_lease_of_ours_over_both_apis_and_nobody_elses(cloud: Cloud) -> None:
    assert "no lease of ours" in cloud.tpu("list", *HERE).error
    cloud.lease("bezel-one")
    cloud.lease("bezel-two", vm=True)
    cloud.lease("research-box", ours=False)
    cloud.lease("research-vm", ours=False, vm=True)
    said = cloud.tpu("list")
    assert said.code == 0
    header, *rows = [line.split() for line in said.out.splitlines()]
    assert header == ["lease", "stack", "zone", "hardware", "state", "ends", "address"]
    assert [row[:6] for row in rows] == [
        ["bezel-one", "demo", ZONE, "v6e-1", "active", "(ACTIVE)"],
        ["bezel-two", "demo", ZONE, "ct6e-standard-1t", "active", "(RUNNING)"],
    ]
    assert cloud.written == []
    told = cloud.tpu("list", "--json", "--zone", ZONE).json
    assert [(one["name"], one["state"], one["labels"]["stack"]) for one in told] == [
        ("bezel-one", "active", "demo"),
        ("bezel-two", "active", "demo"),
    ]
    assert cloud.tpu("list", "--json", "--zone", OTHER).json == []


def test_zones_that_only_a_stack_file_names_are_looked_into_too(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: bezel\n")
    (folder / "Pulumi.odd.yaml").write_text("config:\n  bezel:lease: {zones: [{zone: us-west1-c}, 3, {}]}\n")
    (folder / "Pulumi.other.yaml").write_text("config:\n  bezel:lease: none\n")
    (folder / "Pulumi.a.dot.yaml").write_text("config:\n  bezel:lease: {zones: [{zone: us-west4-a}]}\n")
    (folder / "Pulumi.broken.yaml").write_text("config: {a: b")
    monkeypatch.chdir(folder)
    said = cloud.tpu("list")
    assert said.code == 0
    assert "zones that only the stack file of broken names are not looked into" in said.error
    asked = [call.path for call in cloud.server.calls]
    for zone, looked in ((ZONE, True), ("us-west1-c", True), ("us-west4-a", True), ("us-west1-b", False)):
        assert any(f"/{zone}/" in path for path in asked) is looked


def test_a_zone_that_cannot_be_asked_fails_the_list(cloud: Cloud) -> None:
    cloud.lease("bezel-one")
    broken = {"error": {"code": 403, "message": "Permission 'tpu.nodes.list' denied", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, broken) if f"{OTHER}/nodes" in call.path else None)
    said = cloud.tpu("list", *HERE)
    assert (said.code, said.out) == (1, "")
    assert "Permission 'tpu.nodes.list' denied" in said.error
    assert cloud.tpu("list", "--zone", ZONE).out.count("bezel-one") == 1


def test_an_api_that_the_project_has_not_enabled_has_no_leases_and_is_told(cloud: Cloud) -> None:
    cloud.lease("bezel-two", vm=True)
    cloud.project.cloud.store.delete("api", "tpu.googleapis.com")
    said = cloud.tpu("list", *HERE)
    assert said.code == 0
    assert "bezel-two" in said.out
    assert "has not enabled the API of queued_resource" in said.error


def test_a_description_holds_the_boot_and_the_console(cloud: Cloud) -> None:
    cloud.lease("bezel-two", vm=True)
    (told,) = cloud.tpu("describe", "bezel-two", *HERE).json
    assert (told["state"], told["kind"]) == ("active", "flex_start_vm")
    assert told["serial_output"] == ["booting", "ready"]
    assert cloud.written == []


@pytest.mark.parametrize("action", ["describe", "delete"])
def test_a_name_that_nothing_of_ours_has_is_told(cloud: Cloud, action: str) -> None:
    cloud.lease("research-box", ours=False)
    for name in ("bezel-none", "research-box"):
        said = cloud.tpu(action, name, *HERE, *(["--yes"] if action == "delete" else []))
        assert said.code == 1
        assert f"no lease of ours is called {name}" in said.error
        assert cloud.written == []


def test_a_sweep_deletes_what_failed_or_is_over_and_only_when_it_is_agreed_to(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.project.ok("POST", "/localcloud/faults", {"kind": "lease-stock-out", "parameters": {"zone": "europe-*"}})
    cloud.lease("bezel-failed", zone=OTHER)
    cloud.lease("research-failed", zone=OTHER, ours=False)
    cloud.lease("bezel-over")
    cloud.lease("research-over", ours=False)
    cloud.project.passes(14400 + 60)
    for name in ("bezel-over", "research-over"):
        cloud.settled(name, ZONE, wanted="SUSPENDED")
    cloud.lease("bezel-live", vm=True)
    before = cloud.left()
    assert before == {"bezel-failed", "research-failed", "bezel-over", "research-over", "bezel-live"}

    unasked = cloud.tpu("sweep", *HERE)
    assert unasked.code == 1
    assert "nobody can be asked here. Add --yes." in unasked.error
    assert {line.split()[0] for line in unasked.out.splitlines()[1:]} == {"bezel-failed", "bezel-over"}
    assert "it uses quota until it is deleted" in unasked.out
    answered(monkeypatch, "n\n")
    assert cloud.tpu("sweep", *HERE).code == 1
    assert cloud.written == []
    assert cloud.left() == before

    answered(monkeypatch, "y\n")
    done = cloud.tpu("sweep", *HERE)
    assert done.code == 0
    assert "2 of 2 are gone" in done.error
    assert cloud.left() == before - {"bezel-failed", "bezel-over"}
    again = cloud.tpu("sweep", *HERE, "--yes")
    assert (again.code, again.out) == (0, "")
    assert "nothing to sweep" in again.error


def test_a_sweep_of_a_stack_takes_everything_of_it_and_nothing_of_another(cloud: Cloud) -> None:
    cloud.lease("bezel-demo")
    cloud.lease("bezel-vm", vm=True)
    cloud.lease("bezel-other", stack="other")
    cloud.lease("research-demo", ours=False)
    said = cloud.tpu("sweep", *HERE, "--of-stack", "demo", "--yes", "--json")
    assert said.code == 0
    assert {(one["name"], one["why"]) for one in said.json} == {
        ("bezel-demo", "of the stack demo"),
        ("bezel-vm", "of the stack demo"),
    }
    assert cloud.left() == {"bezel-other", "research-demo"}


def test_what_was_leased_again_while_somebody_was_asked_is_left(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.lease("bezel-over")
    cloud.project.passes(14400 + 60)
    cloud.settled("bezel-over", ZONE, wanted="SUSPENDED")

    def renewed() -> None:
        assert cloud.tpu("delete", "bezel-over", *HERE, "--yes").code == 0
        cloud.lease("bezel-over")

    answered(monkeypatch, "y\n", renewed)
    said = cloud.tpu("sweep", *HERE)
    assert said.code == 1
    assert "bezel-over in us-east5-a is another one by now (ACTIVE)" in said.error
    assert cloud.left() == {"bezel-over"}


def test_a_lease_is_deleted_by_its_name(cloud: Cloud) -> None:
    cloud.lease("bezel-one")
    cloud.lease("bezel-one-more")
    assert cloud.tpu("delete", "bezel-one", *HERE).code == 1
    assert cloud.left() == {"bezel-one", "bezel-one-more"}
    assert cloud.tpu("delete", "bezel-one", *HERE, "--yes").code == 0
    assert cloud.left() == {"bezel-one-more"}


@pytest.mark.parametrize("vm", [False, True])
@pytest.mark.parametrize("changed", [{"bezel-lease": "another"}, {"stack": ""}])
def test_what_stays_is_never_said_to_be_gone(cloud: Cloud, changed: dict[str, str], vm: bool) -> None:
    """Labels that contradict a lease's own name: it is listed as one of ours, and nobody knows whose it is."""
    cloud.lease("bezel-odd", vm=vm, more=changed)
    said = cloud.tpu("delete", "bezel-odd", *HERE, "--yes")
    assert said.code == 1
    assert "0 of 1 are gone" in said.error
    assert "labels that no lease of this name has" in said.error
    assert "gcloud compute " in said.error
    assert cloud.left() == {"bezel-odd"}


@pytest.mark.parametrize("action", [("list",), ("sweep", "--yes"), ("delete", "bezel-one", "--yes")])
def test_a_zone_that_does_not_exist_is_an_error_and_not_an_empty_one(cloud: Cloud, action: tuple[str, ...]) -> None:
    cloud.lease("bezel-one")
    said = cloud.tpu(*action, "--zone", "mars", "--zone", ZONE)
    assert said.code == 1
    assert "no such zone: mars" in said.error
    assert "no lease of ours" not in said.error
    assert cloud.left() == {"bezel-one"}
    assert cloud.tpu("list", "--zone", EMPTY).code == 0


def rows(said: Said) -> dict[str, dict[str, str]]:
    assert said.code == 0, said.error
    return {row["zone"]: row for row in said.json}


def test_each_zone_has_its_hardware_model_quota_and_price_and_what_is_unknown_stays_so(cloud: Cloud) -> None:
    found = rows(cloud.tpu("find", "v6e4-moe", "--json"))
    assert cloud.written == []
    assert found[ZONE] == {
        "zone": ZONE,
        "hardware": "yes",
        "provisioning model": "taken",
        "quota": "32",
        "USD per hour": "5.40",
        "capacity now": "not asked (--probe)",
    }
    assert found["us-central1-b"]["provisioning model"] == "refused"
    assert found["southamerica-west1-a"]["USD per hour"] == "unknown"
    other = rows(cloud.tpu("find", "v6e4-moe", "--json", "--zone", "us-west1-c"))["us-west1-c"]
    assert (other["hardware"], other["provisioning model"], other["quota"]) == ("no", "not known", "not told")


def test_a_question_that_is_not_answered_leaves_the_other_columns(cloud: Cloud) -> None:
    error = {"error": {"code": 403, "message": "ask somebody else", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, error) if "quotaInfos" in call.path else None)
    said = cloud.tpu("find", "v6e4-moe", "--json", "--zone", ZONE, "--zone", OTHER)
    row = rows(said)[ZONE]
    assert row["quota"] == "? (403 PERMISSION_DENIED)"
    assert said.error == "bezel: ask somebody else\n"
    assert (row["hardware"], row["USD per hour"]) == ("yes", "5.40")


def test_a_probe_tells_capacity_is_bounded_and_leaves_nothing(cloud: Cloud) -> None:
    cloud.project.network("default")
    cloud.project.subnetwork(f"{PARENT}/global/networks/default", "asia-northeast1", "10.70.0.0/20")
    said = cloud.tpu("find", "v6e4-moe", "--probe", "--wait", "2h", "--json", "--zone", ZONE, "--zone", EMPTY)
    found = rows(said)
    assert "granted after" in found[ZONE]["capacity now"]
    assert "nothing granted in" in found[EMPTY]["capacity now"]
    assert f"{ZONE}: asking for one real v6e-4 that ends by itself after 10 min; USD at most: 0.90" in said.error
    assert cloud.left() == set()
    (asked,) = [call for call in cloud.server.calls if call.method == "POST" and ZONE in call.path]
    assert asked.json["runDuration"] == {"maxRunDuration": "600s"}
    assert asked.json["queueingPolicy"] == {"validUntilDuration": "7200s"}


def test_a_probe_uses_the_stacks_own_network_before_the_default_one(cloud: Cloud) -> None:
    cloud.project.network("default", cidr="10.70.0.0/20")
    cloud.project.network("bezel-v6e4-moe", cidr="10.71.0.0/20")
    row = rows(cloud.tpu("find", "v6e4-moe", "--probe", "--wait", "2h", "--json", "--zone", ZONE))[ZONE]
    assert "granted after" in row["capacity now"]
    (asked,) = [call for call in cloud.server.calls if call.method == "POST"]
    network = asked.json["tpu"]["nodeSpec"][0]["node"]["networkConfig"]
    assert network["subnetwork"] == f"{PARENT}/regions/us-east5/subnetworks/bezel-v6e4-moe-us-east5"


def test_a_machine_of_compute_engine_is_probed_likewise(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, root = tmp_path / "clone", Path(__file__).parents[2]
    clone.mkdir()
    shutil.copy(root / "Pulumi.yaml", clone)
    stack = yaml.safe_load((root / "Pulumi.v6e1-12b.yaml").read_text())
    stack["config"]["bezel:lease"]["back_end"] = "flex_start_vm"
    stack["config"]["bezel:network"] = {"nat": True}
    stack["config"]["gcp:project"] = PARENT.partition("/")[2]
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "the-stack-file-goes-first")
    (clone / "Pulumi.vm.yaml").write_text(yaml.safe_dump(stack))
    monkeypatch.chdir(clone)
    cloud.project.network("default", cidr="10.70.0.0/20")
    row = rows(cloud.tpu("find", "vm", "--probe", "--wait", "2h", "--json", "--zone", ZONE))[ZONE]
    assert (row["hardware"], row["quota"]) == ("yes", "32")
    assert "granted after" in row["capacity now"]
    assert cloud.left() == set()
    (asked,) = [call for call in cloud.server.calls if call.method == "POST"]
    assert asked.json["scheduling"]["maxRunDuration"] == {"seconds": "600"}
    assert asked.json["params"] == {"requestValidForDuration": {"seconds": "7200"}}


@pytest.mark.parametrize(("zone", "most"), [(ZONE, "0.23"), ("southamerica-west1-a", "unknown")])
def test_a_probe_of_a_fleet_is_one_machine_and_its_price_that_of_the_zone(cloud: Cloud, zone: str, most: str) -> None:
    region = zone.rpartition("-")[0]
    cloud.project.network("default", region=region, cidr="10.70.0.0/20")
    said = cloud.tpu("find", "v6e1-fleet", "--probe", "--wait", "2h", "--json", "--zone", zone)
    assert "granted after" in rows(said)[zone]["capacity now"]
    assert f"USD at most: {most}\n" in said.error


def test_without_any_network_nothing_is_asked_for_and_it_says_why(cloud: Cloud) -> None:
    said = cloud.tpu("find", "v6e4-moe", "--probe", "--wait", "2h", "--json", "--zone", ZONE)
    assert rows(said)[ZONE]["capacity now"].startswith("? (no network to ask for a machine in")
    assert "repair: probe while v6e4-moe is deployed" in said.error
    assert cloud.written == []


@pytest.mark.parametrize("wait", ["2x", "0s", "3h"])
def test_a_wait_that_is_none_is_refused_before_anything_is_asked(cloud: Cloud, wait: str) -> None:
    said = cloud.tpu("find", "v6e4-moe", "--probe", "--wait", wait)
    assert said.code == 1
    assert f"--wait {wait}: a probe waits 1s to 2h" in said.error
    assert cloud.server.calls == []


@pytest.mark.parametrize("action", [("list",), ("delete", "bezel-one", "--yes"), ("sweep", "--yes")])
def test_a_project_that_no_id_names_is_not_asked_for(cloud: Cloud, action: tuple[str, ...]) -> None:
    said = cloud.tpu(*action, "--project", "a b; rm")
    assert said.code == 1
    assert "'a b; rm' is no project's ID" in said.error
    assert cloud.server.calls == []


def test_a_stack_of_cloud_run_is_told_to_lease_nothing(cloud: Cloud) -> None:
    said = cloud.tpu("find", "l4-qat")
    assert said.code == 1
    assert "l4-qat leases nothing" in said.error
    assert cloud.server.calls == []
