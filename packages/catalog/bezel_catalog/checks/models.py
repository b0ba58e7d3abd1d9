"""Integrity rules of checkpoints, architectures and the measurements of them. Pure.

Owns bytes per parameter, layer patterns, attention heads, and cache sizes that agree with a model's layers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bezel_base.errors import Problem
from bezel_catalog.checks.integrity_errors import check_between, check_dated, check_known
from bezel_catalog.models import unservable_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel_catalog.architectures.architecture import Architecture
    from bezel_catalog.measurements import MeasuredMemory, MeasuredSpeed
    from bezel_catalog.models import Model
    from bezel_catalog.tpus import TpuSlice

# Bits per parameter without the embeddings: from the encoding with its scales, up to the average of a small model with
# its towers for images and sound, which stay in 16 bits.
BITS = {"bf16": (15.5, 17.0), "fp8": (7.9, 10.0), "w4a16": (4.0, 8.5)}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_BF16_BYTES = 2
_NOT_COPIED = "nothing can be copied from there."


def check_models(models: Mapping[str, Model], machines: Sequence[str]) -> Iterable[Problem]:
    """Yield the integrity errors of the checkpoints and their architectures.

    Args:
        models: models of the catalogue, by id.
        machines: ids of accelerators, which `not_on` may name besides "tpu".
    """
    for shape in {model.architecture.id: model.architecture for model in models.values()}.values():
        yield from _architecture(shape)
    for model in models.values():
        yield from _model(model, ("tpu", *machines))
    for hub_id, count in Counter(model.hub_id for model in models.values() if model.hub_id).items():
        if count > 1:
            yield Problem("models.toml: hub_id", hub_id, f"{count} rows have it, so none can be chosen.", "keep one.")


def _architecture(shape: Architecture) -> Iterable[Problem]:
    where = f"models.toml: architecture {shape.id}"
    yield from check_dated(where, shape)
    # In every size the layers come in equal groups: sliding layers, followed by one full layer.
    if shape.full_layers < 1 or shape.sliding_layers % shape.full_layers:
        layers = f"{shape.sliding_layers} sliding and {shape.full_layers} full"
        consequence = "the cache is counted for layers that do not exist."
        yield Problem(f"{where}: layers", layers, consequence, "count the layers with a cache of their own again.")
    for kind, heads in (("sliding", shape.sliding_kv_heads), ("full", shape.full_kv_heads)):
        # Grouped attention: each key/value head serves the same number of query heads.
        if heads < 1 or shape.attention_heads < 1 or shape.attention_heads % heads:
            yield Problem(
                f"{where}: attention_heads",
                shape.attention_heads,
                f"it is not a multiple of {kind}_kv_heads = {heads}; it times prompts, and the latter size the cache.",
                "correct one of the two.",
            )
    if bool(shape.experts or shape.per_layer_embedding) != (shape.active_parameters < shape.parameters):
        repair = "correct one: only experts and per-layer embeddings leave parameters out of a step."
        active = f"{shape.active_parameters} of {shape.parameters}"
        yield Problem(f"{where}: active_parameters", active, "speed is estimated from it.", repair)
    if not 0 <= shape.embedding_parameters < shape.parameters:
        consequence = "the embeddings alone have more."
        yield Problem(f"{where}: parameters", shape.parameters, consequence, "correct parameters or vocabulary.")
    yield from check_between(where, "window", shape.window, 1, shape.context, "the cache is counted by it.")
    if "text" not in shape.modalities:
        yield Problem(f"{where}: modalities", shape.modalities, "the model accepts no prompt.", "add text.")


def _model(model: Model, machines: Sequence[str]) -> Iterable[Problem]:
    where, shape = f"models.toml: {model.id}", model.architecture
    yield from check_dated(where, model)
    yield from check_known(where, "encoding", model.encoding, BITS, "its bytes cannot be checked.")
    if model.encoding in BITS:
        body = shape.parameters - shape.embedding_parameters
        bits = 8 * (model.weight_bytes - _BF16_BYTES * shape.embedding_parameters) / max(1, body)
        name = "weight_bytes as bits per parameter"
        yield from check_between(where, name, bits, *BITS[model.encoding], "memory fit is computed from it.")
    if model.hub_id is not None and not _HUB_ID.fullmatch(model.hub_id):
        yield Problem(f"{where}: hub_id", model.hub_id, _NOT_COPIED, "write it as OWNER/NAME.")
    if reason := unservable_form(model.hub_id or model.id):
        yield Problem(f"{where}: hub_id", model.hub_id, f"{reason}.", "remove the row.")
    if model.derived != ("derived" in model.source or "arithmetic" in model.source):
        consequence = f"a computed size is shown as measured, or a measured one as computed (source = {model.source})."
        yield Problem(f"{where}: derived", model.derived, consequence, "correct one of the two.")
    yield from _assistant(where, model)
    for machine, reason in model.not_on:
        yield from check_known(where, "not_on", machine, machines, "no plan looks it up.")
        if not reason.strip():
            yield Problem(f"{where}: not_on", machine, "the refusal has no reason.", "write the reason.")


def _assistant(where: str, model: Model) -> Iterable[Problem]:
    """A draft model is a small one of the same family, with an id that can be copied and a size that can be planned."""
    if (model.assistant is None) != (model.assistant_bytes == 0):
        consequence = f"with assistant = {model.assistant}, the memory of the draft model cannot be planned."
        yield Problem(f"{where}: assistant_bytes", model.assistant_bytes, consequence, "write both, or none.")
    if model.assistant is None:
        return
    if not _HUB_ID.fullmatch(model.assistant) or not model.assistant.endswith("-assistant"):
        yield Problem(f"{where}: assistant", model.assistant, _NOT_COPIED, "write OWNER/NAME-assistant.")
    largest, consequence = (
        _BF16_BYTES * model.architecture.parameters / 10,
        "a draft model is at most a tenth of its model.",
    )
    yield from check_between(where, "assistant_bytes", model.assistant_bytes, 1e7, largest, consequence)


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
