"""Weights of a checkpoint from its headers: every form that vLLM loads, and what it does not load."""

import math

import pytest

from bezel_catalog.architectures import ConfigError, weigh
from bezel_catalog.architectures.weights import ELEMENT_BITS, TensorError

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "tie_word_embeddings": False,
}
EMBEDDING = {"model.embed_tokens.weight": ("BF16", (2048, 64))}
LAYER = "model.layers.0.mlp.down_proj"
PLAIN = {f"{LAYER}.weight": ("BF16", (64, 128))}
NUMBERS = 64 * 128

# A quantisation, the tensors of one linear layer of 64 x 128 in it, and the name of its form.
FORMS = {
    "compressed-tensors, 4 bits packed": (
        {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
        },
        {"weight_packed": ("I32", (64, 16)), "weight_scale": ("BF16", (64, 4)), "weight_shape": ("I64", (2,))},
        "w4a16",
    ),
    "compressed-tensors, 8 bits packed with zero points": (
        {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}},
        },
        {
            "weight_packed": ("I32", (64, 32)),
            "weight_scale": ("BF16", (64, 1)),
            "weight_zero_point": ("I32", (16, 1)),
            "weight_g_idx": ("I32", (128,)),
        },
        "w8a16",
    ),
    "compressed-tensors, fp8": (
        {
            "quant_method": "compressed-tensors",
            "format": "float-quantized",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": {}}},
        },
        {"weight": ("F8_E4M3", (64, 128)), "weight_scale": ("BF16", (64, 1))},
        "fp8",
    ),
    "compressed-tensors, int8": (
        {
            "quant_method": "compressed-tensors",
            "format": "int-quantized",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {}}},
        },
        {"weight": ("I8", (64, 128)), "weight_scale": ("F32", (64, 1))},
        "w8a8",
    ),
    "compressed-tensors, nvfp4": (
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {}},
        {
            "weight_packed": ("U8", (64, 64)),
            "weight_scale": ("F8_E4M3", (64, 8)),
            "weight_global_scale": ("F32", (1,)),
            "input_global_scale": ("F32", (1,)),
        },
        "nvfp4",
    ),
    "gptq": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {
            "qweight": ("I32", (16, 64)),
            "qzeros": ("I32", (1, 8)),
            "scales": ("F16", (1, 64)),
            "g_idx": ("I32", (128,)),
        },
        "w4a16",
    ),
    "gptq, 8 bits": (
        {"quant_method": "gptq", "bits": 8},
        {"qweight": ("I32", (32, 64)), "qzeros": ("I32", (1, 16)), "scales": ("F16", (1, 64))},
        "w8a16",
    ),
    "awq": (
        {"quant_method": "awq", "bits": 4},
        {"qweight": ("I32", (128, 8)), "qzeros": ("I32", (1, 8)), "scales": ("F16", (1, 64))},
        "w4a16",
    ),
    "bitsandbytes, 4 bits": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {
            "weight": ("U8", (NUMBERS // 2, 1)),
            "weight.absmax": ("U8", (128,)),
            "weight.quant_map": ("F32", (16,)),
            "weight.nested_absmax": ("F32", (1,)),
            "weight.nested_quant_map": ("F32", (256,)),
            "weight.quant_state.bitsandbytes__nf4": ("U8", (90,)),
        },
        "bnb-4bit",
    ),
    "bitsandbytes, 8 bits": (
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        {"weight": ("I8", (64, 128)), "SCB": ("F32", (64,)), "weight_format": ("U8", ())},
        "bnb-8bit",
    ),
    "modelopt, fp8": (
        {"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}},
        {"weight": ("F8_E4M3", (64, 128)), "weight_scale": ("F32", ()), "input_scale": ("F32", ())},
        "fp8",
    ),
    "modelopt, nvfp4": (
        {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}},
        {
            "weight": ("U8", (64, 64)),
            "weight_scale": ("F8_E4M3", (64, 8)),
            "weight_scale_2": ("F32", ()),
            "input_scale": ("F32", ()),
        },
        "nvfp4",
    ),
    "fp8 in blocks": (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        {"weight": ("F8_E4M3", (64, 128)), "weight_scale_inv": ("F32", (1, 1))},
        "fp8",
    ),
    "mxfp4": (
        {"quant_method": "mxfp4"},
        {"down_proj_blocks": ("U8", (64, 4, 16)), "down_proj_scales": ("U8", (64, 4))},
        "mxfp4",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_packed_weights_are_counted_unpacked(form):
    quantisation, tensors, name = FORMS[form]
    named = {f"{LAYER}.{ending}": tensor for ending, tensor in tensors.items()}
    weights = weigh({**LLAMA, "quantization_config": quantisation}, named)
    assert (weights.parameters, weights.encoding) == (NUMBERS, name)
    assert weights.bytes == sum(ELEMENT_BITS[kind] // 8 * math.prod(shape) for kind, shape in tensors.values())


@pytest.mark.parametrize("form", FORMS)
def test_embedding_beside_packed_weights_is_counted_as_it_is(form):
    quantisation, tensors, _ = FORMS[form]
    named = {f"{LAYER}.{ending}": tensor for ending, tensor in tensors.items()}
    weights = weigh({**LLAMA, "quantization_config": quantisation}, named | EMBEDDING)
    assert weights.parameters == NUMBERS + 2048 * 64


@pytest.mark.parametrize("kind", sorted(ELEMENT_BITS))
def test_every_type_of_a_header_has_a_width(kind):
    weights = weigh(LLAMA, {f"{LAYER}.weight": (kind, (64, 128))})
    assert weights.bytes == NUMBERS * ELEMENT_BITS[kind] // 8


def test_float32_is_served_in_sixteen_bits():
    weights = weigh(LLAMA, {f"{LAYER}.weight": ("F32", (64, 128))})
    assert (weights.bytes, weights.resident_bytes, weights.encoding) == (4 * NUMBERS, 2 * NUMBERS, "fp32")


@pytest.mark.parametrize(("tied", "skipped"), [(True, 2 * 2048 * 64), (False, 0)])
def test_tied_head_is_loaded_once(tied, skipped):
    head = {"lm_head.weight": ("BF16", (2048, 64))}
    weights = weigh({**LLAMA, "tie_word_embeddings": tied}, EMBEDDING | head)
    assert weights.skipped_bytes == skipped
    assert weights.bytes == 2 * 2 * 2048 * 64 - skipped


@pytest.mark.parametrize(
    "names",
    [
        ("model.layers.0.mlp.experts.{}.down_proj.weight",),
        ("model.layers.0.block_sparse_moe.experts.{}.w1.weight",),
        ("backbone.layers.0.mixer.experts.{}.up_proj.weight",),
    ],
)
def test_experts_count_as_many_as_a_token_takes(names):
    config = {**LLAMA, "num_experts": 8, "num_experts_per_tok": 2}
    tensors = {name.format(expert): ("BF16", (64, 128)) for name in names for expert in range(8)}
    weights = weigh(config, tensors | EMBEDDING)
    assert weights.parameters == 8 * NUMBERS + 2048 * 64
    assert weights.active_parameters == 2 * NUMBERS + 2048 * 64


def test_experts_in_one_tensor_count_as_many_as_a_token_takes():
    config = {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 1}
    weights = weigh(config, {"model.layers.0.mlp.experts.gate_up_proj": ("BF16", (4, 64, 128))})
    assert weights.active_parameters == NUMBERS


def test_shared_expert_counts_in_every_token():
    config = {**LLAMA, "num_experts": 8, "num_experts_per_tok": 2}
    weights = weigh(config, {"model.layers.0.mlp.shared_experts.down_proj.weight": ("BF16", (64, 128))})
    assert weights.active_parameters == NUMBERS


def test_embedding_of_single_layers_is_never_active():
    name = "model.embed_tokens_per_layer.weight"
    weights = weigh(LLAMA, {name: ("BF16", (2048, 64))} | PLAIN)
    assert (weights.parameters, weights.active_parameters) == (NUMBERS + 2048 * 64, NUMBERS)


@pytest.mark.parametrize(
    "name", ["mtp.layers.0.mlp.down_proj.weight", "model.mtp.fc.weight", "model.layers.2.mlp.down_proj.weight"]
)
def test_layers_of_multi_token_prediction_are_drafts(name):
    config = {**LLAMA, "num_nextn_predict_layers": 1}
    weights = weigh(config, {name: ("BF16", (64, 128))} | PLAIN)
    assert (weights.bytes, weights.draft_bytes, weights.parameters) == (2 * NUMBERS, 2 * NUMBERS, NUMBERS)


def test_layers_of_the_model_are_never_drafts():
    config = {**LLAMA, "num_nextn_predict_layers": 1}
    assert weigh(config, PLAIN).draft_bytes == 0


def test_unknown_type_of_a_tensor_is_refused():
    with pytest.raises(TensorError, match="Q4_K"):
        weigh(LLAMA, {f"{LAYER}.weight": ("Q4_K", (64, 128))})


def test_checkpoint_without_tensors_is_refused():
    with pytest.raises(TensorError):
        weigh(LLAMA, {})


@pytest.mark.parametrize("config", [{}, [], {"hidden_size": 64}])
def test_weights_of_no_model_are_refused(config):
    with pytest.raises(ConfigError):
        weigh(config, PLAIN)
