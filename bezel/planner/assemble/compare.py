"""Comparison of one model over every accelerator: fit, cost and expected speed, each figure with its kind.

Owns the settings under which all machines are compared, and the rows. Machines of other platforms are shown for
comparison and can never be deployed. Leaves printing the rows, and running the simulated server under the same load, to
bezel.cli.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.money import Amount, Priced, Unpriced
from bezel.planner.cost.lease_cost import lease_cost
from bezel.planner.cost.service_cost import CostLine, service_cost
from bezel.planner.cost.token_cost import TokenCost, pooled_token_cost, token_cost
from bezel.planner.vllm.arguments import DEFAULT_BATCHED_TOKENS, DEFAULT_UTILIZATION
from bezel.planner.vllm.model.pooling import does_pool
from bezel_catalog import accelerator, accelerators, compared_machines, models, tpus
from bezel_catalog.sizing.memory import memory_fit, sequences_at_a_time
from bezel_catalog.sizing.pooled_speed import PooledEstimate, pooled_estimate
from bezel_catalog.sizing.roofline import Estimate, Peaks, estimate, gpu_peaks, tpu_peaks
from bezel_catalog.sizing.tpu_memory import tpu_memory_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bezel_catalog import Accelerator, ComparedMachine, Model, TpuSlice
    from bezel_catalog.sizing.memory import MemoryFit
    from bezel_catalog.sizing.tpu_memory import TpuFit

USERS = 32
PROMPT_TOKENS, OUTPUT_TOKENS = 1024, 256
DEFAULT_CONTEXT = 8192
KV_CACHE_DTYPE, KV_ELEMENT_BYTES = "auto", 2
MIN_CONTEXT = _STEP = 1024  # the longest context is a multiple of this
MIN_POOLED_CONTEXT = 64  # encoders of sentences were made for 128 tokens and more

Group = Literal["Cloud Run", "TPU, flex-start lease", "other platforms, for comparison only"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A machine and its price; `source` is the source of the price, or the reason why there is none."""

    machine: str
    group: Group
    region: str
    hourly: Amount
    source: str

    @property
    def price_kind(self) -> Literal["list price", "derived", "unknown"]:
        """The basis of the price."""
        if isinstance(self.hourly, Unpriced):
            return "unknown"
        return "derived" if self.hourly.derived else "list price"


@dataclass(frozen=True, slots=True)
class Row:
    """One checkpoint on one machine.

    `refused` is the reason why the checkpoint does not run there whatever the memory, `breaks` the part of the memory
    that is too large. `sequences` of the compared context fit at a time; `longest` is the longest context of which one
    fits. `speed` and `tokens` are estimates, None where it does not fit; those of a model that pools are of its inputs.
    """

    checkpoint: Model
    offer: Offer
    refused: str | None
    breaks: str | None
    sequences: int
    longest: int
    speed: Estimate | PooledEstimate | None
    tokens: TokenCost | None


def families() -> tuple[str, ...]:
    """Names that can be compared: model families first, then single checkpoints."""
    return (*dict.fromkeys(model.architecture.id for model in models().values()), *models())


def checkpoints(name: str) -> tuple[Model, ...]:
    """The checkpoints of a family, or the one of that id, in the catalogue's order; empty for an unknown name."""
    return tuple(model for model in models().values() if name in (model.id, model.architecture.id))


def load_of(context: int, *, pools: bool = False) -> tuple[int, int]:
    """Input and output tokens of the compared load, shortened to fit the context; a model that pools has no output."""
    if pools:
        return min(PROMPT_TOKENS, context), 0
    return min(PROMPT_TOKENS, context - OUTPUT_TOKENS), OUTPUT_TOKENS


def shortest_context(checkpoint: Model) -> int:
    """The shortest context that a checkpoint is compared with."""
    return min(MIN_POOLED_CONTEXT, checkpoint.architecture.context) if does_pool(checkpoint) else MIN_CONTEXT


def compare(checkpoint: Model, context: int) -> Iterator[Row]:
    """Rows of one checkpoint on every machine, in a stable order: Cloud Run, TPU slices, other platforms.

    Args:
        checkpoint: of the catalogue.
        context: tokens of the longest request, at least `shortest_context` and at most the model's own.
    """
    for _, gpu in sorted(accelerators().items()):
        yield _cloud_run(checkpoint, gpu, context)
    for tpu in tpus().values():
        yield _tpu(checkpoint, tpu, context)
    for _, machine in sorted(compared_machines().items()):
        yield _other(checkpoint, machine, context)


def _cloud_run(checkpoint: Model, gpu: Accelerator, context: int) -> Row:
    """The smallest instance in the cheapest region open to everyone; its host fits any weights, read file by file."""
    costs = {
        region: service_cost(
            gpu.id, region=region, cpu=gpu.min_cpu, memory_gib=gpu.min_memory_gib, min_instances=0, max_instances=1
        )
        for region in sorted(gpu.regions)
    }
    region = min(costs, key=lambda name: _order(costs[name].hourly))
    offer = Offer(gpu.id, "Cloud Run", region, costs[region].hourly, _sources(costs[region].lines))
    return _gpu_row(checkpoint, gpu, 1, context, offer)


def _tpu(checkpoint: Model, tpu: TpuSlice, context: int) -> Row:
    hardware = leased_hardware()[tpu.id]
    costs = {zone: lease_cost(hardware, zone=zone, provisioning="flex-start") for zone in sorted(tpu.zones)}
    zone = min(costs, key=lambda name: _order(costs[name].hourly))
    return _row(
        checkpoint,
        Offer(tpu.id, "TPU, flex-start lease", zone, costs[zone].hourly, _sources((costs[zone],))),
        context,
        refused=checkpoint.refused_on("tpu"),
        fit=lambda length: tpu_memory_fit(checkpoint, tpu, max_model_len=length, max_num_seqs=USERS),
        together=tpu_memory_fit(checkpoint, tpu, max_model_len=context, max_num_seqs=USERS).sequences_at_a_time,
        peaks=tpu_peaks(tpu),
    )


def _other(checkpoint: Model, machine: ComparedMachine, context: int) -> Row:
    if machine.usd_per_hour is None:
        hourly: Amount = Unpriced(str(machine.unpriced))
        source = f"unpriced: {machine.unpriced}"
    else:
        hourly, source = Priced(machine.usd_per_hour), machine.source
    offer = Offer(machine.id, "other platforms, for comparison only", machine.region, hourly, source)
    return _gpu_row(checkpoint, accelerator(machine.accelerator), machine.count, context, offer)


def _gpu_row(checkpoint: Model, gpu: Accelerator, count: int, context: int, offer: Offer) -> Row:
    return _row(
        checkpoint,
        offer,
        context,
        refused=checkpoint.refused_on(gpu.id),
        fit=lambda length: _fit(checkpoint, gpu, count, length),
        together=lambda tokens: sequences_at_a_time(
            _fit(checkpoint, gpu, count, context), checkpoint, tokens, kv_cache_dtype=KV_CACHE_DTYPE, shards=count
        ),
        peaks=gpu_peaks(gpu, checkpoint, count=count),
    )


def _row(
    checkpoint: Model,
    offer: Offer,
    context: int,
    *,
    refused: str | None,
    fit: Callable[[int], MemoryFit | TpuFit],
    together: Callable[[int], int],
    peaks: Peaks,
) -> Row:
    result, longest = fit(context), 0 if refused else _longest(fit, checkpoint.architecture.context)
    if refused or not result.starts:
        return Row(checkpoint, offer, refused, result.breaks, 0, longest, None, None)
    pools = does_pool(checkpoint)
    prompt, output = load_of(context, pools=pools)
    batch = max(1, together(prompt + output))
    speed: Estimate | PooledEstimate
    if pools:
        speed = pooled_estimate(
            checkpoint,
            peaks,
            prompt_tokens=prompt,
            sequences=batch,
            step_tokens=max(DEFAULT_BATCHED_TOKENS, context),
        )
        tokens = pooled_token_cost(offer.hourly, speed)
    else:
        speed = estimate(
            checkpoint,
            peaks,
            prompt_tokens=prompt,
            output_tokens=output,
            batch=batch,
            kv_element_bytes=KV_ELEMENT_BYTES,
        )
        tokens = token_cost(offer.hourly, speed)
    return Row(checkpoint, offer, None, None, result.full_context_sequences, longest, speed, tokens)


def _fit(checkpoint: Model, gpu: Accelerator, count: int, length: int) -> MemoryFit:
    return memory_fit(
        checkpoint,
        gpu,
        utilization=DEFAULT_UTILIZATION,
        max_model_len=length,
        max_num_seqs=USERS,
        max_num_batched_tokens=DEFAULT_BATCHED_TOKENS,
        kv_cache_dtype=KV_CACHE_DTYPE,
        memory_gib=gpu.min_memory_gib,
        load_strategy="lazy",
        shards=count,
    )


def _longest(fit: Callable[[int], MemoryFit | TpuFit], limit: int) -> int:
    """The longest context, in whole steps, with which a server starts; 0 without one."""
    step = min(_STEP, limit)
    low, high = 0, limit // step
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fit(middle * step).starts else (low, middle - 1)
    return low * step


def _order(amount: Amount) -> tuple[bool, Decimal]:
    """Sort key: cheapest first, without a price last."""
    return (True, Decimal(0)) if isinstance(amount, Unpriced) else (False, amount.usd)


def _sources(lines: tuple[CostLine, ...]) -> str:
    rows = [line.as_output() for line in lines]
    return "; ".join(dict.fromkeys(f"{row['item']}: {row['as_of']}, {row['source']}" for row in rows))
