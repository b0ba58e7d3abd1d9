"""Memory fit of a model on a stack's hardware, and refusals that name the part that is too large and by how much.

Owns the choice of the calculation by the hardware, and the repairs. Leaves the arithmetic to
bezel_catalog.sizing.memory (GPUs) and bezel_catalog.sizing.tpu_memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.problems import of_option, setting
from bezel_base.errors import Problem
from bezel_catalog import accelerators, models
from bezel_catalog.quantities import GIB, gib_text, memory_text
from bezel_catalog.sizing.kv_cache import KV_ELEMENT_BYTES, CachedStates
from bezel_catalog.sizing.memory import (
    CUDA_PART_BYTES,
    HOST_BASE_BYTES,
    MemoryFit,
    host_loading_bytes,
    memory_fit,
    sequences_at_a_time,
)
from bezel_catalog.sizing.tpu_memory import KV_ELEMENT_BYTES as TPU_ELEMENT_BYTES
from bezel_catalog.sizing.tpu_memory import TpuFit, tpu_memory_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.base.hardware import LeasedHardware
    from bezel.planner.vllm.engine_args import EngineArgs
    from bezel_catalog import Accelerator, Model

LeasedFit = TpuFit | MemoryFit
MAX_OFFLOADED = 3  # divisor of the weights: at most this part is proposed to be offloaded, as more would be too slow


def gpu_memory(model: Model, gpu: Accelerator, engine: EngineArgs, *, memory_gib: int, shards: int = 1) -> MemoryFit:
    """The memory of each GPU that shares the model, and of their host."""
    return memory_fit(
        model,
        gpu,
        utilization=engine.utilization,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        kv_cache_dtype=engine.kv_cache_dtype,
        memory_gib=memory_gib,
        load_strategy=engine.load_strategy,
        load_buffer_bytes=engine.load_buffer_bytes,
        speculative=engine.assistant_loaded,
        enforce_eager=engine.enforce_eager,
        async_scheduling=engine.async_scheduling,
        cpu_offload_gib=engine.cpu_offload_gib,
        adapters=engine.adapters,
        host=engine.host,
        states=CachedStates(engine.cached_states, engine.draft_tokens, engine.release, gpu.compute_capability),
        shards=shards,
    )


def leased_memory(model: Model, hardware: LeasedHardware, engine: EngineArgs) -> LeasedFit:
    """The memory of one machine: over all chips of a TPU slice, or of each GPU."""
    if hardware.slice is None:
        assert hardware.gpu is not None  # noqa: S101 - leased hardware has one or the other
        return gpu_memory(model, hardware.gpu, engine, memory_gib=hardware.host_memory_gib, shards=hardware.chips)
    return tpu_memory_fit(
        model,
        hardware.slice,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        utilization=engine.utilization,
    )


def kv_element_bytes(hardware: LeasedHardware, engine: EngineArgs) -> int:
    """Bytes of one element of the cache: two on a TPU, whatever kv-cache-dtype is."""
    return TPU_ELEMENT_BYTES if hardware.device == "tpu" else KV_ELEMENT_BYTES[engine.kv_cache_dtype]


def max_batch(fit: LeasedFit, model: Model, hardware: LeasedHardware, engine: EngineArgs, tokens: int) -> int:
    """Number of sequences of a length that decode together on one machine."""
    if isinstance(fit, TpuFit):
        return fit.sequences_at_a_time(tokens)
    return sequences_at_a_time(fit, model, tokens, kv_cache_dtype=engine.kv_cache_dtype, shards=hardware.chips)


def check_memory(
    fit: MemoryFit, engine: EngineArgs, model: Model, accelerator: Accelerator, *, leased: bool = False
) -> Iterator[Problem]:
    """Check the accelerator's memory at the start and in service, and the host's while the weights load and after.

    Args:
        fit: the memory of one machine.
        engine: figures of the arguments.
        model: the checkpoint.
        accelerator: one of its GPUs.
        leased: whether the host is a leased machine, whose memory is not a setting.
    """
    free = fit.accelerator_bytes - CUDA_PART_BYTES
    if fit.budget_bytes > free:
        yield of_option(
            "gpu-memory-utilization",
            f"{fit.utilization:g}",
            f"vLLM requests {gib_text(fit.budget_bytes)} GiB of {accelerator.id}, but driver and CUDA context leave "
            f"about {gib_text(free)} GiB: it exits while it starts (free memory is less than desired).",
            f"set it to {int(100 * free / fit.accelerator_bytes) / 100:g} or less.",
        )
    if fit.breaks:
        yield _too_large(fit, model, accelerator)
    if fit.host_needed_bytes > fit.host_bytes:
        yield _host_too_small(fit, engine, model, leased=leased)


def _host_too_small(fit: MemoryFit, engine: EngineArgs, model: Model, *, leased: bool) -> Problem:
    """The host's memory is too small: because of an option, where the largest one explains it, or by itself."""
    needed = memory_text(-(-fit.host_needed_bytes // GIB))
    killed = f"{'the kernel' if leased else 'Cloud Run'} kills the container (exit code 137)."
    options = "".join(f" + {gib_text(part.needed_bytes)} GiB of {part.option}" for part in fit.host_parts)
    largest = max(fit.host_parts, key=lambda part: part.needed_bytes, default=None)
    if largest and (leased or fit.host_needed_bytes - largest.needed_bytes <= fit.host_bytes):
        raised = "" if leased else f", or raise {setting('resources.memory')} to {needed} or more"
        gentler = "" if leased or not largest.loading else _gentler(fit, engine.load_strategy, model)
        return of_option(
            largest.option,
            f"{gib_text(largest.asked_bytes)} GiB",
            f"the host needs about {needed.removesuffix('Gi')} GiB and has {gib_text(fit.host_bytes)}: "
            f"{gib_text(HOST_BASE_BYTES)} GiB for the processes{options}, weights while they "
            f"load; pinned memory is allocated in powers of two: {killed}",
            f"{gentler}lower {largest.option} or remove it{raised}.",
        )
    return Problem(
        setting("resources.memory") if not leased else setting("accelerator"),
        memory_text(fit.host_bytes // GIB),
        f"loading {gib_text(model.weight_bytes)} GiB of weights ({engine.load_strategy}) on top of "
        f"{gib_text(HOST_BASE_BYTES)} GiB for the processes{options} needs about {needed.removesuffix('Gi')} GiB: "
        + killed,
        "choose a larger machine."
        if leased
        else f"{_gentler(fit, engine.load_strategy, model)}raise it to {needed} or more.",
    )


def _too_large(fit: MemoryFit, model: Model, accelerator: Accelerator) -> Problem:
    if fit.breaks == "KV cache":
        # A length that fits, in whole 1024 tokens, by the proportion of available to needed memory.
        longest = int(fit.max_model_len * fit.kv_available_bytes / fit.kv_start_bytes) // 1024 * 1024
        repairs = [f"{longest} or less"] if longest else _offload(fit, model)
        return of_option(
            "max-model-len",
            fit.max_model_len,
            f"one sequence of this length needs {gib_text(fit.kv_start_bytes)} GiB of KV cache at the start, and "
            f"{gib_text(fit.kv_available_bytes)} GiB are left: vLLM exits while it starts.",
            "".join(f"set {'it to ' if longest else ''}{repair}, or " for repair in repairs)
            + f"lower {'max-loras, ' if fit.adapter_bytes else ''}max-num-batched-tokens, or use kv-cache-dtype: fp8.",
        )
    parts = f"{gib_text(fit.weight_bytes - fit.offloaded_bytes)} GiB of weights"
    parts += f" + {gib_text(fit.draft_bytes)} of drafts" if fit.draft_bytes else ""
    parts += f" + {gib_text(fit.adapter_bytes)} for adapters" if fit.adapter_bytes else ""
    if fit.breaks == "overhead":
        parts += f" + {gib_text(fit.activation_bytes + fit.fixed_bytes)} of overhead (estimated)"
    exceed = "leave nothing of" if fit.breaks == "overhead" else "alone exceed"
    return Problem(
        setting("model"),
        model.id,
        f"it does not fit {accelerator.id}: {parts} {exceed} the {gib_text(fit.budget_bytes)} GiB that "
        f"gpu-memory-utilization={fit.utilization:g} gives, and the KV cache needs {gib_text(fit.kv_start_bytes)}.",
        _smaller_or_larger(fit, model),
    )


def _smaller_or_larger(fit: MemoryFit, model: Model) -> str:
    needed = (fit.resident_bytes + fit.kv_start_bytes) / fit.utilization
    choices = [
        *(["a smaller max-loras or max-lora-rank"] if fit.adapter_bytes > fit.budget_bytes // 20 else []),
        *(["a smaller max-num-batched-tokens"] if fit.activation_bytes > fit.budget_bytes // 10 else []),
        *(f"model: {name}" for name in _lighter(model)),
        *(f"accelerator: {gpu.id}" for gpu in accelerators().values() if gpu.memory_bytes >= needed),
        *_offload(fit, model),
    ]
    return f"choose {', or '.join(choices) or 'a smaller model'}."


def _lighter(model: Model) -> list[str]:
    return [
        other.id
        for other in models().values()
        if other.architecture == model.architecture and other.weight_bytes < model.weight_bytes
    ]


def _offload(fit: MemoryFit, model: Model) -> list[str]:
    """The slowest repair: only for a checkpoint that has no lighter form, and for a small part of it."""
    gib = -(-(fit.offloaded_bytes + fit.kv_start_bytes - fit.kv_available_bytes) // GIB)
    if _lighter(model) or gib * GIB > fit.weight_bytes // MAX_OFFLOADED:
        return []
    return [f"cpu-offload-gb: {gib} (each step then reads them from the host, which is many times slower)"]


def _gentler(fit: MemoryFit, strategy: str, model: Model) -> str:
    """The loading that needs less memory, offered before the repair that costs more."""
    pinned = sum(part.needed_bytes for part in fit.host_parts)
    lazy = host_loading_bytes(model.weight_bytes, strategy="lazy") + pinned
    if strategy == "lazy" or lazy > fit.host_bytes:
        return ""
    if strategy in ("stream", "download"):
        return "set weights.loading: fuse, or "
    return "set vllm.safetensors-load-strategy: lazy, or "


def check_leased_memory(
    fit: LeasedFit, engine: EngineArgs, model: Model, hardware: LeasedHardware
) -> Iterator[Problem]:
    """Check the memory of a leased machine."""
    if isinstance(fit, MemoryFit):
        assert hardware.gpu is not None  # noqa: S101 - this fit is of GPUs
        yield from check_memory(fit, engine, model, hardware.gpu, leased=True)
        yield from _shared_memory(fit)
    elif fit.breaks == "sampling":
        yield of_option(
            "max-num-seqs",
            fit.max_num_seqs,
            f"the logits of a whole batch take {gib_text(fit.sampling_bytes)} GiB on each chip, beside the "
            f"{fit.utilization:.0%} that vLLM fills: RESOURCE_EXHAUSTED while it warms up.",
            "set it to 256 or less, which is known to be stable, or lower gpu-memory-utilization.",
        )
    elif fit.breaks == "KV cache":
        longest = fit.kv_tokens // 1024 * 1024
        yield of_option(
            "max-model-len",
            fit.max_model_len,
            f"one sequence of this length needs {gib_text(fit.max_model_len * fit.kv_token_bytes)} GiB of KV cache on "
            f"{hardware.id} (sliding layers keep the full length there), and {gib_text(fit.kv_available_bytes)} GiB "
            "are left: vLLM exits while it starts.",
            f"{f'set it to {longest} or less, or ' if longest else ''}use more chips.",
        )
    elif fit.breaks:
        yield Problem(
            setting("model"),
            model.id,
            f"it does not fit {hardware.id}: {gib_text(fit.weight_bytes)} GiB of weights and "
            f"{gib_text(fit.overhead_bytes)} of overhead against {gib_text(fit.budget_bytes)} GiB for vLLM.",
            _larger_slice(fit, model),
        )


def _shared_memory(fit: MemoryFit) -> Iterator[Problem]:
    """Refuse a cache beyond the machine's /dev/shm, in which vLLM maps it: half of its memory, as Linux sets it."""
    for part in fit.host_parts:
        if part.option == "kv-offloading-size" and part.asked_bytes > fit.host_bytes // 2:
            yield of_option(
                part.option,
                f"{gib_text(part.asked_bytes)} GiB",
                f"shared memory has half of the machine's {gib_text(fit.host_bytes)} GiB: vLLM exits "
                "while it starts (Insufficient space in /dev/shm).",
                f"set it to {int(fit.host_bytes / 2 / GIB)} or less.",
            )


def _larger_slice(fit: TpuFit, model: Model) -> str:
    needed = (fit.resident_bytes + fit.max_model_len * fit.kv_token_bytes) / fit.utilization
    choices = [
        f"accelerator: {hardware.id}"
        for hardware in leased_hardware().values()
        if hardware.slice is not None and hardware.chips * hardware.slice.memory_bytes >= needed
    ]
    choices += [
        f"model: {other.id}"
        for other in models().values()
        if other.weight_bytes < model.weight_bytes and not other.refused_on("tpu")
    ]
    return f"choose {', or '.join(choices)}."
