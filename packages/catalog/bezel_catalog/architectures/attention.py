"""Decoders with keys and values for each token: full attention, a window, or both by layer.

Source: vLLM 0.32.0, `vllm/transformers_utils/model_arch_config_convertor.py` (heads and head dimension) and
`vllm/model_executor/layers/attention/attention.py` (Attention.get_kv_cache_spec). Bytes of a token in a layer: (head
dimension of keys + that of values) x KV heads x bytes of an element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.configuration import MissingFieldError
from bezel_catalog.architectures.layers import FullLayers, Layers, SlidingLayers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_KV_HEADS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")


def attention_heads(config: Configuration) -> int:
    """Query heads of a layer; 0 where the model has none."""
    return config.number("num_attention_heads", default=0)


def head_dimension(config: Configuration) -> int:
    """Numbers of one head.

    Raises:
        MissingFieldError: the configuration gives neither it nor what it follows from.
    """
    written = config.get("head_dim", "hidden_size_per_head")
    if isinstance(written, int) and written > 0:
        return written
    heads = attention_heads(config)
    if not heads:
        raise MissingFieldError("num_attention_heads")
    return config.number("hidden_size") // heads


def key_value_heads(config: Configuration) -> int:
    """Key/value heads of a layer: as many as query heads where nothing else is written."""
    return config.number(*_KV_HEADS, default=attention_heads(config))


def layer_count(config: Configuration) -> int:
    """Number of hidden layers."""
    return config.number("num_hidden_layers")


def read_decoder(config: Configuration) -> list[Layers]:
    """Layers of a decoder by `layer_types` and `sliding_window`."""
    kv_heads, head_dim, count = key_value_heads(config), head_dimension(config), layer_count(config)
    kinds = config.texts("layer_types") or ["full_attention"] * count
    window = config.get("sliding_window")
    if not config.texts("layer_types") and window:
        kinds = ["sliding_attention"] * count
    layers: list[Layers] = []
    for kind in kinds:
        if kind == "sliding_attention" and window:
            layers.append(SlidingLayers(count=1, kv_heads=kv_heads, head_dim=head_dim, window=int(window)))
        else:
            layers.append(FullLayers(count=1, kv_heads=kv_heads, head_dim=head_dim))
    return layers
