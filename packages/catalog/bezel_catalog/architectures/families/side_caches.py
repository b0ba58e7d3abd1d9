"""Decoders whose layers keep something beside keys and values: an index for sparse attention, inputs of convolutions.

Source: vLLM 0.32.0 and 0.33.0, `vllm/models/minimax_m3/` and `vllm/models/inkling/`. Where every layer keeps every
token, all of it lies in one group, and a token has the sum of the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.configuration import MissingFieldError
from bezel_catalog.architectures.families.attention import (
    Heads,
    attention_layer,
    head_dimension,
    key_value_heads,
    layer_count,
)
from bezel_catalog.architectures.layers import ConvolutionLayers, LatentLayers, Layers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_INDEX_BYTES = 2
_CONVOLUTION_TOKENS = 4


def read_minimax_m3(config: Configuration) -> list[Layers]:
    """MiniMax M3: keys and values in every layer, keys of an index in 16 bits in the sparse ones.

    Sparse are the layers whose `sparse_attention_freq` is not 0 (`nvidia/model.py`, _sparse_attention_layer_ids);
    their index keeps `sparse_index_dim` numbers a token (`common/indexer.py`, MiniMaxM3IndexerCache, which
    `indexer_kv_dtype: fp8` halves).

    Raises:
        MissingFieldError: `sparse_attention_config` is incomplete.
    """
    count = layer_count(config)
    heads = Heads(key_value_heads(config), head_dimension(config))
    layers: list[Layers] = [attention_layer(heads, None) for _ in range(count)]
    rows = config.get("sparse_attention_config")
    if not isinstance(rows, dict):
        raise MissingFieldError("sparse_attention_config")
    chosen = rows.get("sparse_attention_freq")
    sparse = sum(each != 0 for each in chosen[:count]) if isinstance(chosen, list) else 0
    if sparse:
        width = rows.get("sparse_index_dim")
        if not isinstance(width, int):
            raise MissingFieldError("sparse_attention_config.sparse_index_dim")
        layers.append(LatentLayers(count=sparse, width=width, element_bytes=_INDEX_BYTES, indexer=True))
    return layers


def read_inkling(config: Configuration) -> list[Layers]:
    """Inkling: windows in the layers of `local_layer_ids`, and the inputs of four convolutions in every layer.

    A head's numbers of the four (keys, values, outputs of attention and of the MLP: 2 x head dimension + 2 x hidden
    size / heads) are padded to a power of two (`nvidia/sconv_swa_attn.py`, InklingConvState; `configs.py`).
    """
    local_ids = config.get("local_layer_ids")
    local = set(local_ids) if isinstance(local_ids, list) else set()
    usual = Heads(key_value_heads(config), head_dimension(config))
    windowed = Heads(
        config.number("swa_num_key_value_heads", default=usual.kv_heads),
        config.number("swa_head_dim", default=usual.head_dim),
    )
    window = config.number("sliding_window_size", default=512)
    kernel = config.number("sconv_kernel_size", "conv_kernel_size", default=_CONVOLUTION_TOKENS)
    hidden = config.number("hidden_size")
    layers: list[Layers] = []
    for layer in range(layer_count(config)):
        heads = windowed if layer in local else usual
        width = 2 * heads.head_dim + 2 * (hidden // heads.kv_heads)
        layers.append(attention_layer(heads, window if layer in local else None))
        layers.append(
            ConvolutionLayers(
                count=1, kv_heads=heads.kv_heads, head_dim=1 << (width - 1).bit_length(), value_dim=0, window=kernel
            )
        )
    return layers
