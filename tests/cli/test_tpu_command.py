"""`bezel tpu` against localcloud's own APIs at the wire: what it shows, what it deletes, and all that it leaves alone.

The embedded cloud runs in this process; its platform's waits pass thousands of times as fast as the clock.
"""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bezel.operations.schemas import schemas_of
from tests.support.cli.tpu_cloud import EMPTY, HERE, OTHER, ZONE, Cloud
from tests.support.operations.lease_cloud import LeaseCloud
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a whole cloud each


def answer_terminal(monkeypatch: pytest.MonkeyPatch, line: str, then: Callable[[], None] = lambda: None) -> None:
    """Somebody sits at the terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, *_: Any) -> str:
            then()
            return line

    monkeypatch.setattr(sys, "stdin", Terminal())


def test_a_list_shows_every_lease_of_ours_over_both_apis_and_nobody_elses(cloud: Cloud) -> None:
    assert "no leases of this program" in cloud.tpu("list", *HERE).out
    cloud.lease("bezel-one")
    cloud.lease("bezel-two", vm=True)
    cloud.lease("research-box", ours=False)
    cloud.lease("research-vm", ours=False, vm=True)
    result = cloud.tpu("list")
    assert result.code == 0
    header, *rows = [line.split() for line in result.out.splitlines()]
    assert header == ["lease", "stack", "zone", "hardware", "state", "ends", "USD", "per", "hour", "address"]
    assert [row[:6] for row in rows] == [
        ["bezel-one", "demo", ZONE, "v6e-1", "active", "(ACTIVE)"],
        ["bezel-two", "demo", ZONE, "ct6e-standard-1t", "active", "(RUNNING)"],
    ]
    assert cloud.changing_calls == []
    listed = cloud.tpu("list", "--json", "--zone", ZONE).json
    assert [(lease["name"], lease["state"], lease["stack"]) for lease in listed["leases"]] == [
        ("bezel-one", "active", "demo"),
        ("bezel-two", "active", "demo"),
    ]
    Draft202012Validator(schemas_of("tpu_list")["result"]).validate(listed)
    assert cloud.tpu("list", "--json", "--zone", OTHER).json["leases"] == []


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
    result = cloud.tpu("list")
    assert result.code == 0
    assert "zones that only the stack file of broken names are not searched" in result.out
    asked = [call.path for call in cloud.server.calls]
    for zone, looked in ((ZONE, True), ("us-west1-c", True), ("us-west4-a", True), ("us-west1-b", False)):
        assert any(f"/{zone}/" in path for path in asked) is looked


def test_a_zone_that_cannot_be_asked_fails_the_list(cloud: Cloud) -> None:
    cloud.lease("bezel-one")
    broken = {"error": {"code": 403, "message": "Permission 'tpu.nodes.list' denied", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, broken) if f"{OTHER}/nodes" in call.path else None)
    result = cloud.tpu("list", *HERE)
    assert (result.code, result.out) == (1, "")
    assert "Permission 'tpu.nodes.list' denied" in result.error
    assert cloud.tpu("list", "--zone", ZONE).out.count("bezel-one") == 1


def test_an_api_that_is_not_enabled_has_no_leases_and_is_reported(cloud: Cloud) -> None:
    cloud.lease("bezel-two", vm=True)
    cloud.project.cloud.store.delete("api", "tpu.googleapis.com")
    result = cloud.tpu("list", *HERE)
    assert result.code == 0
    assert "bezel-two" in result.out
    assert "has not enabled the API of queued_resource" in result.out


def test_a_description_holds_the_boot_and_the_console_and_no_credential(cloud: Cloud) -> None:
    """A machine's console is text from outside: a token in it is hidden here."""
    token = "hf_" + "a" * 30
    cloud.lease("bezel-two", vm=True)
    console = {"contents": f"booting\nHF_TOKEN={token}\n\x1b[31mready", "next": "1"}
    cloud.server.routes.insert(0, lambda call: Answer(200, console) if "serialPort" in call.path else None)
    result = cloud.tpu("describe", "bezel-two", *HERE, "--json")
    Draft202012Validator(schemas_of("tpu_describe")["result"]).validate(result.json)
    (described,) = result.json["leases"]
    assert (described["lease"]["state"], described["lease"]["kind"]) == ("active", "flex_start_vm")
    assert (described["console"][0], described["console"][-1]) == ("booting", "ready")
    shown = cloud.tpu("describe", "bezel-two", *HERE)
    assert shown.out.startswith(f"bezel-two in {ZONE}\n")
    for text in (result.out, shown.out):
        assert token not in text
        assert "\x1b" not in text
        assert "[redacted]" in text
    assert cloud.changing_calls == []


@pytest.mark.parametrize("action", ["describe", "delete"])
def test_a_name_that_nothing_of_ours_has_is_reported(cloud: Cloud, action: str) -> None:
    cloud.lease("research-box", ours=False)
    for name in ("bezel-none", "research-box"):
        result = cloud.tpu(action, name, *HERE, *(["--name", name] if action == "delete" else []))
        assert result.code == 1
        assert f"NAME = {name}\n   these zones contain no such lease" in result.error
        assert cloud.changing_calls == []


def test_a_sweep_deletes_failed_or_ended_leases_once_confirmed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that runs, and those of others, stay."""
    cloud.project.ok("POST", "/localcloud/faults", {"kind": "lease-stock-out", "parameters": {"zone": "europe-*"}})
    cloud.lease("bezel-failed", zone=OTHER)
    cloud.lease("research-failed", zone=OTHER, ours=False)
    cloud.lease("bezel-over")
    cloud.lease("research-over", ours=False)
    cloud.project.passes(14400 + 60)
    for name in ("bezel-over", "research-over"):
        cloud.wait_until_settled(name, ZONE, wanted="SUSPENDED")
    cloud.lease("bezel-live", vm=True)
    before = cloud.remaining_names()
    assert before == {"bezel-failed", "research-failed", "bezel-over", "research-over", "bezel-live"}

    unasked = cloud.tpu("sweep", *HERE)
    assert unasked.code == 1
    assert "there is no terminal to confirm it" in unasked.error
    assert {line.split()[0] for line in unasked.out.splitlines()[1:]} == {"bezel-failed", "bezel-over"}
    assert "it uses quota until it is deleted" in unasked.out
    answer_terminal(monkeypatch, "n\n")
    assert cloud.tpu("sweep", *HERE).code == 1
    assert cloud.changing_calls == []
    assert cloud.remaining_names() == before

    answer_terminal(monkeypatch, "y\n")
    done = cloud.tpu("sweep", *HERE)
    assert done.code == 0
    assert "2 of 2 deleted" in done.error
    assert cloud.remaining_names() == before - {"bezel-failed", "bezel-over"}
    again = cloud.tpu("sweep", *HERE, "--yes")
    assert (again.code, again.out) == (0, "")
    assert "nothing to delete" in again.error


def test_a_sweep_of_a_stack_takes_everything_of_it_and_nothing_of_another(cloud: Cloud) -> None:
    cloud.lease("bezel-demo")
    cloud.lease("bezel-vm", vm=True)
    cloud.lease("bezel-other", stack="other")
    cloud.lease("research-demo", ours=False)
    result = cloud.tpu("sweep", *HERE, "--of-stack", "demo", "--yes", "--json")
    assert result.code == 0
    assert {(one["name"], one["why"]) for one in result.json} == {
        ("bezel-demo", "of the stack demo"),
        ("bezel-vm", "of the stack demo"),
    }
    assert cloud.remaining_names() == {"bezel-other", "research-demo"}


def test_what_was_leased_again_while_somebody_was_asked_is_left(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.lease("bezel-over")
    cloud.project.passes(14400 + 60)
    cloud.wait_until_settled("bezel-over", ZONE, wanted="SUSPENDED")

    def renew() -> None:
        assert cloud.tpu("delete", "bezel-over", *HERE, "--name", "bezel-over").code == 0
        cloud.lease("bezel-over")

    answer_terminal(monkeypatch, "y\n", renew)
    result = cloud.tpu("sweep", *HERE)
    assert result.code == 1
    assert "it is another lease than the one that was confirmed" in result.error
    assert cloud.remaining_names() == {"bezel-over"}


def test_a_lease_is_deleted_only_by_its_name(cloud: Cloud) -> None:
    cloud.lease("bezel-one")
    cloud.lease("bezel-one-more")
    for unconfirmed in ((), ("--yes",), ("--name", "bezel-one-more")):
        result = cloud.tpu("delete", "bezel-one", *HERE, *unconfirmed)
        assert (result.code, cloud.changing_calls) == (3, [])
        assert "nothing was changed" in result.error
    assert cloud.remaining_names() == {"bezel-one", "bezel-one-more"}
    done = cloud.tpu("delete", "bezel-one", *HERE, "--name", "bezel-one", "--json")
    assert (done.code, done.json["outcome"]["verdict"]) == (0, "done")
    assert cloud.remaining_names() == {"bezel-one-more"}


def test_a_lease_without_a_stack_is_requested_once_confirmed(cloud: Cloud) -> None:
    account = LeaseCloud(cloud).account  # made in the cloud
    arguments = (
        "create",
        "dev-one",
        "--hardware",
        "v6e-1",
        "--zone",
        ZONE,
        "--network",
        "net",
        "--service-account",
        account,
    )
    unasked = cloud.tpu(*arguments)
    assert (unasked.code, cloud.remaining_names()) == (3, set())
    assert "price: 0.00 -> " in unasked.error
    assert "add --yes" in unasked.error
    done = cloud.tpu(*arguments, "--yes", "--json")
    assert (done.code, done.json["outcome"]["verdict"]) == (0, "done")
    cloud.wait_until_settled("dev-one", ZONE)
    assert cloud.tpu("list", *HERE).out.splitlines()[1].split()[:2] == ["dev-one", "bezel-by-hand"]
    wrong = cloud.tpu("create", "Dev_One", *arguments[2:])
    assert (wrong.code, wrong.error.startswith("bezel: NAME = Dev_One\n   its form is wrong")) == (2, True)


@pytest.mark.parametrize("vm", [False, True])
@pytest.mark.parametrize("changed", [{"bezel-lease": "another"}, {"stack": ""}])
def test_what_stays_is_never_said_to_be_gone(cloud: Cloud, changed: dict[str, str], vm: bool) -> None:
    """Labels that contradict a lease's own name: it is listed as one of ours, and nobody knows whose it is."""
    cloud.lease("bezel-odd", vm=vm, more=changed)
    result = cloud.tpu("delete", "bezel-odd", *HERE, "--name", "bezel-odd")
    assert (result.code, cloud.changing_calls) == (3, [])
    assert "so its owner is unknown" in result.error
    assert cloud.remaining_names() == {"bezel-odd"}


@pytest.mark.parametrize("action", [("list",), ("sweep", "--yes"), ("delete", "bezel-one", "--name", "bezel-one")])
def test_a_zone_that_does_not_exist_is_an_error_and_not_an_empty_one(cloud: Cloud, action: tuple[str, ...]) -> None:
    cloud.lease("bezel-one")
    result = cloud.tpu(*action, "--zone", "mars-east1-a", "--zone", ZONE)
    assert result.code == 1
    assert "--zone = mars-east1-a\n   the zone does not exist" in result.error
    assert "no leases of this program" not in result.error
    assert cloud.remaining_names() == {"bezel-one"}
    assert cloud.tpu("list", "--zone", EMPTY).code == 0


@pytest.mark.parametrize("action", [("list",), ("delete", "bezel-one", "--name", "bezel-one"), ("sweep", "--yes")])
def test_a_project_that_no_id_names_is_not_asked_for(cloud: Cloud, action: tuple[str, ...]) -> None:
    result = cloud.tpu(*action, "--project", "a b; rm")
    assert result.code == 2
    assert "--project = a b; rm\n   it is not the ID of a Google Cloud project" in result.error
    assert cloud.server.calls == []
