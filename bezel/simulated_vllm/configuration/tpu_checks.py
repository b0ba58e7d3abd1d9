"""Refusals of tpu-inference on a TPU, of settings that vLLM accepts on a GPU. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.simulated_vllm.configuration.failures import StartError, exhausted, validation_error

if TYPE_CHECKING:
    import argparse

    from bezel.simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel.simulated_vllm.configuration.hardware import Accelerator, Xla

# The plugin's own list (tpu_inference/platforms/tpu_platform.py, supported_quantization).
_QUANTISATIONS = ("tpu_int8", "compressed-tensors", "awq", "fp8", "gpt_oss_mxfp4")


_PACKED_BITS = 5.0  # compressed-tensors with fewer bits for a weight are integers in groups


def check(options: argparse.Namespace, model: Checkpoint) -> None:
    """Refuse quantisations that run on a GPU and not on a TPU.

    Raises:
        StartError: with the text of vLLM or its plugin.
    """
    asked = options.quantization or model.quantisation
    if asked and asked not in _QUANTISATIONS:
        raise validation_error("ModelConfig", f"{asked} quantization is currently not supported in tpu.")
    if model.quantisation == "compressed-tensors" and model.bits_per_weight < _PACKED_BITS:
        layer = "model.layers.0.self_attn.qkv_proj"
        text = f"No compressed-tensors compatible scheme was found for layer {layer}."
        raise StartError("NotImplementedError", text, "engine")


def check_sampling_fits(model: Checkpoint, chip: Accelerator, xla: Xla, *, sequences: int, utilization: float) -> None:
    """Check that all logits of the largest batch fit into the memory that the cache leaves free.

    Raises:
        StartError: too many sequences at a time.
    """
    wanted = xla.logit_copies * 4 * sequences * model.vocabulary
    free = chip.memory_gib * (1 << 30) * (1 - utilization)
    if wanted > free:
        raise exhausted(wanted, free)
