"""Measurements of memory and speed on real servers, against which the planner is tested. Data: measurements.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel_catalog.loader import Record, make, read_toml


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """Whether a server started with these settings, and the cache that it reported.

    `machine` is an accelerator or a TPU slice. Settings of GPUs only (steps, utilization, offloaded weights, the host)
    keep their defaults for a TPU. `disputed` is the reason why a figure is not a target, `fitted` the constant of the
    planner that was fitted to it.
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
    """Output tokens per second under a closed-loop load: `users` who each send the next request after a response."""

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
    """Return every row on memory, in the order of the file."""
    return _rows(MeasuredMemory, "memory")


@functools.cache
def measured_speed() -> tuple[MeasuredSpeed, ...]:
    """Return every row on speed, in the order of the file."""
    return _rows(MeasuredSpeed, "speed")


def _rows(kind: type[Record], table: str) -> tuple[Record, ...]:
    rows = read_toml("measurements.toml")[table]
    return tuple(make(kind, f"measurements.toml: {table} {number}", row) for number, row in enumerate(rows, 1))
