"""History of a stack: the last deploy is found in a folder, in a bucket and by the engine, and no other run counts."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.deployment.history_reader import Deploy, read_deploys
from bezel.operations.deployment.state_reader import StateError
from tests.support.gitops.fake_bucket import fake_bucket

FOLDER = ".pulumi/history/bezel/dev"
# A run as engine 3.259 writes it, its long parts shortened.
RUN = {
    "kind": "update", "startTime": 1795773617, "message": "", "environment": {"exec.kind": "cli"},
    "config": {"bezel:scaling": {"max_instances": 2}, "bezel:region": "us-east4", "bezel:x": {"secure": "v1:abc="}},
    "version": 0, "result": "succeeded", "endTime": 1795773656, "resourceChanges": {"create": 22},
}  # fmt: skip


def runs(*changes: dict[str, Any]) -> dict[str, bytes]:
    """Objects of runs, oldest first."""
    found = {}
    for number, change in enumerate(changes):
        name = f"{FOLDER}/dev-{1795773656893203092 + number}.history.json"
        found[name] = json.dumps({**RUN, **change}).encode()
        found[f"{name}.attrs"] = b"{}"
    return found


def write(folder: Path, objects: dict[str, bytes]) -> dict[str, str]:
    for name, content in objects.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return {"PULUMI_BACKEND_URL": f"file://{folder}"}


LIFE = (
    {"endTime": 1},
    {"endTime": 2},
    {"endTime": 3, "kind": "refresh", "config": {}},
    {"endTime": 4, "result": "failed"},
    {"endTime": 5, "kind": "destroy", "config": {}},
    {"endTime": 6, "result": "in-progress"},
)


def times(deploys: list[Deploy]) -> list[tuple[float | None, bool]]:
    return [(deploy.at, deploy.is_done) for deploy in deploys]


def test_the_last_deploys_are_those_that_failed_and_one_that_did_not(tmp_path: Path) -> None:
    deploys = read_deploys(tmp_path, "bezel", "dev", write(tmp_path, runs(*LIFE)))
    assert times(deploys) == [(6, False), (4, False), (2, True)]
    assert deploys[-1].config == RUN["config"]
    assert read_deploys(tmp_path, "bezel", "other", {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}) == []


def test_a_compressed_run_is_read(tmp_path: Path) -> None:
    ((name, content), *_) = runs({}).items()
    environ = write(tmp_path, {f"{name}.gz": gzip.compress(content)})
    assert times(read_deploys(tmp_path, "bezel", "dev", environ)) == [(1795773656, True)]


def test_a_bucket_is_read_by_the_names_of_its_objects(tmp_path: Path) -> None:
    with fake_bucket() as bucket:
        bucket.objects |= {name: (content, 1) for name, content in runs(*LIFE).items()}
        environ = {"PULUMI_BACKEND_URL": f"gs://{bucket.name}", "STORAGE_EMULATOR_HOST": bucket.server.url}
        assert times(read_deploys(tmp_path, "bezel", "dev", environ)) == [(6, False), (4, False), (2, True)]
        read = [call for call in bucket.server.calls if "alt" in call.query]
        assert len(read) == 5  # none that is older than the last success


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind": "update", "config": [1]}', b"null", b"\x1f\x8b"])
def test_a_run_of_another_form_is_an_error(tmp_path: Path, content: bytes) -> None:
    environ = write(tmp_path, {f"{FOLDER}/dev-1.history.json": content})
    with pytest.raises(StateError, match="the history of dev cannot be read"):
        read_deploys(tmp_path, "bezel", "dev", environ)


@pytest.mark.slow
def test_the_engine_prints_the_same(tmp_path: Path) -> None:
    write(tmp_path / "state", runs({}))
    checkpoint = {"version": 3, "checkpoint": {"stack": "organization/bezel/dev", "latest": None}}
    write(tmp_path / "state", {".pulumi/stacks/bezel/dev.json": json.dumps(checkpoint).encode()})
    (tmp_path / "state/.pulumi/meta.yaml").write_text("version: 1\n")
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    # The backend is that of a login, which only the engine knows.
    home = tmp_path / "home"
    home.mkdir()
    account = {"current": f"file://{tmp_path}/state", "accessTokens": {}, "accounts": {f"file://{tmp_path}/state": {}}}
    (home / "credentials.json").write_text(json.dumps(account))
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
        "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "1", "PULUMI_CONFIG_PASSPHRASE": "x",
    }  # fmt: skip
    (deploy,) = read_deploys(tmp_path, "bezel", "dev", environ)
    assert (deploy.at, deploy.is_done, deploy.hidden) == (1795773656, True, {"bezel:x"})
    assert deploy.config == {"bezel:scaling": {"max_instances": 2}, "bezel:region": "us-east4"}
