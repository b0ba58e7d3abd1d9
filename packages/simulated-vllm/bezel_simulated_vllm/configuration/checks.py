"""Checks of a parsed command line and its environment as vLLM makes them at start; each observed on a real server.

Owns option names, combinations of options with each other and with the model, TPUs, and environment variables. Leaves
the texts to `refusals.toml`, single values to `fields.py`, memory to `memory.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel_catalog import tpu_variables, vllm_options
from bezel_simulated_vllm.configuration.failures import StartError, refusal
from bezel_simulated_vllm.configuration.relations.loader import check_loader
from bezel_simulated_vllm.configuration.relations.quantisation import check_online

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_catalog import Variable
    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel_simulated_vllm.configuration.hardware import Accelerator, SimulatedMachine

# The only backends of the exchange of tokens with experts that overlap it with computing.
_OVERLAPPING = ("deepep_low_latency", "deepep_high_throughput", "nixl_ep")
# The TPU plugin's own list (tpu-inference 0.32.0, platforms/tpu_platform.py: supported_quantization).
_TPU_QUANTISATIONS = ("compressed-tensors", "auto_awq", "fp8", "gpt_oss_mxfp4", "modelopt_fp4", "deepseek_v4_fp8")
# Methods whose settings are in a file of the checkpoint, and those whose class is made from its config.json.
_STORED = (
    *("awq", "auto_awq", "awq_marlin", "gptq", "auto_gptq", "gptq_marlin", "inc", "moe_wna16"),
    *("modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed"),
)
_ARGUMENTS = {
    "torchao": ("TorchAOConfig", "torchao_config"),
    "quark": ("QuarkConfig", "quant_config"),
    "online": ("OnlineQuantizationConfig", "args"),
}
_PACKED_BITS = 5.0  # compressed-tensors with fewer bits for a weight are integers in groups


def check_names(options: argparse.Namespace) -> None:
    """Check names of parsers and backends.

    Raises:
        StartError: the server knows no parser or backend of that name.
    """
    registered = vllm_options(options.release).registered
    if options.sse_keep_alive_interval < 0:
        raise refusal("sse-interval")
    parser, reasoning, backend = options.tool_call_parser, options.reasoning_parser, options.attention_backend
    if options.enable_auto_tool_choice and not parser:
        raise refusal("no-tool-parser")
    if options.enable_auto_tool_choice and parser not in registered["tool-call-parser"]:
        raise refusal("tool-parser", name=parser, known=",".join(registered["tool-call-parser"]))
    if reasoning and reasoning not in registered["reasoning-parser"]:
        raise refusal("reasoning-parser", name=reasoning, known=", ".join(registered["reasoning-parser"]))
    if backend and str(backend).upper() not in (*registered["attention-backend"], "AUTO"):
        backends = ", ".join(name for name in registered["attention-backend"] if name != "auto")
        raise refusal("attention-backend", name=backend, known=backends)


def check_combinations(options: argparse.Namespace, model: Checkpoint, *, accelerators: int) -> None:
    """Check combinations of options, and of options and model.

    Args:
        options: the parsed command line.
        model: the served model.
        accelerators: number of accelerators of this machine.

    Raises:
        StartError: the real server would not start.
    """
    if options.config_format not in vllm_options(options.release).registered["config-format"]:
        raise refusal("config-format", name=options.config_format)
    if options.config_format == "mistral":
        raise refusal("mistral-format", model=options.model)
    if options.disable_sliding_window and model.sliding_layers:
        raise refusal("sliding-window")
    tensor, decoding = options.tensor_parallel_size, options.decode_context_parallel_size
    if tensor % decoding:
        raise refusal("context-parallel", tensor=tensor, decoding=decoding)
    world = tensor * options.prefill_context_parallel_size
    if options.prefill_context_parallel_size > 1 and world > accelerators:
        raise refusal("world-size", world=world, accelerators=accelerators)
    _check_experts(options, model)
    transfer = options.kv_transfer_config
    if transfer is not None and not transfer.get("kv_connector"):
        raise refusal("no-connector")
    if transfer is not None and not transfer.get("kv_role"):
        raise refusal("no-kv-role")


def _check_experts(options: argparse.Namespace, model: Checkpoint) -> None:
    if options.enable_eplb and not options.enable_expert_parallel:
        raise refusal("eplb")
    if options.enable_elastic_ep and not options.enable_eplb:
        raise refusal("elastic-ep")
    if options.enable_expert_parallel and not model.experts:
        raise refusal("no-experts")
    overlaps = options.enable_dbo or options.ubatch_size > 1
    if overlaps and options.all2all_backend not in _OVERLAPPING:
        raise refusal("microbatching", backend=options.all2all_backend)


def check_quantisation(options: argparse.Namespace, model: Checkpoint, *, tpu: bool) -> None:
    """Check the quantisation: its name, the one of the checkpoint, and those that run on a GPU and not on a TPU.

    Raises:
        StartError: with the text of vLLM or of its TPU plugin.
    """
    name, stored = options.quantization, model.quantisation
    methods = vllm_options(options.release).registered["quantization"]
    if name and name not in methods:
        raise refusal("quantization", name=name, known=list(methods))
    if tpu and (name or stored) and (name or stored) not in _TPU_QUANTISATIONS:
        raise refusal("tpu-quantization", name=name or stored)
    if name == "compressed-tensors" and stored is None:
        raise refusal("plain-compressed-tensors")
    if name in _STORED and stored is None:
        raise refusal("no-quantization-config", name=name)
    if name in _ARGUMENTS and stored is None and not (name == "online" and options.quantization_config):
        kind, argument = _ARGUMENTS[name]
        raise refusal("plain-quantization", name=kind, argument=argument)
    if name and stored and name not in (stored, "humming"):
        raise refusal("other-quantization", own=stored, name=name)
    check_online(options, model)
    if tpu and stored == "compressed-tensors" and model.bits_per_weight < _PACKED_BITS:
        raise refusal("tpu-scheme")


def check_scheduler(batched: int, sequences: int, max_model_len: int, *, chunked: bool) -> None:
    """Check the tokens of a step against the lengths and the sequences.

    Raises:
        StartError: a step holds too few tokens.
    """
    if not chunked and batched < max_model_len:
        raise refusal("batch-below-length", batched=batched, length=max_model_len)
    if batched < sequences:
        raise refusal("batch-below-sequences", batched=batched, sequences=sequences)


def check_parallelism(options: argparse.Namespace, model: Checkpoint, machine: SimulatedMachine, judge: str) -> int:
    """Return the tensor parallel size; `judge` is the configuration class that checks it.

    Raises:
        StartError: it does not divide the heads, or exceeds the accelerators.
    """
    size = int(options.tensor_parallel_size)
    if model.attention_heads % size:
        raise refusal("attention-heads", judge=judge, heads=model.attention_heads, size=size)
    if size > machine.accelerators:
        raise refusal("world-size", world=size, accelerators=machine.accelerators)
    return size


def check_load_format(options: argparse.Namespace) -> None:
    """Check the load format: the configuration lowers an unknown one and accepts it; loading then fails.

    Raises:
        StartError: no loader has the format, or it does not fit the model's place.
    """
    options.load_format = name = str(options.load_format).lower()
    if name not in vllm_options(options.release).registered["load-format"]:
        raise refusal("load-format", name=name)
    streamed = name.startswith("runai_streamer")
    if options.model.startswith("gs://") and not streamed and name not in {"auto", "modelexpress"}:
        raise refusal("object-storage", name=name, model=options.model)
    check_loader(options)


def streamer_config(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the loader, where they are a map."""
    config = options.model_loader_extra_config
    return config if isinstance(config, dict) else {}


def check_sampling_fits(model: Checkpoint, chip: Accelerator, *, sequences: int, utilization: float) -> None:
    """Check that all logits of the largest batch of a TPU fit into the memory that the cache leaves free.

    Raises:
        StartError: too many sequences at a time.
    """
    if not chip.xla:
        return
    needed = chip.xla.logit_copies * 4 * sequences * model.vocabulary
    free = chip.memory_gib * (1 << 30) * (1 - utilization)
    if needed > free:
        raise refusal("tpu-memory", size=needed / (1 << 30), free=max(0.0, free) / (1 << 30))


def check_variables(environment: Mapping[str, str], release: str, *, xla: bool, names: bool) -> None:
    """Check the environment: the server reads every variable once at start, whether it uses it or not.

    Args:
        environment: the container's environment.
        release: the release of vLLM.
        xla: whether the variables of the TPU plugin are read, too.
        names: whether unknown names are refused (`--fail-on-environ-validation`).

    Raises:
        StartError: the reader of a variable refuses its value, with the reader's own text; or a name is unknown.
    """
    variables = vllm_options(release).variables
    readers = {**tpu_variables().variables, **variables} if xla else variables
    for name in (name for name in environment if name in readers):
        try:
            _read(readers[name], environment[name])
        except ValueError as error:
            kind = "json.decoder.JSONDecodeError" if isinstance(error, json.JSONDecodeError) else "ValueError"
            raise StartError(kind, str(error)) from None
    for name in environment if names else ():
        if name.startswith("VLLM_") and name not in variables:
            raise refusal("unknown-variable", name=name)


def _read(variable: Variable, value: str) -> None:
    if variable.kind == "int" or variable.strict:
        try:
            int(value)
        except ValueError:
            if variable.name == "VLLM_PORT":
                raise ValueError(f"VLLM_PORT '{value}' must be a valid integer") from None
            raise
    elif variable.kind == "float":
        float(value)
    elif variable.kind == "json":
        json.loads(value)
    elif variable.kind == "choice":
        _choose(variable, value)


def _choose(variable: Variable, value: str) -> None:
    parts = [word.strip() for word in value.split(",") if word.strip()] if variable.listed else [value]
    choices = [choice.lower() for choice in variable.choices] if variable.any_case else variable.choices
    for word in parts:
        if (word.lower() if variable.any_case else word) not in choices:
            raise ValueError(
                f"Invalid value '{word}' {'in' if variable.listed else 'for'} {variable.name}. "
                f"Valid options: {list(variable.choices)}."
            )
