"""Settings of the engine, made from a parsed command line, a machine and a model's files, or vLLM's refusal.

Pure apart from reading the model's two small JSON files. Owns the order of vLLM's checks at start. Leaves the
checks to `checks.py`, and the delay and the log lines of a refusal to `startup.py`.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.pooling import Pooling, read_pooling
from bezel_simulated_vllm.configuration import checks
from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.configuration.fields import check_fields
from bezel_simulated_vllm.configuration.hub import is_hub_id
from bezel_simulated_vllm.configuration.memory import MemoryUse, memory_use
from bezel_simulated_vllm.configuration.relations import option_relations, parsers, start_values, transfers
from bezel_simulated_vllm.configuration.relations.adapter_options import check_adapters
from bezel_simulated_vllm.configuration.relations.attention import check_attention, check_attention_options
from bezel_simulated_vllm.configuration.relations.devices import (
    check_captured_sizes,
    check_lengths,
    check_relations,
    steps_overlap,
)
from bezel_simulated_vllm.configuration.relations.draft_options import check_draft_options
from bezel_simulated_vllm.configuration.relations.encoder import check_longest_item, longest_item
from bezel_simulated_vllm.configuration.relations.kernels import check_kernels
from bezel_simulated_vllm.configuration.relations.processor import check_processor
from bezel_simulated_vllm.configuration.speculation import Speculation, read_model, speculation
from bezel_simulated_vllm.release import DEFAULT_RELEASE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.adapters import LoadedAdapters, LoRAModulePath
    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine

# Modes in which log probabilities are those of all tokens; the others return raw scores.
_LOGPROBS_MODES = {"raw_logprobs", "processed_logprobs"}


@dataclass(frozen=True)
class AllowedOrigins:
    """Which pages of other origins a browser may let call the server."""

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("*",)
    headers: tuple[str, ...] = ("*",)
    credentials: bool = False


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
    has_template: bool
    track_load: bool
    prompt_tokens_details: bool
    per_request_metrics: bool
    returns_logprobs: bool
    force_usage: bool
    request_id_headers: bool
    allowed: AllowedOrigins
    seed: int
    port: int
    adapters: tuple[LoRAModulePath, ...] = field(default=(), kw_only=True)
    changeable_adapters: LoadedAdapters | None = field(default=None, kw_only=True, repr=False, compare=False)
    pooling: Pooling | None = field(default=None, kw_only=True)
    release: str = field(default=DEFAULT_RELEASE, kw_only=True)
    grammar_backend: str = field(default="auto", kw_only=True)
    # Excluded from every printed or hashed form of the settings.
    api_keys: tuple[str, ...] = field(repr=False)

    @property
    def callable_names(self) -> tuple[str, ...]:
        """Names that a request may ask for: those of the model and of its adapters."""
        return (*self.served_names, *(adapter.name for adapter in self.loaded_adapters))

    @property
    def loaded_adapters(self) -> tuple[LoRAModulePath, ...]:
        """Adapters that are served now: those of the start, unless callers changed them."""
        return self.adapters if self.changeable_adapters is None else self.changeable_adapters.modules

    @functools.cached_property
    def fingerprint(self) -> str:
        """The `system_fingerprint` of the responses."""
        return f"vllm-{self.release}-{hashlib.sha256(repr(self).encode()).hexdigest()[:8]}"


def _words(value: object) -> tuple[str, ...]:
    """Return the words of an option that the parser reads as JSON of any kind."""
    return tuple(map(str, value)) if isinstance(value, list) else ()


_STREAMER_BYTES = 40_000_000_000  # the default memory limit of Run:ai's streamer


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
    chip = machine.accelerator
    option_relations.check_command_line(options, environment)
    checks.check_names(options)
    parsers.check_structured_outputs(options)
    checks.check_variables(environment, options.release, xla=bool(chip.xla), names=options.fail_on_environ_validation)
    model = read_model(options.model, machine)
    start_values.check_media(options, multimodal=model.multimodal)
    check_fields(options, multimodal=model.multimodal)
    checks.check_combinations(options, model, accelerators=machine.accelerators)
    transfers.check_encoder_connector(options.ec_transfer_config)
    if not chip.xla:  # the plugin has connectors of its own
        start_values.check_connector(options.kv_transfer_config)
    max_model_len = _max_model_len(options, model, environment)
    checks.check_quantisation(options, model, tpu=bool(chip.xla))
    check_relations(options, model, environment, tpu=bool(chip.xla))
    check_draft_options(options)
    drafting = speculation(options, machine)
    # Without chunked prefill a step holds the longest prompt.
    pooling = _pooling(options, model)
    # So does a model that pools over all tokens of a prompt.
    is_whole = options.enable_chunked_prefill is False or (pooling is not None and not _chunks(model))
    default = max(chip.default_batched_tokens, max_model_len if is_whole else 0)
    if model.bidirectional_images:  # vLLM raises its own default, and no value that is given
        default = max(default, longest_item(options, model))
    batched = options.max_num_batched_tokens or default
    sequences = options.max_num_seqs or min(chip.default_sequences, batched)
    checks.check_scheduler(
        batched, sequences, max_model_len, chunked=not is_whole or bool(options.enable_chunked_prefill)
    )
    check_lengths(options, sequences, max_model_len)
    judge = "SpeculativeConfig" if drafting else "VllmConfig"
    parallel = checks.check_parallelism(options, model, machine, judge)
    check_adapters(options, environment, drafting, batched=batched, sequences=sequences)
    option_relations.check_engine(options, model, environment)
    check_processor(options, model, tpu=bool(chip.xla))
    parsers.check_reasoning_config(options, model)
    parsers.check_tokenizer(options)
    check_longest_item(options, model, batched, tpu=bool(chip.xla))
    checks.check_load_format(options)
    check_attention_options(options)
    if not chip.xla:
        check_attention(options, model, chip.compute_capability, environment)
        check_kernels(options, model, chip.compute_capability)
    utilization = float(options.gpu_memory_utilization)
    if not 0 < utilization <= 1:
        raise refusal("utilization-high" if utilization > 1 else "utilization-low")
    overlapping = steps_overlap(options, environment, tpu=bool(chip.xla))
    memory = memory_use(
        options,
        model,
        machine,
        loader_bytes=_loader_bytes(options, model),
        utilization=utilization,
        max_model_len=max_model_len,
        in_flight_tokens=batched * (2 if overlapping else 1),
        batched_tokens=batched,
        draft=drafting.draft if drafting else None,
    )
    if not chip.xla:
        check_captured_sizes(options, batched)
        start_values.check_match_unit(options, memory.layout)
        transfers.check_offloading_connector(options, memory.layout, environment)
        transfers.check_retention(options, memory.layout)
    checks.check_sampling_fits(model, chip, sequences=sequences, utilization=utilization)
    parsers.check_application(options, model)
    return EngineSettings(
        model_path=options.model,
        served_names=tuple(options.served_model_name or [options.model]),
        model=model,
        machine=machine,
        max_model_len=memory.max_model_len,
        max_num_seqs=sequences,
        max_batched_tokens=batched,
        kv_cache_dtype=options.kv_cache_dtype,
        gpu_memory_utilization=utilization,
        prefix_caching=_chunks(model) if options.enable_prefix_caching is None else options.enable_prefix_caching,
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
        has_template=model.has_template or bool(options.chat_template),
        track_load=options.enable_server_load_tracking,
        prompt_tokens_details=options.enable_prompt_tokens_details,
        per_request_metrics=options.enable_per_request_metrics,
        returns_logprobs=options.logprobs_mode in _LOGPROBS_MODES,
        force_usage=options.enable_force_include_usage,
        request_id_headers=options.enable_request_id_headers,
        allowed=AllowedOrigins(
            origins=_words(options.allowed_origins),
            methods=_words(options.allowed_methods),
            headers=_words(options.allowed_headers),
            credentials=bool(options.allow_credentials),
        ),
        seed=options.seed or 0,
        port=options.port,
        pooling=pooling,
        release=options.release,
        grammar_backend=(options.structured_outputs_config or {}).get("backend") or "auto",
    )


def _pooling(options: argparse.Namespace, model: Checkpoint) -> Pooling | None:
    """Return how the model pools with these options, None where it generates."""
    return read_pooling(
        model.config,
        options.release,
        has_modules=model.has_pooling_module,
        runner=options.runner,
        convert=options.convert,
        task=(options.pooler_config or {}).get("task"),
    )


def _chunks(model: Checkpoint) -> bool:
    """Whether a prompt is computed in parts, which the cache of prompts needs too: not where tokens see later ones."""
    return model.is_causal


def _max_model_len(options: argparse.Namespace, model: Checkpoint, environment: Mapping[str, str]) -> int:
    """Return the requested length, -1 for the longest that fits, the model's own where none is requested."""
    length: int | None = options.max_model_len
    if length is None:
        return model.context
    if length > model.context and environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise refusal("max-model-len", length=length, context=float(model.context))
    return length


def _loader_bytes(options: argparse.Namespace, model: Checkpoint) -> int:
    """Return the bytes that the loader holds in host memory: all files of the hub, a streamer's buffer, or one file."""
    if is_hub_id(options.model):
        return model.weight_bytes
    if options.load_format != "runai_streamer" and not options.model.startswith("gs://"):
        return model.largest_shard_bytes
    limit = int(checks.streamer_config(options).get("memory_limit", _STREAMER_BYTES))
    return model.weight_bytes if limit < 0 else min(model.weight_bytes, limit)
