"""From the folder of a model outside of the catalogue to a service that is checked and measured, in one sitting.

Once with the simulated server, and once with a real one: BEZEL_REAL_VLLM names a folder with `venv/bin/vllm` and
`models/tiny-gemma4`, whose tokenizer the model of this test borrows.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.model_sources.tiny import LLAMA, as_json, llama, llama_tensors, random_safetensors
from tests.support.real_vllm import TIMEOUT

pytestmark = [pytest.mark.wide, pytest.mark.timeout(2 * TIMEOUT)]
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
BEZEL = Path(sys.executable).with_name("bezel")


@dataclass
class Sitting:
    """A folder in which a person types commands one after the other."""

    folder: Path
    variables: dict[str, str]

    def type(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run `bezel ARGUMENTS`, and return what it prints.

        Raises:
            AssertionError: It ended with another exit code.
        """
        ended = subprocess.run(
            [str(BEZEL), *arguments],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert ended.returncode in codes, ended.stdout[-4000:] + ended.stderr[-4000:]
        return ended.stdout

    def take_variables(self) -> None:
        """Take over what `bezel local env` prints, as `eval` does."""
        for line in self.type("local", "env").splitlines():
            if line.startswith("export "):
                name, _, value = shlex.split(line)[1].partition("=")
                self.variables[name] = value


@pytest.fixture
def sitting(tmp_path: Path) -> Sitting:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / f"bezel-{importlib.metadata.version('bezel')}-py3-none-any.whl").touch()
    return Sitting(tmp_path, dict(os.environ) | {"XDG_STATE_HOME": str(tmp_path / "state")})


def write_model(folder: Path, tokenizer: Path | None) -> None:
    """Write a model; with a tokenizer it has its vocabulary, random weights, and heads that vLLM on a CPU takes."""
    files = llama()
    if tokenizer is not None:
        files |= {name: (tokenizer / name).read_bytes() for name in TOKENIZER if (tokenizer / name).is_file()}
        text = json.loads((tokenizer / "config.json").read_text())
        config = LLAMA | {"vocab_size": text.get("text_config", text)["vocab_size"], "eos_token_id": 1, "head_dim": 32}
        files |= {"config.json": as_json(config), "model.safetensors": random_safetensors(llama_tensors(config))}
        files["generation_config.json"] = as_json({"eos_token_id": 1})
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("server", ["sim", "vllm"])
def test_new_model_is_served_checked_measured_and_judged(sitting: Sitting, server: str) -> None:
    installed = os.environ.get("BEZEL_REAL_VLLM")
    if server == "vllm" and installed is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    model = sitting.folder / "tiny-llama"
    write_model(model, Path(installed) / "models" / "tiny-gemma4" if server == "vllm" and installed else None)
    sitting.type("new", "chat", "--model", "./tiny-llama", "--yes", "--packages", "wheels")
    sitting.folder /= "chat"
    (sitting.folder / ".venv").symlink_to(sys.prefix)
    options = ["--server", server]
    if server == "vllm":
        sitting.variables["PATH"] += f":{installed}/venv/bin"
        options += ["--model", str(model)]
    try:
        deployed = sitting.type("local", "up", "dev", *options)
        assert "completion, conditions, drift, health, models, plan, refusal: all passed" in deployed
        sitting.take_variables()
        assert sitting.type("query", "dev", "Say hello.", "--max-tokens", "4")
        load = ("--requests", "8", "--users", "2", "--input-tokens", "32", "--output-tokens", "8")
        # A busy machine is named and ends it with 1; the requests were answered all the same.
        measured = sitting.type("bench", "run", "--stack", "dev", *load, codes=(0, 1))
        assert "8 sent = 8 completed + 0 failed" in measured
        memory = sitting.type("memory", "dev", "--wake")
        assert "the plan was right within 5%" in memory
        assert ("the same model, on another machine" in memory) == (server == "vllm")
    finally:
        sitting.type("local", "down", "dev", *options)
    shutil.rmtree(sitting.folder / ".localcloud")
