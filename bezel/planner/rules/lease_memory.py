"""Memory fit of a model on one leased machine, on chips or GPUs, and the refusal where it does not fit.

Owns the choice between the two calculations and the refusal on TPUs. Leaves the arithmetic to
bezel.planner.sizing.tpu_memory and bezel.planner.sizing.memory, and GPUs that are too small to
bezel.planner.rules.memory_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog import models
from bezel.errors import Problem
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.problems import of_option, setting
from bezel.planner.rules.memory_checks import check_memory
from bezel.planner.sizing.kv_cache import KV_ELEMENT_BYTES
from bezel.planner.sizing.memory import GIB, MemoryFit, memory_fit, sequences_at_a_time
from bezel.planner.sizing.tpu_memory import KV_ELEMENT_BYTES as TPU_ELEMENT_BYTES
from bezel.planner.sizing.tpu_memory import TpuFit, tpu_memory_fit

if TYPE_CHECKING:
    from bezel.catalog import Model
    from bezel.planner.base.hardware import Leased
    from bezel.planner.vllm.engine_args import EngineArgs

LeasedFit = TpuFit | MemoryFit


def leased_fit(model: Model, hardware: Leased, engine: EngineArgs) -> LeasedFit:
    """The memory of one machine: over all chips of a TPU slice, or of each GPU."""
    if hardware.slice is not None:
        return tpu_memory_fit(
            model,
            hardware.slice,
            max_model_len=engine.max_model_len,
            max_num_seqs=engine.max_num_seqs,
            utilization=engine.utilization,
        )
    assert hardware.gpu is not None  # noqa: S101 - leased hardware has one or the other
    return memory_fit(
        model,
        hardware.gpu,
        utilization=engine.utilization,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        kv_cache_dtype=engine.kv_cache_dtype,
        memory_gib=hardware.host_memory_gib,
        load_strategy=engine.load_strategy,
        load_buffer_bytes=engine.load_buffer_bytes,
        speculative=engine.assistant_loaded,
        enforce_eager=engine.enforce_eager,
        async_scheduling=engine.async_scheduling,
        cpu_offload_gib=engine.cpu_offload_gib,
        adapters=engine.adapters,
        shards=hardware.chips,
    )


def kv_element_bytes(hardware: Leased, engine: EngineArgs) -> int:
    """Bytes of one element of the cache: two on a TPU, whatever kv-cache-dtype is."""
    return TPU_ELEMENT_BYTES if hardware.device == "tpu" else KV_ELEMENT_BYTES[engine.kv_cache_dtype]


def max_batch(fit: LeasedFit, model: Model, hardware: Leased, engine: EngineArgs, tokens: int) -> int:
    """Number of sequences of a length that decode together on one machine."""
    if isinstance(fit, TpuFit):
        return fit.sequences_at_a_time(tokens)
    return sequences_at_a_time(fit, model, tokens, kv_cache_dtype=engine.kv_cache_dtype, shards=hardware.chips)


def check_leased_memory(fit: LeasedFit, engine: EngineArgs, model: Model, hardware: Leased) -> list[Problem]:
    """Refuse a model that does not fit, naming the part that is too large and by how much."""
    if isinstance(fit, MemoryFit):
        assert hardware.gpu is not None  # noqa: S101 - this fit is of GPUs
        return check_memory(fit, engine, model, hardware.gpu)
    if fit.breaks is None:
        return []
    if fit.breaks == "sampling":
        return [
            of_option(
                "max-num-seqs",
                fit.max_num_seqs,
                f"the scores of a whole batch take {_gib(fit.sampling_bytes)} GiB on each chip, beside the "
                f"{fit.utilization:.0%} that vLLM fills: RESOURCE_EXHAUSTED while it warms up.",
                "set it to 256 or less, which is known to be stable, or lower gpu-memory-utilization.",
            )
        ]
    if fit.breaks == "KV cache":
        longest = fit.kv_tokens // 1024 * 1024
        return [
            of_option(
                "max-model-len",
                fit.max_model_len,
                f"one sequence of this length needs {_gib(fit.max_model_len * fit.kv_token_bytes)} GiB of KV cache on "
                f"{hardware.id} (sliding layers keep the full length there), and {_gib(fit.kv_available_bytes)} GiB "
                "are left: vLLM exits while it starts.",
                f"set it to {longest} or less, or take more chips." if longest else "take more chips.",
            )
        ]
    return [
        Problem(
            setting("model"),
            model.id,
            f"it does not fit {hardware.id}: {_gib(fit.weight_bytes)} GiB of weights and {_gib(fit.overhead_bytes)} of "
            f"overhead against {_gib(fit.budget_bytes)} GiB for vLLM.",
            _larger(fit, model),
        )
    ]


def _larger(fit: TpuFit, model: Model) -> str:
    needed = (fit.resident_bytes + fit.max_model_len * fit.kv_token_bytes) / fit.utilization
    found = [
        f"accelerator: {each.id}"
        for each in leased_hardware().values()
        if each.slice is not None and each.chips * each.slice.memory_bytes >= needed
    ]
    found += [
        f"model: {other.id}"
        for other in models().values()
        if other.weight_bytes < model.weight_bytes and not other.refused_on("tpu")
    ]
    return f"choose {', or '.join(found)}."


def _gib(number: int) -> str:
    return f"{number / GIB:.2f}"
