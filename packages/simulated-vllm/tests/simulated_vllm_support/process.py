"""The simulated vLLM server as a process on loopback, serving a tiny model on a made-up L4."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx

from bezel_base.loopback.listeners import bind, free_port
from bezel_base.loopback.plain_http import NO_TLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

NAME = "tiny"
_SECONDS = 90.0
MODEL = {
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


@contextlib.contextmanager
def drawn_port() -> Iterator[int]:
    """A port that a server may listen on while the context lasts: bound here too, it is drawn by nothing else."""
    with bind("127.0.0.1", free_port()) as drawn:
        yield drawn.getsockname()[1]


@contextlib.contextmanager
def server_process(
    arguments: Sequence[str], environment: Mapping[str, str], output: int = subprocess.PIPE
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A server that begins to start: its port and its process, which ends with the context.

    Args:
        arguments: Of `vllm serve`.
        environment: All variables, but for the address.
        output: Where the process writes its log and its errors.
    """
    with (
        drawn_port() as port,
        subprocess.Popen(
            [sys.executable, "-m", "bezel_simulated_vllm", *arguments],
            env={**environment, "LOCALCLOUD_LISTEN": f"127.0.0.1:{port}"},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        try:
            yield port, process
        finally:
            process.kill()


@contextlib.contextmanager
def held_start(faults: Path) -> Iterator[None]:
    """While the context lasts, a server waits that has begun to start, and has loaded nothing.

    Args:
        faults: The pipe (`os.mkfifo`) that LOCALCLOUD_FAULTS names: a start waits for what is written into it.
    """
    with faults.open("w") as pipe:  # once the server reads it
        yield
        faults.unlink()  # a serving one would read it again
        pipe.write("[]")


@contextlib.contextmanager
def simulated_vllm(
    folder: Path,
    *arguments: str,
    serving_speed: float = 1.0,
    multimodal: bool = False,
    files: Mapping[str, bytes] | None = None,
) -> Iterator[str]:
    """A server of the model `tiny`; its address once it is healthy.

    Args:
        folder: Empty or not there; the model is written into it.
        arguments: Of `vllm serve`, after the model.
        serving_speed: Divides the engine's step times.
        multimodal: Whether the model takes images and audio.
        files: Files of another model by name, in place of those of a tiny Gemma 4.
    """
    model = folder / NAME
    model.mkdir(parents=True, exist_ok=True)
    parts = {"vision_config": {"model_type": "gemma4_vision"}, "audio_config": {"model_type": "gemma4_audio"}}
    config = json.dumps(MODEL | (parts if multimodal else {})).encode()
    for name, content in (files or {"config.json": config, "model.safetensors": b"\0" * 400_000}).items():
        (model / name).write_bytes(content)
    environment = os.environ | {
        "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder)}),
        "LOCALCLOUD_HARDWARE": json.dumps({"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 8, "memory_gib": 32}),
        "LOCALCLOUD_SPEED": "100000",
        "LOCALCLOUD_SERVING_SPEED": f"{serving_speed:g}",
    }
    command = [sys.executable, "-m", "bezel_simulated_vllm", f"/mnt/models/{NAME}", f"--served-model-name={NAME}"]
    with (
        drawn_port() as port,
        subprocess.Popen(
            [*command, *arguments],
            env=environment | {"LOCALCLOUD_LISTEN": f"127.0.0.1:{port}"},
            stdout=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health", timeout=10, trust_env=False, verify=NO_TLS).status_code == 200:
                return
        time.sleep(0.05)
    raise TimeoutError(f"the simulated server did not start (exit code {process.poll()})")
