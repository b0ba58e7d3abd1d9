"""Curves of the simulated server's timing under load in virtual time, as data.

    .venv/bin/python -m tools.docs.timing_curves

Writes `docs/plots/timing.json`; `tools/docs/timing_plots.py` draws it. The same code gives the same bytes: a test
recomputes some of the points.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.scheduling.virtual_load import load, settings_of_server

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.settings import EngineSettings

ROOT = Path(__file__).parents[2]

FILE = ROOT / "docs" / "plots" / "timing.json"
L4 = {"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 8, "memory_gib": 32}
RTX = {"accelerator": "nvidia-rtx-pro-6000", "accelerators": 1, "cpu": 20, "memory_gib": 80}
ARGUMENTS = (
    *("--max-model-len=16384", "--kv-cache-dtype=fp8", "--max-num-seqs=64", "--max-num-batched-tokens=2048"),
    '--limit-mm-per-prompt={"video": 0}',  # without it the steps do not hold a video
)
MACHINES = {"L4": ("gemma-4-12b-it-qat-w4a16", L4), "RTX PRO 6000": ("gemma-4-12b-it", RTX)}
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PROMPTS = (128, 1024, 4096, 8192)
CONTEXTS = (128, 256, 512, 1024, 2048, 4096, 8192, 13000)
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
BLOCKS = (20000, 16000, 12000, 8000, 4000, 2000)


def settings_of(machine: str, *more: str) -> EngineSettings:
    """A server of 12B on one of the machines."""
    model, hardware = MACHINES[machine]
    with tempfile.TemporaryDirectory() as folder:
        return settings_of_server(Path(folder), model, (*ARGUMENTS, *more), hardware)


def by_users(users: tuple[int, ...] = USERS, prompts: tuple[int, ...] = PROMPTS) -> list[dict[str, float]]:
    """Users on an L4, for some lengths of the prompt."""
    settings = settings_of("L4")
    return [load(settings, count, prompt=prompt, output=64).row() for prompt in prompts for count in users]


def by_context(contexts: tuple[int, ...] = CONTEXTS) -> dict[str, list[dict[str, float]]]:
    """The length of the prompt with 32 users, on both machines."""
    return {
        machine: [load(settings_of(machine), 32, prompt=context, output=64, rounds=3).row() for context in contexts]
        for machine in MACHINES
    }


def by_prefix(shares: tuple[float, ...] = SHARES) -> list[dict[str, float]]:
    """The share of a prompt of 4,096 tokens that is the same for all of 8 users."""
    settings = settings_of("L4")
    return [{"shared": part} | load(settings, 8, prompt=4096, output=64, shared=part).row() for part in shares]


def by_blocks(blocks: tuple[int, ...] = BLOCKS) -> list[dict[str, float]]:
    """The size of the KV cache for 64 users with long answers."""
    return [
        {"blocks": count}
        | load(
            settings_of("L4", "--max-model-len=2048", f"--num-gpu-blocks-override={count}"),
            64,
            prompt=256,
            output=512,
            rounds=3,
        ).row()
        for count in blocks
    ]


def curves() -> dict[str, Any]:
    """All curves."""
    return {"users": by_users(), "context": by_context(), "prefix": by_prefix(), "blocks": by_blocks()}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(curves(), indent=1) + "\n")
    print(f"wrote {FILE.relative_to(ROOT)}")
