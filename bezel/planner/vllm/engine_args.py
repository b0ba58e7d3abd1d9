"""Engine figures that the rest of the plan reads from vLLM's arguments, with vLLM's own defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option
from bezel.planner.vllm.arguments import DEFAULT_UTILIZATION, typed_values
from bezel.planner.vllm.host_options import check_host_options, offloaded_gib, read_host_options
from bezel.planner.vllm.speculation_checks import DRAFTLESS, Speculation, not_asynchronous
from bezel_base.errors import NOT_SET
from bezel_catalog.sizing.adapters import Adapters, read_adapters
from bezel_catalog.sizing.kv_cache import KV_ELEMENT_BYTES
from bezel_catalog.vllm.typed_values import integer, real_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.vllm.arguments import Argument
    from bezel_base.errors import Problem
    from bezel_catalog import Model
    from bezel_catalog.sizing.host_memory import HostOptions


@dataclass(frozen=True, slots=True)
class EngineArgs:
    """Figures of the engine's arguments: tokens, sequences, fractions of memory, GiB."""

    served_model: str
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    utilization: float
    kv_cache_dtype: str
    load_strategy: str
    load_buffer_bytes: int | None
    enforce_eager: bool
    async_scheduling: bool
    cached_states: bool
    release: str | None
    cpu_offload_gib: float
    host: HostOptions
    speculative: bool
    draft_tokens: int
    assistant_loaded: bool
    adapters: Adapters


def read_engine(
    arguments: Mapping[str, Argument],
    model: Model,
    *,
    release: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[EngineArgs | None, list[Problem]]:
    """Read the figures.

    Args:
        arguments: vLLM's arguments.
        model: the checkpoint.
        release: recorded release of vLLM whose rules they follow; None for the oldest.
        environment: the server's variables.

    Returns:
        The figures, or None where one of them cannot be read or makes no sense; problems of figures that are missing or
        that the plan cannot calculate with (the checks report what vLLM itself refuses).
    """
    values = typed_values(arguments)
    length = integer(values, "max-model-len", model.architecture.context)
    seqs = integer(values, "max-num-seqs")
    batched = integer(values, "max-num-batched-tokens")
    utilization = real_number(values, "gpu-memory-utilization")
    problems = [
        of_option(
            name,
            NOT_SET,
            "vLLM would choose it by the device, so the memory fit could not be planned.",
            "write a number instead of null.",
        )
        for name in ("max-num-seqs", "max-num-batched-tokens", "gpu-memory-utilization")
        if name not in values
    ]
    problems += check_host_options(values)
    dtype = str(values.get("kv-cache-dtype", "auto"))
    if dtype not in KV_ELEMENT_BYTES:
        consequence = "the size of its cache is not known, so the memory fit cannot be planned."
        problems.append(
            of_option("kv-cache-dtype", dtype, consequence, f"choose one of {', '.join(KV_ELEMENT_BYTES)}.")
        )
        return None, problems
    if not (length and seqs and batched and utilization) or min(length, seqs, batched, utilization) <= 0:
        return None, problems
    speculation = Speculation.of(values)
    return EngineArgs(
        served_model=served_names(values.get("served-model-name"), model)[0],
        # A length out of range is reported elsewhere; one in range shows whether the rest would fit.
        max_model_len=min(length, model.architecture.context),
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        utilization=utilization if utilization <= 1 else DEFAULT_UTILIZATION,
        kv_cache_dtype=dtype,
        load_strategy=_loading(values),
        load_buffer_bytes=streamer_buffer(values),
        enforce_eager=bool(values.get("enforce-eager", False)),
        # On by default in vLLM, except with these methods.
        async_scheduling=values.get("async-scheduling") is not False
        and speculation.method not in not_asynchronous(release, environment or {}),
        cached_states=values.get("enable-prefix-caching") is not False and values.get("mamba-cache-mode") != "all",
        release=release,
        cpu_offload_gib=offloaded_gib(values),
        host=read_host_options(values, integer(values, "tensor-parallel-size", 1) or 1),
        speculative=speculation.is_on,
        draft_tokens=max(0, speculation.tokens or 0) if speculation.is_on else 0,
        assistant_loaded=speculation.draft_model is not None and speculation.method not in DRAFTLESS,
        adapters=read_adapters(values),
    ), problems


def served_names(value: object, model: Model) -> tuple[str, ...]:
    """Names under which callers ask for the model, by the option served-model-name."""
    names = value if isinstance(value, list) else [value]
    return tuple(str(name) for name in names if name is not None) or (model.id,)


def _loading(values: Mapping[str, object]) -> str:
    if str(values.get("load-format", "auto")).startswith("runai_streamer"):
        return "stream"
    return str(values.get("safetensors-load-strategy") or "lazy")


def streamer_buffer(values: Mapping[str, Any]) -> int | None:
    """Size of the streamer's buffer by vLLM's arguments; None where it may grow to all weights."""
    config = values.get("model-loader-extra-config")
    limit = config.get("memory_limit") if isinstance(config, dict) else None
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0 else None
