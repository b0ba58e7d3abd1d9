"""History of a stack: the last deploy is found in a folder, in a bucket and by the engine, and no other run counts."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.deployment.history_reader import Deploy, read_deploys
from bezel.operations.deployment.state_reader import StateError, read_state, stacks_in
from tests.support.gitops.fake_bucket import fake_bucket

FOLDER = ".pulumi/history/bezel/dev"
# A run as engine 3.274 writes it, its long parts shortened.
RUN = {
    "kind": "update", "startTime": 1795773617, "message": "", "environment": {"exec.kind": "cli"},
    "config": {"bezel:scaling": {"max_instances": 2}, "bezel:region": "us-east4", "bezel:x": {"secure": "v1:abc="}},
    "version": 0, "result": "succeeded", "endTime": 1795773656, "resourceChanges": {"create": 22},
}  # fmt: skip


def runs(*changes: dict[str, Any]) -> dict[str, bytes]:
    """Objects of runs, oldest first."""
    objects = {}
    for number, change in enumerate(changes):
        name = f"{FOLDER}/dev-{1795773656893203092 + number}.history.json"
        objects[name] = json.dumps({**RUN, **change}).encode()
        objects[f"{name}.attrs"] = b"{}"
    return objects


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


CHECKPOINT = {"version": 3, "checkpoint": {"stack": "organization/bezel/dev", "latest": {"manifest": {}}}}


def with_zstd(content: bytes) -> bytes:
    """A zstd frame (RFC 8878) of one block that is stored as it is."""
    header = bytes.fromhex("28b52ffd") + b"\xa0" + len(content).to_bytes(4, "little")
    return header + (1 | len(content) << 3).to_bytes(3, "little") + content


def engine_environ(folder: Path) -> dict[str, str]:
    """A project and the variables of an engine with a home of its own."""
    (folder / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    (folder / "home").mkdir()
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
        "PULUMI_HOME": str(folder / "home"), "PULUMI_SKIP_UPDATE_CHECK": "1", "PULUMI_CONFIG_PASSPHRASE": "x",
    }  # fmt: skip


def write_stack(folder: Path, ending: str, pack: Callable[[bytes], bytes]) -> dict[str, str]:
    """A stack of one run in the folder of a backend, packed."""
    objects = runs({}) | {".pulumi/stacks/bezel/dev.json": json.dumps(CHECKPOINT).encode()}
    packed = {f"{name}{ending}": pack(content) for name, content in objects.items() if name.endswith(".json")}
    return write(folder, packed | {".pulumi/meta.yaml": b"version: 1\n"})


@pytest.mark.slow
def test_the_engine_prints_the_same(tmp_path: Path) -> None:
    environ = engine_environ(tmp_path)
    write_stack(tmp_path / "state", "", bytes)
    # The backend is that of a login, which only the engine knows.
    account = {"current": f"file://{tmp_path}/state", "accessTokens": {}, "accounts": {f"file://{tmp_path}/state": {}}}
    (tmp_path / "home/credentials.json").write_text(json.dumps(account))
    (deploy,) = read_deploys(tmp_path, "bezel", "dev", environ)
    assert (deploy.at, deploy.is_done, deploy.hidden) == (1795773656, True, {"bezel:x"})
    assert deploy.config == {"bezel:scaling": {"max_instances": 2}, "bezel:region": "us-east4"}


@pytest.mark.slow
def test_what_is_packed_with_zstd_is_read_by_the_engine(tmp_path: Path) -> None:
    environ = engine_environ(tmp_path) | write_stack(tmp_path / "state", ".zst", with_zstd)
    (deploy,) = read_deploys(tmp_path, "bezel", "dev", environ)
    assert (deploy.at, deploy.hidden) == (1795773656, {"bezel:x"})
    state = read_state(tmp_path, "bezel", "dev", environ)
    assert state is not None
    assert state["manifest"]["version"] == ""
    assert stacks_in(tmp_path, "bezel", environ) == ["dev"]
    assert read_state(tmp_path, "bezel", "other", environ) is None


def states(plain: int, packed: int) -> dict[str, tuple[bytes, int]]:
    """Files of one state with their times in microseconds: the engine leaves an older one that it could not delete."""
    times = {"dev.json": plain, "dev.json.gz": packed, "dev.json.bak": 3_000_000, "dev2.json": 3_000_000}
    return {
        f".pulumi/stacks/bezel/{name}": (json.dumps({"checkpoint": {"latest": {"name": name}}}).encode(), time)
        for name, time in times.items()
    }


NEWEST = pytest.mark.parametrize(
    ("files", "newest"), [(states(2_000_000, 1_000_000), "dev.json"), (states(1_000_000, 2_000_000), "dev.json.gz")]
)


@NEWEST
def test_the_newest_state_of_a_folder_is_read(tmp_path: Path, files: dict[str, tuple[bytes, int]], newest: str) -> None:
    environ = write(tmp_path, {name: content for name, (content, _) in files.items()})
    for name, (_, time) in files.items():
        os.utime(tmp_path / name, ns=(time * 1000, time * 1000))
    assert read_state(tmp_path, "bezel", "dev", environ) == {"name": newest}
    assert stacks_in(tmp_path, "bezel", environ) == ["dev", "dev2"]


@NEWEST
def test_the_newest_state_of_a_bucket_is_read(tmp_path: Path, files: dict[str, tuple[bytes, int]], newest: str) -> None:
    with fake_bucket() as bucket:
        bucket.objects |= files
        environ = {"PULUMI_BACKEND_URL": f"gs://{bucket.name}", "STORAGE_EMULATOR_HOST": bucket.server.url}
        assert read_state(tmp_path, "bezel", "dev", environ) == {"name": newest}
        assert read_state(tmp_path, "bezel", "de", environ) is None
