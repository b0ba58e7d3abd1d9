"""`bezel weights` as a user runs it: a stack's own model, progress, exit codes, a kill in the middle."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bezel_localcloud import control
from bezel_localcloud.core.paths import Paths
from bezel_simulated_vllm import synthetic_weights
from tests.support.e2e import warm_bezel
from tests.support.weights.copies import FILES, LARGE, WANTED, Shelf, no_secret_in
from tests.support.weights.fake_hub import TOKEN, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BEZEL = Path(sys.executable).with_name("bezel")
FOLDER = "gemma-4-12B-it-qat-w4a16-ct"
ID = f"google/{FOLDER}"
BUCKET = "bezel-local-models"
MIB = 1024 * 1024


@pytest.fixture
def cloud(endpoint, tmp_path):
    """The stack's bucket is the same in every test: each leaves none."""
    made = Shelf(endpoint, BUCKET, tmp_path, None)
    yield made
    made.remove(BUCKET, "other-bucket")


def environment(cloud, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "HF_"))}
    return kept | control.environment(cloud.endpoint) | {"XDG_STATE_HOME": str(cloud.folder / "state")} | more


def bezel(cloud, *arguments, folder=ROOT, **more):
    confirmed = ["--yes"] if arguments[:1] == ("copy",) and "--name" not in arguments else []
    return warm_bezel.run_whole(("weights", *arguments, *confirmed), folder, environment(cloud, **more))


def test_a_stack_s_model_is_copied_listed_and_replaced_from_a_bucket(cloud):
    """The stack's model is copied from the embedded hub and listed and replaced from a bucket."""
    cloud.make()
    copied = bezel(cloud, "copy", "l4-qat")
    assert copied.returncode == 0, copied.stderr
    assert f"hf:{ID}@main" in copied.stderr
    files = synthetic_weights.model_files(ID)
    assert f"{len(files)} files copied" in copied.stdout
    assert cloud.stored_objects(FOLDER) == files

    listed = bezel(cloud, "list", "l4-qat")
    assert listed.returncode == 0
    assert f"gs://{BUCKET}/{FOLDER}: {len(files)} files" in listed.stdout
    assert "complete, of l4-qat" in listed.stdout

    cloud.make("other-bucket")
    for name, content in files.items():
        cloud.put(f"mine/{name}", content + b" " * name.endswith(".json"), "other-bucket")
    source = ("--from", "gs://other-bucket/mine")
    unnamed = bezel(cloud, "copy", "l4-qat", *source)
    assert (unnamed.returncode, "destroyed: config.json" in unnamed.stderr) == (3, True)
    assert cloud.stored_objects(FOLDER) == files
    taken = bezel(cloud, "copy", "l4-qat", *source, "--name", "l4-qat")
    assert taken.returncode == 0, taken.stderr
    assert "config.json: replaced" in taken.stderr
    cloud.http.delete(f"/storage/v1/b/{BUCKET}/o/{FOLDER}%2Fconfig.json")
    half = bezel(cloud, "list", "l4-qat")
    assert (half.returncode, "config.json is missing" in half.stdout) == (1, True)


def _size(file: Path) -> int:
    """Bytes in a file; 0 once its upload is complete, and it lies elsewhere."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_killed_copy_shows_nothing_half_and_the_next_sends_only_the_rest(cloud):
    cloud.make()
    files = {**WANTED, LARGE: os.urandom(MIB) * 40}
    with serving() as hub:
        hub.models[ID] = files
        hub.held, hub.held_after = threading.Event(), 36 * MIB
        command = [str(BEZEL), "weights", "copy", "l4-qat", "--yes"]
        with subprocess.Popen(command, cwd=ROOT, env=environment(cloud, HF_ENDPOINT=hub.base)) as killed:
            uploads, deadline = Paths(cloud.endpoint.directory).uploads, time.monotonic() + 60
            while max((_size(file) for file in uploads.iterdir()), default=0) < 32 * MIB:
                assert time.monotonic() < deadline
                assert killed.poll() is None
                time.sleep(0.02)
            killed.send_signal(signal.SIGKILL)
        assert LARGE not in cloud.stored_objects(FOLDER)
        hub.held.set()
        again = bezel(cloud, "copy", "l4-qat", HF_ENDPOINT=hub.base)
        assert again.returncode == 0, again.stderr
        assert f"{LARGE}: resumes at {32 * MIB} of {40 * MIB} bytes" in again.stderr
        assert cloud.stored_objects(FOLDER) == files


def test_the_draft_model_of_a_stack_is_copied_beside_its_model(cloud):
    cloud.make()
    copied = bezel(cloud, "copy", "l4-qat-mtp")
    assert copied.returncode == 0, copied.stderr
    assert cloud.stored_objects(FOLDER) == synthetic_weights.model_files(ID)
    assert cloud.stored_objects("gemma-4-12B-it-assistant") == synthetic_weights.model_files(
        "google/gemma-4-12B-it-assistant"
    )
    listed = bezel(cloud, "list", "l4-qat-mtp")
    assert (listed.returncode, listed.stdout.count("complete, of l4-qat-mtp")) == (0, 2)


def test_a_gated_model_is_copied_with_a_token_that_is_never_shown(cloud):
    """A gated model is copied with the token of the environment which is never shown."""
    cloud.make()
    with serving() as hub:
        hub.models["acme/gated"] = dict(FILES)
        hub.gated.add("acme/gated")
        source = ("--from", "hf:acme/gated@v1")
        refused = bezel(cloud, "copy", "l4-qat", *source, HF_ENDPOINT=hub.base)
        assert refused.returncode == 1
        assert "is gated" in refused.stderr
        copied = bezel(cloud, "copy", "l4-qat", *source, HF_ENDPOINT=hub.base, HF_TOKEN=TOKEN)
        assert copied.returncode == 0, copied.stderr
        assert no_secret_in(refused.stdout + refused.stderr + copied.stdout + copied.stderr)


def test_the_token_is_read_from_the_secret_that_the_stack_names(cloud, tmp_path):
    cloud.make()
    base = "/secretmanager/v1/projects/bezel-local/secrets"
    apis = {"serviceIds": ["secretmanager.googleapis.com"]}
    cloud.http.post("/serviceusage/v1/projects/bezel-local/services:batchEnable", json=apis)
    deadline = time.monotonic() + 60
    body = {"replication": {"automatic": {}}}
    while cloud.http.post(base, params={"secretId": "hub-token"}, json=body).status_code not in {200, 409}:
        assert time.monotonic() < deadline
    payload = {"payload": {"data": base64.b64encode(TOKEN.encode()).decode()}}
    assert cloud.http.post(f"{base}/hub-token:addVersion", json=payload).is_success
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    stack = (ROOT / "Pulumi.l4-qat.yaml").read_text() + "  bezel:secrets:\n    HF_TOKEN: hub-token\n"
    (tmp_path / "Pulumi.own.yaml").write_text(stack)
    with serving() as hub:
        hub.models[ID] = dict(FILES)
        hub.gated.add(ID)
        copied = bezel(cloud, "copy", "own", folder=tmp_path, HF_ENDPOINT=hub.base)
        assert copied.returncode == 0, copied.stderr
        assert no_secret_in(copied.stdout + copied.stderr)
        assert any(authorization == f"Bearer {TOKEN}" for _, authorization in hub.requests)
    assert cloud.stored_objects(FOLDER) == WANTED


@pytest.mark.wide_except("arguments0-*")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("copy", "absent"), 2, "Pulumi.absent.yaml"),
        (("copy", "l4-qat", "--from", "hf:no-owner"), 1, "is not the name of a model"),
        (("copy", "l4-qat", "--from", ""), 1, "it names no model"),
        (("copy",), 2, "STACK"),
        (("copy", "l4-qat"), 1, f"bucket {BUCKET}\n   does not exist"),
    ],
)
def test_a_slip_is_reported_without_a_traceback(cloud, arguments, code, message):
    run = bezel(cloud, *arguments)
    assert run.returncode == code
    assert message in run.stderr
    assert "Traceback" not in run.stderr
