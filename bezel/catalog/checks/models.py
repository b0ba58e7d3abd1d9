"""Integrity rules of checkpoints and architectures: bytes per parameter, layer pattern, attention heads. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bezel.catalog.checks.integrity_errors import Fault, check_between, check_dated
from bezel.catalog.models import unservable_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.catalog.models import Architecture, Model

# Bits per parameter without the embeddings: from the encoding with its scales, up to the average of a small model with
# its towers for images and sound, which stay in 16 bits.
BITS = {"bf16": (15.5, 17.0), "fp8": (7.9, 10.0), "w4a16": (4.0, 8.5)}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_BF16_BYTES = 2
TPU = "tpu"


def check_models(models: Mapping[str, Model], machines: Sequence[str]) -> Iterable[Fault]:
    """Yield the integrity errors of the checkpoints and their architectures.

    Args:
        models: models of the catalogue, by id.
        machines: ids of accelerators, which `not_on` may name besides "tpu".
    """
    for shape in {model.architecture.id: model.architecture for model in models.values()}.values():
        yield from _architecture(shape)
    for model in models.values():
        yield from _model(model, machines)
    for hub_id, count in Counter(model.hub_id for model in models.values() if model.hub_id).items():
        if count > 1:
            yield Fault("models.toml", f"hub_id = {hub_id}, {count} times", "which one it is stays open.", "keep one.")


def _architecture(shape: Architecture) -> Iterable[Fault]:
    where = f"models.toml: architecture {shape.id}"
    yield from check_dated(where, shape)
    # In every size the layers come in equal groups: sliding layers, followed by one full layer.
    if shape.full_layers < 1 or shape.sliding_layers % shape.full_layers:
        yield Fault(
            where,
            f"{shape.sliding_layers} sliding and {shape.full_layers} full layers",
            "the cache would be counted for layers that do not exist.",
            "count the layers with a cache of their own again.",
        )
    for kind, heads in (("sliding", shape.sliding_kv_heads), ("full", shape.full_kv_heads)):
        # Grouped attention: each key/value head serves the same number of query heads.
        if heads < 1 or shape.attention_heads < 1 or shape.attention_heads % heads:
            yield Fault(
                where,
                f"attention_heads = {shape.attention_heads}, {kind}_kv_heads = {heads}",
                "prompts are timed by the former, the cache is counted by the latter.",
                "one is a multiple of the other: mend what is wrong.",
            )
    if bool(shape.experts or shape.per_layer_embedding) != (shape.active_parameters < shape.parameters):
        yield Fault(
            where,
            f"active_parameters = {shape.active_parameters} of {shape.parameters}",
            "speed is estimated by it.",
            "only experts and per-layer embeddings leave parameters out of a step: mend one.",
        )
    if not 0 <= shape.embedding_parameters < shape.parameters:
        yield Fault(
            where,
            f"parameters = {shape.parameters}",
            "its embeddings alone have more.",
            "mend parameters or vocabulary.",
        )
    yield from check_between(where, "window", shape.window, 1, shape.context, "the cache is counted by it.")
    if "text" not in shape.modalities:
        yield Fault(where, f"modalities = {shape.modalities}", "it would take no prompt.", "add text.")


def _model(model: Model, machines: Sequence[str]) -> Iterable[Fault]:
    where = f"models.toml: {model.id}"
    shape = model.architecture
    yield from check_dated(where, model)
    low, high = BITS.get(model.encoding, (0.0, 0.0))
    if not high:
        yield Fault(
            where, f"encoding = {model.encoding}", "its bytes cannot be checked.", f"known are {', '.join(BITS)}."
        )
    else:
        body = shape.parameters - shape.embedding_parameters
        bits = 8 * (model.weight_bytes - _BF16_BYTES * shape.embedding_parameters) / max(1, body)
        yield from check_between(
            where, "weight_bytes as bits per parameter", bits, low, high, "what fits is judged by it."
        )
    if model.hub_id is not None and not _HUB_ID.fullmatch(model.hub_id):
        yield Fault(where, f"hub_id = {model.hub_id}", "nothing can be copied from there.", "write it as OWNER/NAME.")
    if reason := unservable_form(model.hub_id or model.id):
        yield Fault(where, f"hub_id = {model.hub_id}", f"{reason}.", "take the row out.")
    if model.derived != ("derived" in model.source or "arithmetic" in model.source):
        yield Fault(
            where,
            f"derived = {str(model.derived).lower()}, source = {model.source}",
            "what was concluded must not be shown as measured, nor the other way round.",
            "mend one of the two.",
        )
    yield from _assistant(where, model)
    for machine, reason in model.not_on:
        if machine != TPU and machine not in machines:
            known = ", ".join((TPU, *machines))
            yield Fault(where, f"not_on = {machine}", "no plan asks for it.", f"known are {known}.")
        if not reason.strip():
            yield Fault(where, f"not_on = {machine}", "a refusal without a reason helps nobody.", "say why.")


def _assistant(where: str, model: Model) -> Iterable[Fault]:
    """A draft model is a small one of the same family, with an id that can be copied and a size that can be planned."""
    if (model.assistant is None) != (model.assistant_bytes == 0):
        yield Fault(
            where,
            f"assistant = {model.assistant}, assistant_bytes = {model.assistant_bytes}",
            "the memory of the draft model cannot be planned.",
            "write both, or none.",
        )
    if model.assistant is None:
        return
    if not _HUB_ID.fullmatch(model.assistant) or not model.assistant.endswith("-assistant"):
        yield Fault(
            where, f"assistant = {model.assistant}", "nothing can be copied from there.", "write OWNER/NAME-assistant."
        )
    most = _BF16_BYTES * model.architecture.parameters / 10
    yield from check_between(
        where, "assistant_bytes", model.assistant_bytes, 1e7, most, "a draft model is a tenth of its model at most."
    )
