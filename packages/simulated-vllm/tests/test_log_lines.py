"""Log of the simulated server beside that of a real one: the same lines, format, level, stream and order."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel_base.loopback.listeners import free_port
from bezel_simulated_vllm.command import statistics_seconds
from simulated_vllm_support.log_lines import (
    LOGS,
    Recorder,
    hardware,
    requests_of_the_record,
    shape,
    without_counterpart,
)
from simulated_vllm_support.process import MODEL, drawn_port

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVING = ("--served-model-name=tiny-gemma4", "--dtype=bfloat16", "--enforce-eager", "--max-model-len=4096",
           "--max-num-seqs=8", "--kv-cache-memory-bytes=64M", "--generation-config=vllm")  # fmt: skip
STATISTICS_SECONDS = 1.0
SCRIPT = partial(requests_of_the_record, model="tiny-gemma4", statistics_seconds=STATISTICS_SECONDS)
FAILING = {
    "fail-config": ("--enable-auto-tool-choice", "--tool-call-parser=nonsense"),
    "fail-engine": ("--max-model-len=16384", "--kv-cache-memory-bytes=1M"),
    "fail-args": ("--no-such-option",),
    "fail-model": (),
}


@contextmanager
def simulated_recorder(
    folder: Path, *options: str, model: str = "tiny-gemma4", release: str = "0.32.0"
) -> Iterator[Recorder]:
    """The simulated server of a tiny model, about to be recorded."""
    path = folder / "tiny-gemma4"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(MODEL))
    (path / "model.safetensors").write_bytes(b"\0" * 400_000)
    environ = os.environ | {
        "LOCALCLOUD_RELEASE": release,
        "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder)}),
        "LOCALCLOUD_HARDWARE": hardware(),
        "LOCALCLOUD_SPEED": "100000",
        "VLLM_LOG_STATS_INTERVAL": f"{STATISTICS_SECONDS:g}",
    }
    command = [sys.executable, "-m", "bezel_simulated_vllm", f"/mnt/models/{model}", *SERVING, *options]
    with drawn_port() as port:
        environ["LOCALCLOUD_LISTEN"] = f"127.0.0.1:{port}"
        yield Recorder(command, dict(environ), Path(__file__).parent, f"http://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, 10),
        ({"VLLM_LOG_STATS_INTERVAL": "2.5"}, 2.5),
        ({"VLLM_LOG_STATS_INTERVAL": "0"}, 10),
        ({"VLLM_LOG_STATS_INTERVAL": "-1"}, 10),
    ],
)
def test_statistics_come_at_the_interval_of_the_variable(variables: dict[str, str], seconds: float) -> None:
    assert statistics_seconds(variables) == seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "recorded", "other"),
    [("0.32.0", "serve.log", "0.33.0/serve.log"), ("0.33.0", "0.33.0/serve.log", "serve.log")],
)
def test_each_line_of_a_real_serving_log_is_in_the_simulated_one(
    release: str, recorded: str, other: str, tmp_path: Path
) -> None:
    with simulated_recorder(tmp_path, release=release) as recorder:
        log = recorder.run(SCRIPT)
    assert without_counterpart((LOGS / recorded).read_text(), log) == []
    assert without_counterpart((LOGS / other).read_text(), log)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILING)
def test_each_line_of_a_real_failing_start_is_in_the_simulated_one(name: str, tmp_path: Path) -> None:
    model = "nothing" if name == "fail-model" else "tiny-gemma4"
    with simulated_recorder(tmp_path, *FAILING[name], model=model) as recorder:
        log = recorder.run()
    assert without_counterpart((LOGS / f"{name}.log").read_text(), log, name) == []


@pytest.mark.long
def test_each_line_of_a_live_real_log_is_in_the_simulated_one(tmp_path: Path) -> None:
    installed = os.environ.get("BEZEL_REAL_VLLM")
    if installed is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM")
    port = free_port()
    environ = os.environ | {
        "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1",
        "PATH": f"{installed}/venv/bin:{os.environ['PATH']}",
    }  # fmt: skip
    address = ("--host=127.0.0.1", f"--port={port}")
    command = [f"{installed}/venv/bin/vllm", "serve", f"{installed}/models/tiny-gemma4", *address, *SERVING]
    real = Recorder(command, dict(environ), tmp_path, f"http://127.0.0.1:{port}")
    script = partial(requests_of_the_record, model="tiny-gemma4")
    with simulated_recorder(tmp_path) as recorder:
        assert without_counterpart(real.run(script), recorder.run(SCRIPT)) == []


STARTED = "INFO:     Application startup complete."
TOOK = "(A pid=1) INFO 11-27 18:17:03 [m.py:7] took 0.5 s"


@pytest.mark.parametrize(
    ("real", "simulated_line", "is_missing"),
    [
        (f"err {STARTED}", f"err {STARTED}", False),
        (f"err {STARTED}", f"out {STARTED}", True),
        (f"err {STARTED}", f"err (APIServer pid=1) {STARTED}", True),
        (f"out {TOOK}", "out (A pid=9) INFO 11-28 01:02:03 [m.py:7] took 77 s", False),
        (f"out {TOOK}", "out (A pid=9) ERROR 11-28 01:02:03 [m.py:7] took 77 s", True),
        (f"out {TOOK}", "out (A pid=9) INFO 11-28 01:02:03 [m.py:8] took 77 s", True),
    ],
)
def test_a_line_of_another_stream_level_or_place_is_no_counterpart(
    real: str, simulated_line: str, is_missing: bool
) -> None:
    assert bool(without_counterpart(real, simulated_line)) == is_missing
    assert (shape(real) == shape(simulated_line)) != is_missing


def test_lines_in_another_order_have_no_counterpart() -> None:
    first, second = "err INFO:     Waiting for application startup.", "err INFO:     Application startup complete."
    assert without_counterpart(f"{first}\n{second}", f"{second}\n{first}") == [second]
