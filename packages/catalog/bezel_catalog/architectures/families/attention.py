"""Decoders with keys and values for each token: full attention, a window, a chunk, or several of them by layer.

Source: vLLM 0.32.0, `vllm/transformers_utils/model_arch_config_convertor.py` (heads and head dimension),
`vllm/model_executor/layers/attention/attention.py` (Attention.get_kv_cache_spec), `vllm/engine/arg_utils.py` (a window
of the whole model only where no layer is full) and the models named beside a rule. Bytes of a token in a layer: (head
dimension of keys + that of values) x KV heads x bytes of an element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.configuration import MissingFieldError
from bezel_catalog.architectures.families.layer_types import FULL, SLIDING, layer_types, sliding_window
from bezel_catalog.architectures.layers import (
    ChunkedLayers,
    FullLayers,
    Layers,
    SharedLayers,
    SlidingLayers,
    UnknownLayers,
)

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_KV_HEADS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
# Cohere's layers see one token more than `sliding_window` (commandr.py, cohere2_moe.py).
_ONE_MORE = ("cohere2", "cohere2_moe")
# Qwen2Model ends with an error where only some layers have a window (qwen2.py, whose class qwen3.py takes over).
_ONE_KIND_ONLY = ("qwen2", "qwen3", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text")
# Classes that hand no window to a layer: with windows in some layers only, all are kept whole.
_NO_WINDOW_BY_LAYER = ("qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text", "mixtral", "phimoe")
# No published model has a tenth of them. Each is an object here: a file with any number would take all memory.
_MOST_LAYERS = 10_000
_FALCON = ("falcon", "RefinedWeb", "RefinedWebModel")


@dataclass(frozen=True, slots=True)
class Heads:
    """Key/value heads of one layer and their dimensions."""

    kv_heads: int
    head_dim: int
    value_dim: int | None = None


def attention_heads(config: Configuration) -> int:
    """Query heads of a layer; 0 where the model has none."""
    heads = config.get("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads", default=0)
    return int(heads) if isinstance(heads, int) else 0


def head_dimension(config: Configuration) -> int:
    """Numbers of one head.

    Raises:
        MissingFieldError: the configuration gives neither it nor what it follows from.
    """
    if config.get("kv_lora_rank") is not None:
        # Compressed in the weights only (transformers' classes in `models/transformers/base.py`, minicpm3.py).
        split = config.number("qk_nope_head_dim", default=0) + config.number("qk_rope_head_dim", default=0)
        if split:
            return split
    written = config.get("head_dim", "hidden_size_per_head")
    if isinstance(written, int) and written > 0:
        return written
    heads = attention_heads(config)
    if not heads:
        raise MissingFieldError("num_attention_heads")
    return config.number("hidden_size", "d_model", "n_embd") // heads


def key_value_heads(config: Configuration) -> int:
    """Key/value heads of a layer: as many as query heads where nothing else is written."""
    if config.model_type in _FALCON and not config.get("new_decoder_architecture") and config.get("multi_query"):
        return 1
    if config.model_type == "gpt_bigcode" and config.get("multi_query"):
        return 1
    if config.model_type == "dbrx":
        inner = config.get("attn_config")
        return (
            int(inner["kv_n_heads"]) if isinstance(inner, dict) and "kv_n_heads" in inner else attention_heads(config)
        )
    return config.number(*_KV_HEADS, default=attention_heads(config))


def layer_count(config: Configuration) -> int:
    """Number of hidden layers."""
    names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
    return config.number(*names, most=_MOST_LAYERS)


def heads_by_layer(config: Configuration, count: int) -> list[Heads]:
    """Heads of each layer, those of `per_layer_config` and of Gemma 4's full layers included."""
    usual = Heads(key_value_heads(config), head_dimension(config))
    kinds = layer_types(config, count) or [FULL] * count
    result = []
    for number, kind in enumerate(kinds):
        heads = usual
        if kind == FULL and config.model_type.startswith(("gemma4", "diffusion_gemma", "embedding_gemma2")):
            heads = Heads(
                config.number("num_global_key_value_heads", default=usual.kv_heads),
                config.number("global_head_dim", default=usual.head_dim),
            )
        result.append(_own_heads(config, number, heads))
    return result


def _own_heads(config: Configuration, number: int, heads: Heads) -> Heads:
    layers = config.values.get("per_layer_config")
    rows: dict[str, Any] = layers if isinstance(layers, dict) else {}
    # The numbers of layers are written with as many digits as the last has, e.g. "05".
    row = next((row for key, row in rows.items() if key.isdecimal() and int(key) == number), None)
    if not isinstance(row, dict):
        return heads
    return replace(
        heads,
        kv_heads=int(row.get("num_key_value_heads") or heads.kv_heads),
        head_dim=int(row.get("head_dim") or heads.head_dim),
    )


def read_decoder(config: Configuration) -> list[Layers]:
    """Layers of a decoder by `layer_types` and `sliding_window`; the last may share the caches of earlier ones."""
    count = layer_count(config)
    window = sliding_window(config)
    kinds = layer_types(config, count)
    if not kinds:
        kinds = [SLIDING if window else FULL] * count
    if window and config.model_type in _ONE_MORE:
        window += 1
    if len(set(kinds)) > 1 and config.model_type in _ONE_KIND_ONLY:
        reason = f"vLLM serves a {config.model_type} with a window in every layer or in none"
        return [UnknownLayers(count=count, reason=reason)]
    if len(set(kinds)) > 1 and config.model_type in _NO_WINDOW_BY_LAYER:
        kinds = [FULL] * count
    heads = heads_by_layer(config, count)
    shared = count - config.number("num_kv_shared_layers", default=0)
    result: list[Layers] = []
    for number, (kind, layer_heads) in enumerate(zip(kinds, heads, strict=False)):
        if kind not in (FULL, SLIDING):
            result.append(UnknownLayers(count=1, reason=f"{config.model_type} has layers of kind {kind!r}"))
        elif number >= shared > 0:
            result.append(SharedLayers(count=1, kv_heads=layer_heads.kv_heads, head_dim=layer_heads.head_dim))
        else:
            result.append(attention_layer(layer_heads, window if kind == SLIDING else None))
    return result


def attention_layer(heads: Heads, window: int | None) -> Layers:
    """One layer that keeps the last `window` tokens, or every token."""
    if window:
        return SlidingLayers(
            count=1, kv_heads=heads.kv_heads, head_dim=heads.head_dim, value_dim=heads.value_dim, window=window
        )
    return FullLayers(count=1, kv_heads=heads.kv_heads, head_dim=heads.head_dim, value_dim=heads.value_dim)


def read_chunked(config: Configuration) -> list[Layers]:
    """Llama 4 (llama4.py): layers with rotary positions attend within a chunk, those without to everything."""
    count, chunk = layer_count(config), config.number("attention_chunk_size", default=0)
    rotary = config.get("no_rope_layers")
    if not isinstance(rotary, list) or not rotary:
        every = config.number("no_rope_layer_interval", default=4)
        rotary = [int((layer + 1) % every != 0) for layer in range(count)]
    heads = Heads(key_value_heads(config), head_dimension(config))
    return [
        ChunkedLayers(count=1, kv_heads=heads.kv_heads, head_dim=heads.head_dim, chunk=chunk)
        if chunk and rotates
        else attention_layer(heads, None)
        for rotates in rotary[:count]
    ]


def read_one_head(config: Configuration) -> list[Layers]:
    """Step 3: one key/value head in every layer, whatever the file says (step3_text.py, Step3TextAttention)."""
    return [FullLayers(count=layer_count(config), kv_heads=1, head_dim=head_dimension(config))]


def read_listed_windows(config: Configuration) -> list[Layers]:
    """Domyn Edge: a window for each layer in `window_sizes`, of one token more (vLLM 0.33.0, domyn_edge.py).

    Raises:
        MissingFieldError: the file lists no windows.
    """
    count = layer_count(config)
    windows = config.get("window_sizes")
    if not isinstance(windows, list) or len(windows) < count:
        raise MissingFieldError("window_sizes")
    heads = heads_by_layer(config, count)
    return [
        attention_layer(each, int(before) + 1 if before > 0 else None)
        for each, (before, *_) in zip(heads, windows, strict=False)
    ]


def read_own_windows(config: Configuration) -> list[Layers]:
    """Layers whose windowed ones have heads of their own: MiMo V2 (mimo_v2.py) and Step 3.5 (step3p5.py)."""
    count = layer_count(config)
    usual = Heads(key_value_heads(config), head_dimension(config), _value_dim(config, "v_head_dim"))
    if config.model_type.startswith("mimo"):
        windowed = Heads(
            config.number("swa_num_key_value_heads"),
            config.number("swa_head_dim"),
            _value_dim(config, "swa_v_head_dim"),
        )
        window = config.number("sliding_window_size", "sliding_window")
        pattern = config.get("hybrid_layer_pattern") or [0] * count
        return [attention_layer(windowed, window) if kind else attention_layer(usual, None) for kind in pattern[:count]]
    other = config.get("attention_other_setting") or {}
    kinds = layer_types(config, count) or [SLIDING if layer % 2 == 0 else FULL for layer in range(count)]
    same = Heads(usual.kv_heads, usual.head_dim)
    windowed = Heads(
        int(other.get("num_attention_groups") or same.kv_heads), int(other.get("head_dim") or same.head_dim)
    )
    window = sliding_window(config) or 0
    other_kind = str(other.get("attention_type") or SLIDING)
    return [
        attention_layer(windowed if other and kind == other_kind else same, window if kind == SLIDING else None)
        for kind in kinds[:count]
    ]


def _value_dim(config: Configuration, name: str) -> int | None:
    return None if config.get(name) is None else config.number(name)
