"""Options against the device that serves the model: GPUs by their compute capability, TPUs by the plugin's rules.

Owns the order of these rules. Leaves memory to bezel.planner.rules.memory_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.vllm.attention_checks import check_attention

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.catalog import Accelerator, Model
    from bezel.errors import Problem


def check_device(
    values: Mapping[str, Any], model: Model, gpu: Accelerator | None, environment: Mapping[str, str], *, devices: int
) -> Iterator[Problem]:
    """Refuse options with which a start fails on this device.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        gpu: the GPU, None for a TPU.
        environment: variables of the container.
        devices: GPUs or chips of one machine.
    """
    if gpu is not None:
        yield from check_attention(values, model, gpu.compute_capability, environment)
