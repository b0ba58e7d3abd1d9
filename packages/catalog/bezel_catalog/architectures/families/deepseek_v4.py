"""DeepSeek V4: windows of vectors in every layer, compressed vectors and what is being compressed in most.

Source: vLLM 0.32.0 and 0.33.0, `vllm/models/deepseek_v4/` (attention.py, compressor.py: the specifications),
`vllm/v1/attention/backends/mla/sparse_swa.py` (windows) and `vllm/transformers_utils/deepseek_v4_utils.py` (ratios).
The cache is that of `fp8_ds_mla`, the type that vLLM chooses for these models: 584 bytes a vector (448 in 8 bits, 64 in
16, 8 of scales), and pages padded to multiples of 576 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.configuration import MissingFieldError
from bezel_catalog.architectures.families.attention import layer_count
from bezel_catalog.architectures.layers import LatentLayers, Layers, UnknownLayers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_VECTOR_BYTES = 584
_ALIGNMENT = 576
_BLOCK, _WINDOW_BLOCK = 256, 64
_SCALE_BLOCK, _SCALE_BYTES = 128, 4
_STATE_BYTES = 4
# Ratio of compression -> tokens in a block of what is being compressed, and whether groups of tokens overlap.
_COMPRESSORS = {4: (4, True), 128: (8, False)}
_WITH_INDEX = 4


def read_deepseek_v4(config: Configuration) -> list[Layers]:
    """Layers by their ratios: 0 and 1 keep the window alone, those of 4 have an index too.

    Raises:
        MissingFieldError: a size or the ratios are absent.
    """
    ratios = _ratios(config, layer_count(config))
    if any(ratio > 1 for ratio in ratios) and _WITH_INDEX not in ratios:
        # Measured: a tiny model of this kind ends with "page size is not divisible by the maximum page size".
        reason = f"vLLM packs the pages of deepseek_v4 only beside an index, which layers of ratio {_WITH_INDEX} have"
        return [UnknownLayers(count=len(ratios), reason=reason)]
    window, head_dim = config.number("sliding_window"), config.number("head_dim")
    index = config.number("index_head_dim")
    layers: list[Layers] = []
    for ratio in ratios:
        layers.append(_layer(_VECTOR_BYTES, block=_WINDOW_BLOCK, window=window))
        if ratio <= 1:
            continue
        if ratio not in _COMPRESSORS:
            layers.append(UnknownLayers(count=1, reason=f"vLLM has no compressor of {ratio} tokens for deepseek_v4"))
            continue
        layers.append(_layer(_VECTOR_BYTES, block=_BLOCK, tokens_per_state=ratio))
        layers.append(_compressor(ratio, head_dim))
        if ratio == _WITH_INDEX:
            width = index + -(-index // _SCALE_BLOCK) * _SCALE_BYTES
            layers.append(_layer(width, block=_BLOCK, tokens_per_state=ratio, indexer=True))
            layers.append(_compressor(ratio, index))
    return layers


def _ratios(config: Configuration, count: int) -> list[int]:
    written = config.get("compress_ratios")
    if isinstance(written, list) and len(written) >= count:
        return [int(ratio) for ratio in written[:count]]
    rates, kinds = config.get("compress_rates"), config.texts("layer_types")
    if isinstance(rates, dict) and len(kinds) >= count:
        return [int(rates.get(kind, 0)) for kind in kinds[:count]]
    raise MissingFieldError("compress_ratios")


def _compressor(ratio: int, head_dim: int) -> LatentLayers:
    """Values and scores of the tokens that are being compressed, in float32; of two groups where these overlap."""
    block, overlaps = _COMPRESSORS[ratio]
    groups = 2 if overlaps else 1
    return _layer(2 * groups * head_dim * _STATE_BYTES, block=block, window=groups * ratio)


def _layer(
    width: int, *, block: int, window: int | None = None, tokens_per_state: int = 1, indexer: bool = False
) -> LatentLayers:
    return LatentLayers(
        count=1,
        width=width,
        element_bytes=1,
        window=window,
        tokens_per_state=tokens_per_state,
        indexer=indexer,
        block_tokens=block,
        alignment=_ALIGNMENT,
    )
