"""Kernels of experts and of linear layers, which vLLM 0.32.0 selects once it makes the layers.

What is refused, and in which words, is recorded for the encodings of Gemma 4 and for the capabilities of its GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_catalog.vllm.kernels import refused_kernels
from bezel_simulated_vllm.configuration.failures import StartError

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_ENCODINGS = {16.0: "bf16", 8.0: "fp8", 4.25: "w4a16"}


def check_kernels(options: argparse.Namespace, model: Checkpoint, capability: str) -> None:
    """Check the selected kernels, the option's before those of the configuration.

    Args:
        options: the parsed command line.
        model: the served model.
        capability: compute capability of the GPU, e.g. "8.9".

    Raises:
        StartError: a layer has no such kernel.
    """
    config: dict[str, Any] = options.kernel_config if isinstance(options.kernel_config, dict) else {}
    encoding = _ENCODINGS.get(model.bits_per_weight, "")
    linear = "auto" if config.get("linear_backend_per_quant") else options.linear_backend
    if linear == "auto" and not config.get("linear_backend_per_quant"):
        linear = _name(config.get("linear_backend"))
    experts = _name(config.get("moe_backend")) if options.moe_backend == "auto" else options.moe_backend
    for option, name in (("linear-backend", linear), ("moe-backend", experts if model.experts else "auto")):
        if name == "exllama" and options.dtype in {"float16", "half"}:
            continue  # what is recorded of it is that it refuses bfloat16
        if error := refused_kernels(option, encoding, capability).get(name):
            kind, _, text = error.partition(": ")
            raise StartError(kind, text, "engine")


def _name(value: object) -> str:
    return value.lower().replace("-", "_") if isinstance(value, str) else "auto"
