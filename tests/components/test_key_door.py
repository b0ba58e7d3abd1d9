"""The door for callers by key: what Cloud Run is asked for, what its account may do, and what a change changes."""

import base64
import bz2
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.door.key_door import KeyDoor, KeyDoorArgs
from bezel_door.archive import door_archive
from bezel_door.launch import arguments_of
from tests.support.components.fake_cloud_run import FakeRun, description, running
from tests.support.components.fake_engine import DIGEST, Declarations, declare, has_unknown

SERVICE = "cloudrunv2/service:Service"
ACCOUNT = "serviceAccount:chat-door@acme-llm.iam.gserviceaccount.com"


def door_args(**more: Any) -> KeyDoorArgs:
    defaults: dict[str, Any] = {
        "project": "acme-llm",
        "location": "us-east4",
        "service": "chat-door",
        "account_id": "chat-door",
        "image": f"us-east4-docker.pkg.dev/acme-llm/chat-images-door/library/python@{DIGEST}",
        "secret_id": "chat-door-program",
        "bucket": "acme-llm-chat-door",
        "upstream": "https://chat.example",
        "servers": {"us-east4": "chat", "europe-west4": "chat"},
    }
    return KeyDoorArgs(**{**defaults, **more})


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    """Cloud Run, at first without a service."""
    with running(monkeypatch) as fake:
        yield fake


def declarations_of(**more: Any) -> Declarations:
    return declare(lambda: KeyDoor("door", door_args(**more)))


def run_program(archive: bytes, place: Path, digest_of: bytes) -> subprocess.CompletedProcess[str]:
    """Run the container's command with an archive that lies elsewhere."""
    *options, _, digest = arguments_of(digest_of)
    place.write_bytes(bz2.compress(archive))
    return subprocess.run([sys.executable, *options, place, digest], capture_output=True, text=True, check=False)


def test_the_door_is_open_itself_and_costs_nothing_without_requests() -> None:
    service = declarations_of().one(SERVICE).inputs
    template = service["template"]
    (container,) = template["containers"]
    assert service["invokerIamDisabled"] is True
    assert template["scaling"] == {"minInstanceCount": 0, "maxInstanceCount": 4}
    assert template["maxInstanceRequestConcurrency"] == 250
    assert container["resources"]["cpuIdle"] is True
    assert "nodeSelector" not in template
    assert {each["name"]: each["value"] for each in container["envs"]} == {
        "DOOR_UPSTREAM": "https://chat.example",
        "DOOR_AUDIENCE": "https://chat.example",
        "DOOR_BUCKET": "acme-llm-chat-door",
    }


def test_its_program_is_the_archive_and_its_command_has_the_digest() -> None:
    declarations = declarations_of()
    service, version = declarations.one(SERVICE), declarations.one("SecretVersion")
    (container,) = service.inputs["template"]["containers"]
    archive = bz2.decompress(base64.b64decode(version.inputs["secretData"]["value"]))
    assert archive == door_archive()
    assert (container["commands"], container["args"][-1]) == (["python"], hashlib.sha256(archive).hexdigest())
    (volume,) = service.inputs["template"]["volumes"]
    assert volume["secret"]["secret"] == declarations.one("secret:Secret").inputs["secretId"]
    assert [item["path"] for item in volume["secret"]["items"]] == ["door.pyz.bz2"]
    assert declarations.waits_for(service, version)


def test_its_account_has_a_role_on_four_kinds_of_resources_alone() -> None:
    declarations = declarations_of()
    grants = [each for each in declarations.all if each.type.endswith(("IAMMember", "IamMember"))]
    assert {each.inputs["member"] for each in grants} == {ACCOUNT}
    assert sorted((each.inputs["role"], each.inputs.get("location", "")) for each in grants) == [
        ("roles/run.invoker", "europe-west4"),
        ("roles/run.invoker", "us-east4"),
        ("roles/secretmanager.secretAccessor", ""),
        ("roles/storage.objectUser", ""),
        ("roles/storage.objectViewer", ""),
    ]
    condition = declarations.by_name("door-writer").inputs["condition"]["expression"]
    assert condition == 'resource.name.startsWith("projects/_/buckets/acme-llm-chat-door/objects/usage/")'
    assert all(declarations.waits_for(declarations.one(SERVICE), each) for each in grants)


def test_its_bucket_is_private_and_goes_with_the_door() -> None:
    declarations = declarations_of(deletion_protection=False)
    bucket = declarations.one("bucket:Bucket").inputs
    assert (bucket["publicAccessPrevention"], bucket["uniformBucketLevelAccess"]) == ("enforced", True)
    assert (bucket["softDeletePolicy"], bucket["forceDestroy"]) == ({"retentionDurationSeconds": 0}, True)
    assert declarations.one(SERVICE).inputs["deletionProtection"] is False
    assert declarations_of().one(SERVICE).inputs["deletionProtection"] is True


def test_the_preview_knows_all_but_the_version_of_the_program() -> None:
    inputs = declare(lambda: KeyDoor("door", door_args()), preview=True).one(SERVICE).inputs
    (item,) = inputs["template"]["volumes"][0]["secret"]["items"]
    item.pop("version")
    assert not has_unknown(inputs)


@pytest.mark.parametrize(("state", "annotations"), [("FAILED", {"bezel-attempt": "chat-2"}), ("SUCCEEDED", None)])
def test_another_revision_is_made_in_place_of_a_failed_one(run: FakeRun, state: str, annotations: object) -> None:
    condition = {"type": "Ready", "state": f"CONDITION_{state}"}
    run.service = description(created="chat-2", ready="chat-1", terminalCondition=condition)
    template = declarations_of(service="chat").one(SERVICE).inputs["template"]
    assert template.get("annotations") == annotations


def test_only_an_image_by_digest_is_accepted() -> None:
    with pytest.raises(ArgumentsError, match="has no digest"):
        declarations_of(image="us-east4-docker.pkg.dev/acme-llm/hub/library/python:3.13-slim")


@pytest.mark.slow
def test_its_command_runs_the_archive_and_no_other(tmp_path: Path) -> None:
    archive = door_archive()
    other = run_program(archive + b"x", tmp_path / "door.pyz", archive)
    assert (other.returncode, other.stdout) == (1, "")
    assert "is not the archive that this revision was deployed with" in other.stderr
    ran = run_program(archive, tmp_path / "door.pyz", archive)
    assert (ran.returncode, ran.stderr.startswith("the door cannot start: DOOR_UPSTREAM")) == (1, True)
