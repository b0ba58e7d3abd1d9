"""Grids of simulated servers in virtual time: the twins on which sweeps are judged beside measured grids.

    .venv/bin/python -m tools.bench.sweeps.twins

Writes `tests/results/sweeps/twins.json`: requests a second by server, context and users. Requests vary in length, so no
two cells agree exactly. The same code gives the same figures; a test repeats some of them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from bezel_simulated_vllm.scheduling.virtual_load import load, settings_of_server
from tools.docs.generated_sections import ROOT
from tools.docs.timing_curves import L4, RTX

FILE = ROOT / "tests" / "results" / "sweeps" / "twins.json"
CONTEXTS = (4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 13000)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
OUTPUT = 64
LEAST_REQUESTS, REQUESTS_PER_USER = 16, 3
_FP8 = "--kv-cache-dtype=fp8"
_NO_VIDEO = '--limit-mm-per-prompt={"video": 0}'  # without it the shorter steps do not hold a video
# By name: model, machine, sequences at a time, tokens of a step, further arguments.
SERVERS: dict[str, tuple[str, dict[str, object], int, int, tuple[str, ...]]] = {
    "L4, 12B qat": ("gemma-4-12b-it-qat-w4a16", dict(L4), 64, 2048, (_FP8,)),
    "RTX PRO 6000, 12B": ("gemma-4-12b-it", dict(RTX), 256, 8192, (_FP8,)),
    "L4, E4B": ("gemma-4-e4b-it", dict(L4), 128, 4096, (_FP8,)),
    "RTX PRO 6000, 26B-A4B": ("gemma-4-26b-a4b-it", dict(RTX), 128, 4096, (_FP8,)),
    "RTX PRO 6000, 31B qat": ("gemma-4-31b-it-qat-w4a16", dict(RTX), 256, 2048, (_FP8,)),
    "L4, E2B": ("gemma-4-e2b-it", dict(L4), 256, 2048, ()),
    "4 x L4, 12B": (
        "gemma-4-12b-it",
        {"accelerator": "nvidia-l4", "accelerators": 4, "cpu": 32, "memory_gib": 128},
        128,
        4096,
        (_FP8, "--tensor-parallel-size=4"),
    ),
    "RTX PRO 6000, 12B fp8, small cache": (
        "gemma-4-12b-it-fp8",
        dict(RTX),
        512,
        8192,
        ("--gpu-memory-utilization=0.25",),
    ),
}


def rows(name: str, contexts: tuple[int, ...] = CONTEXTS, users: tuple[int, ...] = USERS) -> list[list[float]]:
    """Requests a second of a server: one row for each context, one column for each number of users."""
    model, hardware, sequences, tokens, more = SERVERS[name]
    steps = (f"--max-num-seqs={sequences}", f"--max-num-batched-tokens={tokens}")
    arguments = ("--max-model-len=16384", *steps, _NO_VIDEO, *more)
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of_server(Path(folder), model, arguments, hardware)

    def rate(context: int, count: int) -> float:
        rounds = max(REQUESTS_PER_USER, -(-LEAST_REQUESTS // count))
        seed = 1 + 50 * CONTEXTS.index(context) + USERS.index(count)
        point = load(settings, count, prompt=context, output=OUTPUT, rounds=rounds, seed=seed)
        return float(f"{point.rate / OUTPUT:.4g}")

    return [[rate(context, count) for count in users] for context in contexts]


if __name__ == "__main__":
    made = {"contexts": CONTEXTS, "users": USERS, "servers": {}}
    for name in SERVERS:
        made["servers"][name] = rows(name)  # type: ignore[index]
        print(name, flush=True)
    FILE.write_text(json.dumps(made) + "\n", encoding="utf-8")
