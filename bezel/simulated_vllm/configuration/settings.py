"""Settings of the engine, made from a parsed command line, a machine and a model's files, or vLLM's refusal.

Pure apart from reading the model's two small JSON files. Owns the checks of the real server at start: paths, names of
parsers, lengths, parallelism, memory. Leaves the delay and the log lines of a refusal to `startup.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel.catalog import vllm_options
from bezel.simulated_vllm.configuration import tpu_checks, variables
from bezel.simulated_vllm.configuration.checkpoint import read_checkpoint
from bezel.simulated_vllm.configuration.combinations import check_combinations
from bezel.simulated_vllm.configuration.failures import StartError, validation_error
from bezel.simulated_vllm.configuration.fields import check_fields
from bezel.simulated_vllm.configuration.hub import is_hub_id
from bezel.simulated_vllm.configuration.memory import MemoryUse, memory_use
from bezel.simulated_vllm.configuration.options import VERSION
from bezel.simulated_vllm.configuration.speculation import Speculation, is_found, missing_model, speculation

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel.simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel.simulated_vllm.configuration.hardware import SimulatedMachine


@dataclass(frozen=True)
class EngineSettings:
    """The settings of the engine and of the HTTP server."""

    model_path: str
    served_names: tuple[str, ...]
    model: Checkpoint
    machine: SimulatedMachine
    max_model_len: int
    max_num_seqs: int
    max_batched_tokens: int
    kv_cache_dtype: str
    gpu_memory_utilization: float
    prefix_caching: bool
    tensor_parallel: int
    async_scheduling: bool
    speculation: Speculation | None
    memory: MemoryUse
    max_queued_requests: int | None
    max_queued_tokens: int | None
    tool_parser: str | None
    auto_tools: bool
    reasoning_parser: str | None
    template_defaults: Mapping[str, Any]
    track_load: bool
    prompt_tokens_details: bool
    per_request_metrics: bool
    force_usage: bool
    request_id_headers: bool
    seed: int
    port: int
    # Excluded from every printed or hashed form of the settings.
    api_keys: tuple[str, ...] = field(repr=False)


# Keys that vLLM passes on to Run:ai's streamer, and the streamer's default memory limit in bytes.
_STREAMER_KEYS = {"distributed", "concurrency", "memory_limit"}
_STREAMER_BYTES = 40_000_000_000


def make_settings(
    options: argparse.Namespace, machine: SimulatedMachine, environment: Mapping[str, str]
) -> EngineSettings:
    """Check a command line as vLLM does at start, and return the settings.

    Args:
        options: the result of `options.parse`.
        machine: accelerator, memory and mounts of the instance.
        environment: the container's environment, with the VLLM_* variables.

    Raises:
        StartError: the real server would not start; the error holds its exception and message.
    """
    _check_names(options)
    known = vllm_options(VERSION).variables
    variables.check_values(environment, known, xla=bool(machine.accelerator.xla))
    if options.fail_on_environ_validation:
        variables.check_names(environment, known)
    directory = machine.resolve(options.model)
    if not (directory / "config.json").is_file():
        raise missing_model(options.model, is_found(options.model, directory))
    model = read_checkpoint(directory)
    check_fields(options, multimodal=model.multimodal)
    check_combinations(options, model, accelerators=machine.accelerators)
    max_model_len = _max_model_len(options, model, environment)
    _check_quantisation(options, model)
    xla = machine.accelerator.xla
    if xla:
        tpu_checks.check(options, model)
    drafting = speculation(options, machine, _methods())
    batched = options.max_num_batched_tokens or _default_batched(options, machine, max_model_len)
    sequences = options.max_num_seqs or min(machine.accelerator.default_sequences, batched)
    _check_scheduler(options, batched, sequences, max_model_len)
    parallel = _tensor_parallel(options, model, machine, "SpeculativeConfig" if drafting else "VllmConfig")
    _check_load_format(options)
    # N-gram drafts are made from the last step's tokens: the next batch cannot be prepared before that step ends.
    overlapping = options.async_scheduling is not False and not (drafting and drafting.method == "ngram")
    memory = memory_use(
        model,
        machine,
        loader_bytes=_loader_bytes(options, model),
        utilization=_utilization(options),
        kv_cache_dtype=options.kv_cache_dtype,
        max_model_len=max_model_len,
        in_flight_tokens=batched * (2 if overlapping else 1),
        batched_tokens=batched,
        tensor_parallel=parallel,
        draft=drafting.draft if drafting else None,
        kv_cache_memory_bytes=options.kv_cache_memory_bytes,
        blocks_override=options.num_gpu_blocks_override,
        cpu_offload_gib=options.cpu_offload_gb,
        lora_ranks=options.max_loras * options.max_lora_rank if options.enable_lora else 0,
    )
    if xla:
        tpu_checks.check_sampling_fits(
            model, machine.accelerator, xla, sequences=sequences, utilization=_utilization(options)
        )
    return EngineSettings(
        model_path=options.model,
        served_names=tuple(options.served_model_name or [options.model]),
        model=model,
        machine=machine,
        max_model_len=memory.max_model_len,
        max_num_seqs=sequences,
        max_batched_tokens=batched,
        kv_cache_dtype=options.kv_cache_dtype,
        gpu_memory_utilization=_utilization(options),
        prefix_caching=options.enable_prefix_caching is not False,
        tensor_parallel=parallel,
        async_scheduling=overlapping,
        speculation=drafting,
        memory=memory,
        max_queued_requests=options.max_num_queued_reqs,
        max_queued_tokens=options.max_num_queued_tokens,
        api_keys=tuple(options.api_key or ([environment["VLLM_API_KEY"]] if environment.get("VLLM_API_KEY") else [])),
        tool_parser=options.tool_call_parser,
        auto_tools=options.enable_auto_tool_choice,
        reasoning_parser=options.reasoning_parser or None,
        template_defaults=options.default_chat_template_kwargs or {},
        track_load=options.enable_server_load_tracking,
        prompt_tokens_details=options.enable_prompt_tokens_details,
        per_request_metrics=options.enable_per_request_metrics,
        force_usage=options.enable_force_include_usage,
        request_id_headers=options.enable_request_id_headers,
        seed=options.seed or 0,
        port=options.port,
    )


def _default_batched(options: argparse.Namespace, machine: SimulatedMachine, max_model_len: int) -> int:
    """Return the default token budget of a step: without chunked prefill it holds the longest prompt."""
    default = machine.accelerator.default_batched_tokens
    return max(default, max_model_len) if options.enable_chunked_prefill is False else default


def _methods() -> tuple[str, ...]:
    found = vllm_options(VERSION).find("--spec-method")
    return found[0].choices if found else ()


def _check_names(options: argparse.Namespace) -> None:
    registered = vllm_options(VERSION).registered
    if options.sse_keep_alive_interval < 0:
        raise StartError(
            "ValueError",
            "Error: --sse-keep-alive-interval must be a non-negative integer (0 disables keep-alive comments).",
        )
    if options.enable_auto_tool_choice and not options.tool_call_parser:
        raise StartError("TypeError", "Error: --enable-auto-tool-choice requires --tool-call-parser")
    if options.enable_auto_tool_choice and options.tool_call_parser not in registered["tool-call-parser"]:
        known = ",".join(registered["tool-call-parser"])
        raise StartError(
            "KeyError", f"'invalid tool call parser: {options.tool_call_parser} (chose from {{ {known} }})'"
        )
    if options.reasoning_parser and options.reasoning_parser not in registered["reasoning-parser"]:
        known = ", ".join(registered["reasoning-parser"])
        raise StartError(
            "KeyError", f"\"Reasoning parser '{options.reasoning_parser}' not found. Available parsers: {known}\""
        )
    backend = options.attention_backend
    if backend and str(backend).upper() not in (*registered["attention-backend"], "AUTO"):
        known = ", ".join(name for name in registered["attention-backend"] if name != "auto")
        raise StartError("ValueError", f"Unknown attention backend: '{backend}'. Valid options are: {known}")


def _max_model_len(options: argparse.Namespace, model: Checkpoint, environment: Mapping[str, str]) -> int:
    """Return the requested length, -1 for the longest that fits, the model's own where none is requested."""
    asked: int | None = options.max_model_len
    if asked is None:
        return model.context
    if asked > model.context and environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise validation_error(
            "ModelConfig",
            f"User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={float(model.context)} or model_max_length=None in model's config.json). "
            "To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
        )
    return asked


def _check_quantisation(options: argparse.Namespace, model: Checkpoint) -> None:
    asked = options.quantization
    if not asked:
        return
    known = vllm_options(VERSION).registered["quantization"]
    if asked not in known:
        raise validation_error("ModelConfig", f"Unknown quantization method: {asked}. Must be one of {list(known)}.")
    if asked == "compressed-tensors" and model.quantisation is None:
        raise StartError(
            "TypeError",
            "CompressedTensorsConfig.__init__() missing 3 required positional arguments: 'target_scheme_map', "
            "'ignore', and 'quant_format'",
        )
    if model.quantisation and asked != model.quantisation:
        raise validation_error(
            "ModelConfig",
            f"Quantization method specified in the model config ({model.quantisation}) does not match the quantization "
            f"method specified in the `quantization` argument ({asked}).",
        )


def _check_scheduler(options: argparse.Namespace, batched: int, sequences: int, max_model_len: int) -> None:
    if options.enable_chunked_prefill is False and batched < max_model_len:
        raise validation_error(
            "SchedulerConfig",
            f"max_num_batched_tokens ({batched}) is smaller than max_model_len ({max_model_len}). This effectively "
            "limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. "
            "Please increase max_num_batched_tokens or decrease max_model_len.",
        )
    if batched < sequences:
        raise validation_error(
            "SchedulerConfig",
            f"max_num_batched_tokens ({batched}) must be greater than or equal to max_num_seqs ({sequences}).",
        )


def _check_load_format(options: argparse.Namespace) -> None:
    """Check the load format: the configuration lowers an unknown one and accepts it; loading then fails."""
    options.load_format = str(options.load_format).lower()
    if options.load_format not in vllm_options(VERSION).registered["load-format"]:
        raise StartError("ValueError", f"Load format `{options.load_format}` is not supported", "engine")
    streamed = str(options.load_format).startswith("runai_streamer")
    if options.model.startswith("gs://") and not streamed and options.load_format not in {"auto", "modelexpress"}:
        raise validation_error(
            "VllmConfig",
            "To load a model from object storage (S3/GCS/Azure), 'load_format' must be 'modelexpress', "
            f"'runai_streamer' or 'runai_streamer_sharded', but got '{options.load_format}'. Model: {options.model}",
        )
    unexpected = set(_streamer_config(options)) - _STREAMER_KEYS
    if streamed and unexpected:
        raise StartError("ValueError", f"Unexpected extra config keys for runai_streamer: {unexpected}", "engine")


def _loader_bytes(options: argparse.Namespace, model: Checkpoint) -> int:
    """Return the bytes that the loader holds in host memory: all files of the hub, a streamer's buffer, or one file."""
    if is_hub_id(options.model):
        return model.weight_bytes
    if options.load_format != "runai_streamer" and not options.model.startswith("gs://"):
        return model.largest_shard_bytes
    limit = int(_streamer_config(options).get("memory_limit", _STREAMER_BYTES))
    return model.weight_bytes if limit < 0 else min(model.weight_bytes, limit)


def _streamer_config(options: argparse.Namespace) -> dict[str, Any]:
    config = options.model_loader_extra_config
    return config if isinstance(config, dict) else {}


def _utilization(options: argparse.Namespace) -> float:
    share = float(options.gpu_memory_utilization)
    if not 0 < share <= 1:
        word, kind = ("less", "less_than_equal") if share > 1 else ("greater", "greater_than")
        bound = "less than or equal to 1" if word == "less" else "greater than 0"
        raise validation_error("CacheConfig", f"Input should be {bound}", kind=kind, field="gpu_memory_utilization")
    return share


def _tensor_parallel(options: argparse.Namespace, model: Checkpoint, machine: SimulatedMachine, judge: str) -> int:
    size = int(options.tensor_parallel_size)
    if model.attention_heads % size:
        raise validation_error(
            judge,
            f"Total number of attention heads ({model.attention_heads}) must be divisible by tensor parallel size "
            f"({size}).",
        )
    if size > machine.accelerators:
        raise validation_error(
            "ParallelConfig",
            f"World size ({size}) is larger than the number of available GPUs ({machine.accelerators}) in this node.",
        )
    return size
