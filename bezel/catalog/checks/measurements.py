"""Integrity rules of the measurements: known machines and models, cache sizes that agree with the model's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog.checks.integrity_errors import check_between, check_dated, check_known
from bezel.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.catalog.measurements import MeasuredMemory, MeasuredSpeed
    from bezel.catalog.models import Architecture, Model
    from bezel.catalog.tpus import TpuSlice

_BF16_BYTES = 2


def kv_bytes_per_token(shape: Architecture) -> int:
    """Return the KV cache bytes of a token in bf16, where every layer stores the full length (as on one TPU chip)."""
    sliding = shape.sliding_layers * shape.sliding_kv_heads * shape.sliding_head_dim
    full = shape.full_layers * shape.full_kv_heads * shape.full_head_dim
    return 2 * _BF16_BYTES * (sliding + full)


def check_measured(
    memory: Sequence[MeasuredMemory],
    speed: Sequence[MeasuredSpeed],
    models: Mapping[str, Model],
    tpus: Mapping[str, TpuSlice],
    accelerators: Iterable[str],
) -> Iterable[Problem]:
    """Yield the integrity errors of the measurements.

    Args:
        memory: rows on memory.
        speed: rows on speed.
        models: models of the catalogue, by id.
        tpus: TPU slices of the catalogue, by id.
        accelerators: ids of the catalogue's accelerators.
    """
    rows: tuple[MeasuredMemory | MeasuredSpeed, ...] = (*memory, *speed)
    for row in rows:
        yield from check_dated(_where(row), row)
        yield from check_known(_where(row), "model", row.model, models, "no plan is compared with it.")
        yield from check_known(
            _where(row), "machine", row.machine, (*accelerators, *tpus), "no plan is compared with it."
        )
    for case in memory:
        if case.kv_tokens is not None:
            yield from check_between(
                _where(case), "kv_tokens", case.kv_tokens, case.max_model_len, 1e8, "a request must fit."
            )
        if case.kv_token_bytes is None or case.model not in models or case.machine not in tpus:
            continue
        counted = kv_bytes_per_token(models[case.model].architecture)
        if tpus[case.machine].chips == 1 and counted != case.kv_token_bytes:
            yield Problem(
                f"{_where(case)}: kv_token_bytes",
                case.kv_token_bytes,
                f"the layers of {case.model} make {counted} B, so its memory fit is computed wrongly.",
                "correct the layers with a cache of their own, their KV heads or head dimensions in models.toml.",
            )
    for load in speed:
        rate = load.tokens_per_second
        yield from check_between(_where(load), "tokens_per_second", rate, 0.1, 1e6, "estimates are compared with it.")


def _where(row: MeasuredMemory | MeasuredSpeed) -> str:
    return f"measurements.toml: {row.case}"
