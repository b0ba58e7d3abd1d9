"""Decoders that go through some of their layers several times, and keep keys and values of each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.families.attention import (
    Heads,
    attention_layer,
    head_dimension,
    key_value_heads,
    layer_count,
)
from bezel_catalog.architectures.families.layer_types import FULL, SLIDING, sliding_window
from bezel_catalog.architectures.layers import Layers, PlainLayers, UnknownLayers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

# No model runs its layers as often; a file with more would take all memory.
_MOST_RUNS = 100


def read_loops(config: Configuration) -> list[Layers]:
    """IQuest's loop coder: each layer runs `loop_num` times and keeps all of its first run, a window of the others.

    Source: vLLM 0.32.0 and 0.33.0, `vllm/model_executor/models/iquest_loopcoder.py` (LoopCoderAttention).
    """
    count, heads = layer_count(config), Heads(key_value_heads(config), head_dimension(config))
    window = attention_layer(heads, config.number("loop_window_size", default=64))
    again = config.number("loop_num", default=2, most=_MOST_RUNS) - 1
    return [attention_layer(heads, sliding_window(config)) for _ in range(count)] + [window] * (count * again)


def read_dory(config: Configuration) -> list[Layers]:
    """Dory: attention and MLPs are layers of their own; those between the first and the last ones run several times.

    Each run keeps its own keys, unless `recurrent_kv_cache_mode` is last_loop. Source: vLLM 0.33.0,
    `vllm/model_executor/models/dory.py` (DoryAttention, DoryModel) and `vllm/transformers_utils/configs/dory.py`.
    """
    count = layer_count(config)
    kinds = config.texts("layer_types") or [
        "mlp" if layer % 2 else FULL if layer % 8 == 6 else SLIDING for layer in range(count)
    ]
    first, last = config.number("n_input_layers", default=0), config.number("n_output_layers", default=0)
    repeated = config.number("n_recurrent_layers", default=count - first - last)
    runs = config.number("n_recurrent_loops", default=1, most=_MOST_RUNS)
    if config.get("recurrent_kv_cache_mode") == "last_loop":
        runs = 1
    heads, window = Heads(key_value_heads(config), head_dimension(config)), sliding_window(config)
    layers: list[Layers] = []
    for layer, kind in enumerate(kinds[:count]):
        if kind == "mlp":
            layers.append(PlainLayers(count=1))
        elif kind in (FULL, SLIDING):
            one = attention_layer(heads, window if kind == SLIDING else None)
            layers += [one] * (runs if first <= layer < first + repeated else 1)
        else:
            layers.append(UnknownLayers(count=1, reason=f"dory has layers of kind {kind!r}"))
    return layers
