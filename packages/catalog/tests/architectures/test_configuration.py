"""A config.json as transformers reads it: parts, other names of fields, defaults of a class, null."""

import pytest

from bezel_catalog.architectures import ConfigError, read_architecture
from bezel_catalog.architectures.configuration import Configuration, MissingFieldError, read_configuration
from bezel_catalog.architectures.layers import FullLayers, SlidingLayers
from bezel_catalog.architectures.rows import architecture_row, read_row
from bezel_catalog.loader import DataFileError

BASE = {
    "vocab_size": 2048,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 8192,
}
LLAMA = {**BASE, "model_type": "llama", "architectures": ["LlamaForCausalLM"]}
QWEN2 = {**BASE, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "num_key_value_heads": 2}
HYBRID = {
    **BASE,
    "model_type": "nemotron_h",
    "architectures": ["NemotronHForCausalLM"],
    "hybrid_override_pattern": "M-M*",
    "num_key_value_heads": 2,
    "head_dim": 16,
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "n_groups": 2,
    "ssm_state_size": 32,
    "conv_kernel": 4,
}


def full_layers(**sizes):
    """The groups of a decoder of one kind."""
    return (FullLayers(**{"count": 4, "kv_heads": 4, "head_dim": 16, **sizes}),)


@pytest.mark.parametrize("config", [None, [], "llama", {}, {"hidden_size": 64}])
def test_what_is_no_configuration_is_refused(config):
    with pytest.raises(ConfigError, match=r"config\.json"):
        read_architecture(config)


def test_field_that_is_null_is_never_the_default_of_its_class():
    assert Configuration({"model_type": "mistral"}).get("sliding_window") == 4096
    assert Configuration({"model_type": "mistral", "sliding_window": None}).get("sliding_window") is None


def test_field_by_its_other_name_is_read():
    assert Configuration({"model_type": "gpt2", "n_layer": 7}).number("num_hidden_layers") == 7


@pytest.mark.parametrize("value", [True, "12", 1.5, [3]])
def test_field_that_is_no_number_is_missing(value):
    with pytest.raises(MissingFieldError):
        Configuration({"num_hidden_layers": value}).number("num_hidden_layers")


@pytest.mark.parametrize(
    "path", [("text_config",), ("llm_config",), ("thinker_config", "text_config"), ("language_config",)]
)
def test_language_model_of_several_parts_is_read(path):
    config = dict(BASE)
    for name in reversed(path):
        config = {name: config}
    part = read_configuration({"model_type": "anything", **config})
    assert part.number("hidden_size") == 64


def test_heads_default_to_the_query_heads():
    assert read_architecture(LLAMA).cache == full_layers()
    assert read_architecture({**LLAMA, "num_key_value_heads": 2, "head_dim": 32}).cache == full_layers(
        kv_heads=2, head_dim=32
    )


@pytest.mark.parametrize("digits", ["3", "03", "003"])
def test_heads_of_a_layer_are_found_by_its_number(digits):
    config = {**LLAMA, "per_layer_config": {digits: {"num_key_value_heads": 1, "head_dim": 64}}}
    assert read_architecture(config).cache == (*full_layers(count=3), FullLayers(count=1, kv_heads=1, head_dim=64))


def test_window_that_is_switched_off_is_none():
    config = {**QWEN2, "sliding_window": 256, "max_window_layers": 0}
    assert read_architecture({**config, "use_sliding_window": False}).window == 8192
    assert read_architecture({**config, "use_sliding_window": True}).window == 256


@pytest.mark.parametrize(
    ("model_type", "name", "kinds"),
    [
        ("gemma2", "Gemma2ForCausalLM", "SFSF"),
        ("gemma3_text", "Gemma3ForCausalLM", "SSSSSF"),
        ("cohere2", "Cohere2ForCausalLM", "SSSF"),
        ("gpt_oss", "GptOssForCausalLM", "SFSF"),
        ("cwm", "CwmForCausalLM", "FSSSF"),
    ],
)
def test_layers_of_an_older_file_follow_their_class(model_type, name, kinds):
    config = {
        **BASE,
        "model_type": model_type,
        "architectures": [name],
        "num_hidden_layers": len(kinds),
        "sliding_window": 128,
    }
    groups = {type(group): group.count for group in read_architecture(config).cache}
    assert groups == {SlidingLayers: kinds.count("S"), FullLayers: kinds.count("F")}


@pytest.mark.parametrize(
    ("rope", "context"),
    [
        ({"rope_type": "linear", "factor": 4.0}, 4 * 8192),
        ({"type": "dynamic", "factor": 2.0}, 2 * 8192),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}, 8192),
        ({"rope_type": "llama3", "factor": 8.0}, 8192),
        (None, 8192),
    ],
)
def test_context_is_scaled_as_vllm_scales_it(rope, context):
    assert read_architecture({**LLAMA, "rope_scaling": rope}).context == context


def test_context_of_a_file_without_a_length_is_that_of_vllm():
    config = {**LLAMA, "model_type": "unheard", "max_position_embeddings": None}
    assert read_architecture(config).context == 2048


@pytest.mark.parametrize("config", [LLAMA, HYBRID, {**QWEN2, "num_experts": 4}], ids=["llama", "hybrid", "experts"])
def test_row_of_an_architecture_is_read_to_the_same(config):
    architecture = read_architecture(config, name="tiny", source="a test", as_of="2026-11")
    row = architecture_row(architecture)
    assert read_row("catalog.toml: tiny", "tiny", row) == architecture


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "expected a list of tables"),
        ([{"kind": "spiral"}], "no layers are of this kind"),
        ([{"kind": "full", "count": 1}], "kv_heads"),
        ([{"kind": "full", "count": 1, "kv_heads": 1, "head_dim": 16, "turns": 2}], "turns"),
        ([{"kind": "state", "count": 1, "form": "mamba2", "arrays": 3}], "arrays"),
    ],
)
def test_row_with_wrong_groups_is_refused(groups, message):
    row = architecture_row(read_architecture(LLAMA, name="tiny", source="a test", as_of="2026-11")) | {"cache": groups}
    with pytest.raises(DataFileError, match=message):
        read_row("catalog.toml: tiny", "tiny", row)


def test_experts_are_counted_in_the_layers_that_have_any():
    config = {
        **BASE,
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "kv_lora_rank": 64,
        "qk_rope_head_dim": 16,
    }
    architecture = read_architecture(config)
    assert (architecture.experts, architecture.active_experts, architecture.expert_layers) == (8, 2, 3)
    assert architecture.expert_intermediate_size == 32
