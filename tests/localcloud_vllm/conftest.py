"""Simulated servers for these tests: in the test's own process on a real socket, or as a container would run."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import httpx
import pytest
import uvicorn
from vllm_arguments import ROOT

from bezel.localcloud.made_up import model_files
from bezel.localcloud.vllm.clock import RealClock
from bezel.localcloud.vllm.engine import Engine
from bezel.localcloud.vllm.hardware import machine_from_environment
from bezel.localcloud.vllm.options import parse
from bezel.localcloud.vllm.settings import make_settings
from bezel.localcloud.vllm.web import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TINY = {
    "architectures": ["Gemma4ForCausalLM"],
    "model_type": "gemma4_text",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "global_head_dim": 64,
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 128,
    "vocab_size": 2048,
    "max_position_embeddings": 16384,
}


@pytest.fixture(scope="session")
def mount(tmp_path_factory) -> Path:
    """What lies below /mnt/models: a tiny model and its assistant, and made-up files with real sizes."""
    directory = tmp_path_factory.mktemp("models")
    _write(directory / "tiny", TINY)
    _write(directory / "tiny-assistant", {"model_type": "gemma4_assistant", "text_config": TINY})
    for name, model in (
        ("qat", "gemma-4-12b-it-qat-w4a16"),
        ("bf16", "gemma-4-12b-it"),
        ("moe", "gemma-4-26b-a4b-it"),
        ("assistant", "google/gemma-4-12B-it-assistant"),
    ):
        (directory / name).mkdir()
        for file, content in model_files(model).items():
            (directory / name / file).write_bytes(content)
    return directory


def _write(directory: Path, config: dict) -> None:
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").write_bytes(b"\0" * 400_000)


@pytest.fixture(scope="session")
def environment(mount):
    """The environment of an instance with an L4."""

    def make(**hardware: object) -> dict[str, str]:
        return {
            "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(mount)}),
            "LOCALCLOUD_HARDWARE": json.dumps(hardware),
            "LOCALCLOUD_SPEED": "100000",
        }

    return make


@pytest.fixture(scope="session")
def settings(environment):
    """Settings from a command line, as at start."""

    def make(*arguments: str, variables: dict[str, str] | None = None, **hardware: object):
        return make_settings(parse(arguments), machine_from_environment(environment(**hardware)), variables or {})

    return make


@pytest.fixture(scope="session")
def serve(settings):
    """Start a server in this process: `with serve("/mnt/models/tiny", ...) as client`."""

    @contextlib.contextmanager
    def run(*arguments: str, speed: float = 1.0, **hardware: object) -> Iterator[httpx.Client]:
        engine = Engine(settings(*arguments, **hardware), RealClock(speed), time.time)
        config = uvicorn.Config(
            Server(engine).application(), "127.0.0.1", 0, log_config=None, lifespan="off", callback_notify=None
        )
        server = uvicorn.Server(config)

        async def main() -> None:
            import asyncio

            task = asyncio.create_task(engine.run())
            await server.serve()
            task.cancel()

        thread = threading.Thread(target=lambda: __import__("asyncio").run(main()), daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.005)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(5)

    return run


@pytest.fixture(scope="session")
def container(environment):
    """Run `python -m bezel.localcloud.vllm` to its end: exit status, standard output, standard error."""

    def run(*arguments: str, variables: dict[str, str] | None = None, **hardware: object):
        env = {**os.environ, **environment(**hardware), **(variables or {})}
        command = [sys.executable, "-m", "bezel.localcloud.vllm", *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=20, check=False)

    return run
