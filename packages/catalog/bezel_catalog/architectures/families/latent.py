"""Multi-head latent attention: one compressed vector for each token and layer, the same on every device.

Source: vLLM 0.32.0, `vllm/model_executor/layers/attention/mla_attention.py` (MLAAttention.get_kv_cache_spec) and
`vllm/transformers_utils/model_arch_config_convertor.py` (is_deepseek_mla). Bytes of a token in a layer: (kv_lora_rank +
qk_rope_head_dim) x bytes of an element. The index of a sparse model keeps one byte an element and four bytes of scale
for each 128 (`vllm/model_executor/models/deepseek_v2.py`, DeepseekV32IndexerCache).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.families.attention import layer_count
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
        width = config.number("index_head_dim")
        scales = -(-width // _SCALE_BLOCK) * _SCALE_BYTES
        layers.append(LatentLayers(count=count, width=width + scales, element_bytes=1, indexer=True))
    return layers
