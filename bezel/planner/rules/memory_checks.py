"""Refuse models that do not fit the memory, naming the part that is too large and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog import accelerators, models
from bezel.errors import Problem
from bezel.planner.base.problems import setting
from bezel.planner.sizing.memory import CUDA_PART_BYTES, GIB, HOST_BASE_BYTES, MemoryFit, host_loading_bytes

if TYPE_CHECKING:
    from bezel.catalog import Accelerator, Model
    from bezel.planner.vllm.engine_args import EngineArgs

MOST_OFFLOADED = 3  # divisor of the weights: at most this part is proposed to be offloaded, as more would be too slow


def check_memory(fit: MemoryFit, engine: EngineArgs, model: Model, accelerator: Accelerator) -> list[Problem]:
    """Check the accelerator's memory at the start and in service, and the host's while the weights load."""
    return [*_start(fit, accelerator), *_device(fit, model, accelerator), *_host(fit, engine, model)]


def _start(fit: MemoryFit, accelerator: Accelerator) -> list[Problem]:
    free = fit.accelerator_bytes - CUDA_PART_BYTES
    if fit.budget_bytes <= free:
        return []
    return [
        Problem(
            setting("vllm.gpu-memory-utilization"),
            f"{fit.utilization:g}",
            f"vLLM asks for {fit.budget_bytes / GIB:.2f} GiB of {accelerator.id}, but driver and CUDA context leave "
            f"about {free / GIB:.2f} GiB: it exits while it starts (free memory is less than desired).",
            f"set it to {int(100 * free / fit.accelerator_bytes) / 100:g} or less.",
        )
    ]


def _device(fit: MemoryFit, model: Model, accelerator: Accelerator) -> list[Problem]:
    if fit.starts:
        return []
    if fit.breaks != "KV cache":
        loaded = fit.weight_bytes - fit.offloaded_bytes
        parts = f"{_gib(loaded)} GiB of weights" + (f" + {_gib(fit.draft_bytes)} of drafts" if fit.draft_bytes else "")
        parts += f" + {_gib(fit.adapter_bytes)} for adapters" if fit.adapter_bytes else ""
        if fit.breaks == "overhead":
            parts += f" + {_gib(fit.activation_bytes + fit.fixed_bytes)} of overhead (estimated)"
        left = "leave nothing of" if fit.breaks == "overhead" else "alone are more than"
        return [
            Problem(
                setting("model"),
                model.id,
                f"it does not fit {accelerator.id}: {parts} {left} the {_gib(fit.budget_bytes)} GiB that "
                f"gpu-memory-utilization={fit.utilization:g} gives, and the KV cache needs {_gib(fit.kv_start_bytes)}.",
                _smaller_or_larger(fit, model),
            )
        ]
    longest = _longest(fit)
    lowered = "max-loras, max-num-batched-tokens" if fit.adapter_bytes else "max-num-batched-tokens"
    repair = (
        f"set it to {longest} or less, or " if longest else "".join(f"set {way}, or " for way in _offload(fit, model))
    )
    return [
        Problem(
            setting("vllm.max-model-len"),
            str(fit.max_model_len),
            f"one sequence of this length needs {_gib(fit.kv_start_bytes)} GiB of KV cache at the start, and "
            f"{_gib(fit.kv_available_bytes)} GiB are left: vLLM exits while it starts.",
            f"{repair}lower {lowered}, or use kv-cache-dtype: fp8.",
        )
    ]


def _smaller_or_larger(fit: MemoryFit, model: Model) -> str:
    needed = (fit.resident_bytes + fit.kv_start_bytes) / fit.utilization
    larger = [gpu.id for gpu in accelerators().values() if gpu.memory_bytes >= needed]
    found = ["a smaller max-loras or max-lora-rank"] if fit.adapter_bytes > fit.budget_bytes // 20 else []
    found += ["a smaller max-num-batched-tokens"] if fit.activation_bytes > fit.budget_bytes // 10 else []
    found += [f"model: {name}" for name in _lighter(model)] + [f"accelerator: {name}" for name in larger]
    found += _offload(fit, model)
    return f"choose {', or '.join(found)}." if found else "choose a smaller model."


def _lighter(model: Model) -> list[str]:
    return [
        other.id
        for other in models().values()
        if other.architecture == model.architecture and other.weight_bytes < model.weight_bytes
    ]


def _offload(fit: MemoryFit, model: Model) -> list[str]:
    """The slowest repair: only for a checkpoint that has no lighter form, and for a small part of it."""
    gib = -(-(fit.offloaded_bytes + fit.kv_start_bytes - fit.kv_available_bytes) // GIB)
    if _lighter(model) or gib * GIB > fit.weight_bytes // MOST_OFFLOADED:
        return []
    return [f"cpu-offload-gb: {gib} (each step then reads them from the host, which is many times slower)"]


def _longest(fit: MemoryFit) -> int:
    """A length that fits, in whole 1024 tokens, by the proportion of available to needed memory."""
    share = fit.kv_available_bytes / fit.kv_start_bytes
    return int(fit.max_model_len * share) // 1024 * 1024


def _host(fit: MemoryFit, engine: EngineArgs, model: Model) -> list[Problem]:
    if fit.host_needed_bytes <= fit.host_bytes:
        return []
    needed = -(-fit.host_needed_bytes // GIB)
    lazy = host_loading_bytes(model.weight_bytes, strategy="lazy") + fit.offloaded_bytes
    gentler = engine.load_strategy != "lazy" and lazy <= fit.host_bytes
    return [
        Problem(
            setting("resources.memory"),
            f"{fit.host_bytes // GIB}Gi",
            f"loading {_gib(model.weight_bytes)} GiB of weights ({engine.load_strategy}) on top of "
            f"{_gib(HOST_BASE_BYTES)} GiB for the processes needs about {needed} GiB: Cloud Run kills the container "
            "(exit code 137).",
            _gentler(engine.load_strategy if gentler else "lazy") + f"raise it to {needed}Gi or more.",
        )
    ]


def _gentler(strategy: str) -> str:
    """The loading that needs less memory, offered before the repair that costs more."""
    if strategy == "lazy":
        return ""
    if strategy in ("stream", "download"):
        return "set weights.loading: fuse, or "
    return "set vllm.safetensors-load-strategy: lazy, or "


def _gib(number: int) -> str:
    return f"{number / GIB:.2f}"
