"""`server="vllm"`: the `vllm` found on PATH is started instead of the simulated one (here a stand-in executable)."""

import sys

import pytest

from bezel_localcloud import control
from bezel_simulated_vllm.synthetic_weights import model_files
from localcloud_support.client import Client
from localcloud_support.fake_daemon import FAKE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with a model, one with a `vllm`, and one for the daemon."""
    root = tmp_path_factory.mktemp("real")
    model, binaries = root / "model", root / "bin"
    model.mkdir()
    binaries.mkdir()
    for name, content in model_files("gemma-4-12b-it-qat-w4a16").items():
        (model / name).write_bytes(content)
    script = binaries / "vllm"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S {FAKE} "$@"\n')
    script.chmod(0o755)
    yield model, binaries, root / "cloud"
    control.stop(root / "cloud")


@pytest.fixture
def start(folders, monkeypatch):
    """A function that starts a daemon with the setting to use the machine's own vllm, with a model or none."""
    model, binaries, cloud = folders
    monkeypatch.setenv("PATH", str(binaries), prepend=":")

    def start_server(*, with_model):
        monkeypatch.delenv("LOCALCLOUD_VLLM_MODEL", raising=False)
        if with_model:
            monkeypatch.setenv("LOCALCLOUD_VLLM_MODEL", str(model))
        client = Client(control.start(cloud, server="vllm", speed=10_000))
        client.prepare()
        return client

    return start_server


def test_the_real_vllm_reports_the_arguments_that_were_rewritten(start, folders):
    """The machine's own vLLM serves with rewritten arguments and says what was rewritten."""
    real = start(with_model=True)
    real.create("real", real.template("/mnt/models/m", "--max-model-len=64", "--gpu-memory-utilization=0.9"))
    arguments = real.front("real").get("/").json()["arguments"]
    assert arguments[:2] == ["serve", str(folders[0])]
    assert "--max-model-len=64" in arguments
    assert not [a for a in arguments if a.startswith("--gpu-memory-utilization")]
    notes = [entry["textPayload"] for entry in real.log("real", "severity=NOTICE")]
    assert any("gpu-memory-utilization" in note for note in notes)
    assert "BEZEL_SIMULATED" not in control.environment(real.endpoint)


def test_without_a_model_the_revision_says_which_variable_names_it(start):
    before = start(with_model=True).endpoint
    real = start(with_model=False)
    assert real.endpoint.pid != before.pid  # another model needs another daemon
    operation = real.create("modelless", real.template("/mnt/models/m"))
    assert "LOCALCLOUD_VLLM_MODEL is not set" in operation["error"]["message"]
