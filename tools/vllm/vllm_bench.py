"""The load client of a real vLLM against the simulated server: its result has the recorded one's keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from bezel_base.loopback.listeners import free_port
from simulated_vllm_support.samples import FIXTURES

BENCH = "The real client's load test of the simulated server: nothing fails, its result has the recorded result's keys."
_PROMPTS, _OUTPUT = 60, 16


def bench_against_simulated(folder: Path, environment: dict[str, str], release: str) -> list[str]:
    """Run the client; what is wrong with its result."""
    port, model = free_port(), folder / "models" / "tiny-gemma4"
    drafting = ["--spec-method=mtp", f"--spec-model={model}-assistant", "--spec-tokens=3"]
    named = ["--served-model-name=tiny-gemma4", f"--release={release}"]
    server = [sys.executable, "-m", "bezel_simulated_vllm", str(model), *named, *drafting]
    speed = {"LOCALCLOUD_LISTEN": f"127.0.0.1:{port}", "LOCALCLOUD_SPEED": "100000"}
    with (
        tempfile.TemporaryDirectory() as out,
        subprocess.Popen(server, env=os.environ | speed, stdout=subprocess.DEVNULL) as process,
    ):
        try:
            _wait(port)
            client = [
                str(folder / "venv/bin/vllm"), "bench", "serve", "--backend=openai-chat",
                "--endpoint=/v1/chat/completions", f"--base-url=http://127.0.0.1:{port}",
                "--model=tiny-gemma4", f"--tokenizer={model}",
                "--dataset-name=random", "--random-input-len=64", f"--random-output-len={_OUTPUT}",
                f"--num-prompts={_PROMPTS}", "--max-concurrency=8", "--ignore-eos", "--temperature=0", "--save-result",
                "--save-detailed", f"--result-dir={out}", "--result-filename=r.json",
            ]  # fmt: skip
            subprocess.run(client, env=environment, timeout=180, check=True, capture_output=True)
            result = json.loads((Path(out) / "r.json").read_text(encoding="utf-8"))
        finally:
            process.terminate()
    recorded = json.loads((FIXTURES / "bench-serve-mtp-result-t1.json").read_text(encoding="utf-8"))
    wrong = [f"no key {key}" for key in recorded if key not in result]
    wrong += [
        f"{key} is {result[key]}" for key, good in (("completed", _PROMPTS), ("failed", 0)) if result[key] != good
    ]
    if result["total_output_tokens"] != _PROMPTS * _OUTPUT:
        wrong.append(f"total_output_tokens is {result['total_output_tokens']}")
    return wrong


def _wait(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the simulated server did not start")
