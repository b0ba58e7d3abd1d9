"""Layers of models that no CPU build of vLLM runs: numbers of layers and bytes as its source computes them."""

import pytest

from bezel_catalog.architectures import read_architecture
from bezel_catalog.architectures.layers import FullLayers, LatentLayers, SlidingLayers, StateLayers

BASE = {
    "vocab_size": 2048,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 8192,
}
LATENT = {"kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
DELTA = {"kda_layers": [1, 2, 3, 5], "full_attn_layers": [4, 6], "num_heads": 4, "head_dim": 16}
SPARSE = {**BASE, **LATENT, "index_topk": 64, "index_head_dim": 128}
# Convolution (4 - 1) x 3 x 4 x 16 in 16 bits, state 4 x 16 x 16 in 32.
DELTA_BYTES = 3 * 3 * 4 * 16 * 2 + 4 * 16 * 16 * 4


def groups(class_name, model_type, config):
    """Kind, number of layers and bytes of a token or a state, of each group of layers that keeps something."""
    shape = read_architecture({**config, "model_type": model_type, "architectures": [class_name]})
    assert not shape.unknown
    rows = []
    for group in shape.cache:
        if isinstance(group, LatentLayers):
            rows.append((group.kind, group.count, group.width * (group.element_bytes or 2)))
        elif isinstance(group, StateLayers):
            rows.append((group.kind, group.count, group.state_bytes(2)))
        elif isinstance(group, FullLayers | SlidingLayers):
            rows.append((group.kind, group.count, group.token_elements() * 2))
    return sorted(rows)


@pytest.mark.parametrize(
    ("class_name", "model_type", "config", "expected"),
    [
        (
            "KimiLinearForCausalLM",
            "kimi_linear",
            {**BASE, **LATENT, "linear_attn_config": DELTA},
            [("latent", 2, 80), ("state", 4, DELTA_BYTES)],
        ),
        (
            "KimiK3ForConditionalGeneration",
            "kimi_k3",
            {"text_config": {**BASE, **LATENT, "model_type": "kimi_linear", "linear_attn_config": DELTA}},
            [("latent", 2, 80), ("state", 4, DELTA_BYTES)],
        ),
        (
            "BailingMoeV3ForCausalLM",
            "bailing_hybrid",
            {**BASE, **LATENT, "layer_group_size": 4, "short_conv_kernel_size": 4},
            [("latent", 3, 80), ("state", 3, DELTA_BYTES)],
        ),
        (
            "BailingMoeV2_5ForCausalLM",
            "bailing_hybrid",
            {**BASE, **LATENT, "layer_group_size": 3},
            [("latent", 2, 80), ("state", 4, 4 * 16 * 16 * 2)],
        ),
        (
            "HYV4ForCausalLM",
            "hy_v4",
            {**SPARSE, "layer_types": ["full_attention", *["sparse_attention"] * 5]},
            [("latent", 2, 132), ("latent", 6, 80)],
        ),
        (
            "HYV4ForCausalLM",
            "hy_v4",
            {**SPARSE, "layer_types": ["sparse"] * 6, "indexer_types": ["full", *["shared"] * 5]},
            [("latent", 1, 132), ("latent", 6, 80)],
        ),
        ("DeepseekV32ForCausalLM", "deepseek_v32", SPARSE, [("latent", 6, 80), ("latent", 6, 132)]),
        (
            "GlmMoeDsaForCausalLM",
            "glm_moe_dsa",
            {**SPARSE, "index_topk_freq": 4},
            [("latent", 3, 132), ("latent", 6, 80)],
        ),
        (
            "GlmMoeDsaForCausalLM",
            "glm_moe_dsa",
            {**SPARSE, "index_topk_pattern": "FSSFSS"},
            [("latent", 2, 132), ("latent", 6, 80)],
        ),
        (
            "DomynEdgeForCausalLM",
            "domyn_edge",
            {**BASE, "window_sizes": [[128, 0], [-1, 0]] * 3},
            [("full", 3, 128), ("sliding", 3, 128)],
        ),
    ],
)
def test_layers_are_those_of_the_source(class_name, model_type, config, expected):
    assert groups(class_name, model_type, config) == expected


def test_windows_of_domyn_edge_have_a_token_more():
    config = {
        **BASE,
        "window_sizes": [[128, 0]] * 6,
        "model_type": "domyn_edge",
        "architectures": ["DomynEdgeForCausalLM"],
    }
    assert read_architecture(config).window == 129


@pytest.mark.parametrize("absent", ["window_sizes", "num_hidden_layers"])
def test_layers_without_a_size_are_unknown(absent):
    config = {
        **BASE,
        "window_sizes": [[128, 0]] * 6,
        "model_type": "domyn_edge",
        "architectures": ["DomynEdgeForCausalLM"],
    }
    config.pop(absent)
    assert f"gives no {absent}" in read_architecture(config).unknown[0]
