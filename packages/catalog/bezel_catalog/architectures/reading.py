"""Reader of a `config.json`: the architecture of a model, or what of it cannot be computed and why."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.architecture import Architecture
from bezel_catalog.architectures.attention import attention_heads, layer_count, read_decoder
from bezel_catalog.architectures.configuration import (
    ConfigError,
    Configuration,
    MissingFieldError,
    class_names,
    read_configuration,
)
from bezel_catalog.architectures.layers import Layers, UnknownLayers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ConfigError", "read_architecture"]

_EXPERTS = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
_ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k")


def read_architecture(
    config: Mapping[str, Any], *, name: str = "", source: str = "config.json", as_of: str = ""
) -> Architecture:
    """The architecture of a model from its configuration.

    Args:
        config: the content of config.json.
        name: id of the architecture; its model type where none is given.
        source: where the file comes from, for the row.
        as_of: when it was read, YYYY-MM.

    Raises:
        ConfigError: it is not the configuration of a model.
    """
    part = read_configuration(config)
    classes = class_names(config)
    model_type = str(config.get("model_type") or part.model_type)
    try:
        layers = read_decoder(part)
    except MissingFieldError as error:
        layers = [UnknownLayers(count=1, reason=f"config.json gives no {error.args[0]}")]
    experts = _number(part, _EXPERTS)
    return Architecture(
        id=name or model_type,
        model_type=model_type,
        hidden_size=_number(part, ("hidden_size",)),
        intermediate_size=_number(part, ("intermediate_size",)),
        attention_heads=attention_heads(part),
        cache=merge_layers(layers),
        context=_number(part, ("max_position_embeddings",)),
        vocabulary=_number(part, ("vocab_size",)),
        modalities=("text",),
        as_of=as_of,
        source=source,
        experts=experts,
        active_experts=_number(part, _ACTIVE) if experts else 0,
        expert_intermediate_size=_number(part, ("moe_intermediate_size",)) if experts else 0,
        class_name=classes[0] if classes else "",
        hidden_layers=_hidden_layers(part, layers),
        tied_embeddings=bool(part.get("tie_word_embeddings", default=True)),
    )


def merge_layers(layers: Iterable[Layers]) -> tuple[Layers, ...]:
    """Groups of equal layers, in the order of their first layer."""
    counts: dict[Layers, int] = {}
    for layer in layers:
        one = dataclasses.replace(layer, count=1)
        counts[one] = counts.get(one, 0) + layer.count
    return tuple(dataclasses.replace(one, count=count) for one, count in counts.items())


def _number(config: Configuration, names: tuple[str, ...]) -> int:
    """A number of the configuration, 0 where it gives none; lists give their largest."""
    value = config.get(*names)
    if isinstance(value, list):
        value = max((item for item in value if isinstance(item, int)), default=0)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _hidden_layers(config: Configuration, layers: Iterable[Layers]) -> int:
    try:
        count = layer_count(config)
    except MissingFieldError:
        return 0
    return 0 if sum(group.count for group in layers) == count else count
