"""Multi-head latent attention: one compressed vector for each token and layer, the same on every device.

Source: vLLM 0.32.0, `vllm/model_executor/layers/attention/mla_attention.py` (MLAAttention.get_kv_cache_spec) and
`vllm/transformers_utils/model_arch_config_convertor.py` (is_deepseek_mla). Bytes of a token in a layer: (kv_lora_rank +
qk_rope_head_dim) x bytes of an element. The index of a sparse model keeps one byte an element and four bytes of scale
for each 128 (`vllm/model_executor/models/deepseek_v2.py`, DeepseekV32IndexerCache), in those layers that choose tokens
by themselves. The same in 0.33.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.families.attention import layer_count, read_decoder
from bezel_catalog.architectures.layers import LatentLayers, Layers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

MODEL_TYPES = frozenset(
    (
        "AXK1",
        "axk1",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_mtp",
        "glm_moe_dsa",
        "glm4_moe_lite",
        "kimi_k2",
        "kimi_linear",
        "longcat_flash",
        "pangu_ultra_moe",
        "bailing_hybrid",
        "sarvam_mla",
    )
)
_SCALE_BLOCK, _SCALE_BYTES = 128, 4
_HUNYUAN_INDEX_EVERY = 4
_SPARSE = ("sparse_attention", "sparse", "indexed_attention", "deepseek_sparse_attention")


def is_latent(config: Configuration) -> bool:
    """Whether vLLM serves the model with compressed vectors: by its type, and the rank that it writes."""
    return config.model_type in MODEL_TYPES and config.get("kv_lora_rank") is not None


def latent_layer(config: Configuration, count: int = 1) -> LatentLayers:
    """The layers of a model with one vector each."""
    # The file's own value: transformers 5.4 and later take `qk_nope_head_dim` for it (vLLM reads the file again).
    return LatentLayers(count=count, width=config.number("kv_lora_rank") + config.number("qk_rope_head_dim"))


def read_latent(config: Configuration) -> list[Layers]:
    """Layers of DeepSeek V2 and V3 and of those built like them, and the index of a sparse one."""
    count = layer_count(config)
    if config.model_type == "longcat_flash":
        # Two attentions in each decoder layer; `num_layers` counts the latter.
        count = 2 * config.number("num_layers")
    layers: list[Layers] = [latent_layer(config, count)]
    if config.get("index_topk") is not None:
        layers += index_layers(config, sum(chooses_tokens(config, layer) for layer in range(count)))
    return layers


def index_layers(config: Configuration, count: int) -> list[Layers]:
    """The keys of the index in as many layers, none where no layer has one."""
    width = config.number("index_head_dim")
    scales = -(-width // _SCALE_BLOCK) * _SCALE_BYTES
    return [LatentLayers(count=count, width=width + scales, element_bytes=1, indexer=True)] if count else []


def chooses_tokens(config: Configuration, layer: int) -> bool:
    """Whether a layer of a sparse model has an index of its own; others take over the tokens of an earlier layer.

    `index_topk_pattern` has an S for those that take over; else one in `index_topk_freq` layers has one, counted from
    `index_skip_topk_offset` (deepseek_v2.py, DeepseekV2MLAAttention).
    """
    pattern = config.get("index_topk_pattern")
    if isinstance(pattern, str | list):
        return layer >= len(pattern) or pattern[layer] != "S"
    first = config.number("index_skip_topk_offset", default=2)
    return max(layer - first + 1, 0) % max(config.number("index_topk_freq", default=1), 1) == 0


def read_pangu(config: Configuration) -> list[Layers]:
    """openPangu: compressed vectors where the file has their four sizes, else keys and values (openpangu.py)."""
    sizes = (config.get(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank"))
    if all(size is not None for size in sizes):
        return [latent_layer(config, layer_count(config))]
    return read_decoder(config)


def read_hunyuan_v4(config: Configuration) -> list[Layers]:
    """HY V4: a vector in every layer, an index in the sparse ones that `indexer_types` calls full.

    Source: vLLM 0.32.0 and 0.33.0, `vllm/models/hy_v4/nvidia/attention.py` (HYV4MLAAttention,
    compute_skip_topk_layers) and `vllm/transformers_utils/configs/hy_v4.py` (every fourth layer from the second).
    """
    count = layer_count(config)
    kinds = config.texts("layer_types")
    indexers = config.texts("indexer_types") or [
        "full" if layer == 0 or (layer - 1) % _HUNYUAN_INDEX_EVERY == 0 else "shared" for layer in range(count)
    ]
    sparse = [kind in _SPARSE for kind in kinds[:count]]
    with_index = sum(indexer == "full" for indexer, chosen in zip(indexers, sparse, strict=False) if chosen)
    return [latent_layer(config, count), *index_layers(config, with_index)]
