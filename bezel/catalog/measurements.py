"""What real servers showed of memory and speed: what the planner is held to. Data: measurements.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel.catalog.loader import make, read_toml


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """Whether a server started with these settings, and the cache that it reported.

    `machine` is an accelerator or a TPU slice. What holds for GPUs only (steps, utilization, offloaded weights, the
    host) is left at its default for a TPU. `disputed` says why a figure is no target, `fitted` which constant of the
    planner it was used for.
    """

    case: str
    model: str
    machine: str
    max_model_len: int
    max_num_seqs: int
    starts: bool
    as_of: str
    source: str
    kv_tokens: int | None = None
    kv_token_bytes: int | None = None
    max_num_batched_tokens: int = 0
    utilization: float = 0.0
    kv_cache_dtype: str = "auto"
    cpu_offload_gib: float = 0
    enforce_eager: bool = False
    host_gib: int = 0
    load_strategy: str = "lazy"
    disputed: str = ""
    fitted: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """Output tokens a second of a load: users who ask again as soon as they are answered, tokens in and out."""

    case: str
    model: str
    machine: str
    users: int
    prompt_tokens: int
    output_tokens: int
    tokens_per_second: float
    as_of: str
    source: str
    fitted: str = ""


@functools.cache
def measured_memory() -> tuple[MeasuredMemory, ...]:
    """Every row on memory, in the order of the file."""
    rows = read_toml("measurements.toml")["memory"]
    return tuple(make(MeasuredMemory, f"measurements.toml: memory {number}", row) for number, row in enumerate(rows, 1))


@functools.cache
def measured_speed() -> tuple[MeasuredSpeed, ...]:
    """Every row on speed, in the order of the file."""
    rows = read_toml("measurements.toml")["speed"]
    return tuple(make(MeasuredSpeed, f"measurements.toml: speed {number}", row) for number, row in enumerate(rows, 1))
