"""Simulation of the compared load in virtual time: a second opinion beside the planner's estimate.

Its parameters are localcloud's own, so a figure outside the estimate's range shows that one of the two is wrong.
It measures no hardware, and supports Cloud Run's accelerators only.
"""

import tempfile
from pathlib import Path

from bezel.planner.assemble.compare import USERS, Row
from bezel.planner.vllm.arguments import DEFAULT_BATCHED_TOKENS, DEFAULT_UTILIZATION
from bezel_catalog.sizing.roofline import Estimate, Verdict, verdict
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import accelerators
from bezel_simulated_vllm.scheduling.virtual_load import load, settings_of_server

_ROUNDS = 2  # requests of each user
_HOST_GIB = 80


def simulate(row: Row, context: int) -> tuple[float, Verdict] | None:
    """Simulate the row's load: output tokens a second, and their position in the estimate's range.

    None where the simulated server does not support the machine or does not start, or the model pools.
    """
    machine, speed = row.offer.machine, row.speed
    if not isinstance(speed, Estimate) or machine not in accelerators():
        return None
    arguments = (
        f"--max-model-len={context}",
        f"--max-num-seqs={USERS}",
        f"--max-num-batched-tokens={DEFAULT_BATCHED_TOKENS}",
        f"--gpu-memory-utilization={DEFAULT_UTILIZATION}",
    )
    hardware: dict[str, object] = {"accelerator": machine, "accelerators": 1, "cpu": 20, "memory_gib": _HOST_GIB}
    with tempfile.TemporaryDirectory() as folder:
        try:
            settings = settings_of_server(Path(folder), row.checkpoint.id, arguments, hardware)
        except StartError:
            return None
    rate = load(settings, USERS, prompt=speed.prompt_tokens, output=speed.output_tokens, rounds=_ROUNDS).rate
    return rate, verdict(speed.tokens_per_second_served, rate)
