"""Combinations of options, or of options and model, that vLLM refuses at start; each observed on a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog import vllm_options
from bezel.simulated_vllm.configuration.failures import StartError, validation_error
from bezel.simulated_vllm.configuration.options import VERSION

if TYPE_CHECKING:
    import argparse

    from bezel.simulated_vllm.configuration.checkpoint import Checkpoint

# The only backends of the exchange of tokens with experts that overlap it with computing.
_OVERLAPPING = ("deepep_low_latency", "deepep_high_throughput", "nixl_ep")


def check_combinations(options: argparse.Namespace, model: Checkpoint, *, accelerators: int) -> None:
    """Check every rule over parsed options.

    Args:
        options: the parsed command line.
        model: the served model.
        accelerators: number of accelerators of this machine.

    Raises:
        StartError: the real server would not start.
    """
    known = vllm_options(VERSION).registered["config-format"]
    if options.config_format not in known:
        raise validation_error("ModelConfig", f"Unknown config format `{options.config_format}`.")
    if options.config_format == "mistral":
        raise validation_error(
            "ModelConfig",
            f"Failed to load mistral 'params.json' config for model {options.model}. Please check if the model is a "
            "mistral-format model and if the config file exists.",
        )
    if options.disable_sliding_window and model.sliding_layers:
        raise StartError(
            "huggingface_hub.errors.StrictDataclassFieldValidationError",
            "Validation error for field 'sliding_window':\n    TypeError: Field 'sliding_window' expected int, got "
            "NoneType (value: None)",
        )
    _check_parallelism(options, accelerators)
    _check_experts(options, model)
    transfer = options.kv_transfer_config
    if transfer is not None and not transfer.get("kv_connector"):
        raise validation_error("VllmConfig", "Connector name is not set in KVTransferConfig")
    if transfer is not None and not transfer.get("kv_role"):
        raise validation_error("KVTransferConfig", "Please specify kv_role when kv_connector is set")


def _check_parallelism(options: argparse.Namespace, accelerators: int) -> None:
    tensor, decoding = options.tensor_parallel_size, options.decode_context_parallel_size
    if tensor % decoding:
        raise validation_error("ParallelConfig", f"tp_size={tensor} must be divisible by dcp_size={decoding}.")
    world = tensor * options.prefill_context_parallel_size
    if options.prefill_context_parallel_size > 1 and world > accelerators:
        raise validation_error(
            "ParallelConfig",
            f"World size ({world}) is larger than the number of available GPUs ({accelerators}) in this node.",
        )


def _check_experts(options: argparse.Namespace, model: Checkpoint) -> None:
    if options.enable_eplb and not options.enable_expert_parallel:
        raise validation_error("ParallelConfig", "enable_expert_parallel must be True to use EPLB.")
    if options.enable_elastic_ep and not options.enable_eplb:
        raise validation_error("ParallelConfig", "Elastic EP is only supported with enable_eplb=True.")
    if options.enable_expert_parallel and not model.experts:
        raise validation_error(
            "VllmConfig", "Number of experts in the model must be greater than 0 when expert parallelism is enabled."
        )
    overlaps = options.enable_dbo or options.ubatch_size > 1
    if overlaps and options.all2all_backend not in _OVERLAPPING:
        raise validation_error(
            "VllmConfig",
            "Microbatching currently only supports the deepep_low_latency, deepep_high_throughput, and nixl_ep all2all "
            f"backends. {options.all2all_backend} is not supported.",
        )
