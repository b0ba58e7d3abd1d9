"""Refusals of a vLLM release and of an accelerator, each with its reason."""

import json
from pathlib import Path

import pytest

from bezel_catalog import NotInCatalogueError
from bezel_catalog.architectures import read_architecture, weigh
from bezel_catalog.architectures.registry import known_architecture, recorded_releases, refusal
from bezel_catalog.architectures.support import gpu_refusal, tpu_refusal

BASE = {
    "vocab_size": 2048,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 8192,
}
LLAMA = {**BASE, "model_type": "llama", "architectures": ["LlamaForCausalLM"]}
RELEASE = "0.32.0"
RECORDED = json.loads(Path(__file__).with_name("layouts.json").read_text(encoding="utf-8"))["models"]
DAMAGES = (0, -1, 1.5, "x", [], [None], {}, None)


def test_both_releases_are_recorded():
    assert {"0.32.0", "0.33.0"} <= set(recorded_releases())


@pytest.mark.parametrize("release", ["0.32.0", "0.33.0"])
@pytest.mark.parametrize(
    "name", ["LlamaForCausalLM", "Gemma4ForConditionalGeneration", "WhisperForConditionalGeneration"]
)
def test_class_of_the_registry_is_served(name, release):
    assert refusal(name, release) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ArcticForCausalLM", "vLLM 0.28.0 was the last release"),
        ("Nemotron3_5AsrForRNNT", "by a plugin only"),
        ("NobodyForCausalLM", "not in the registry of vLLM 0.32.0"),
    ],
)
def test_class_outside_of_the_registry_is_refused_with_its_reason(name, reason):
    assert reason in refusal(name, RELEASE)
    assert known_architecture(name, RELEASE) is None


def test_class_of_another_ending_is_served_by_the_one_that_is_converted():
    served = known_architecture("Qwen3MoeForSequenceClassification", RELEASE)
    assert served.base == "Qwen3MoeForCausalLM"


def test_class_of_transformers_is_served_without_one_of_its_own():
    served = known_architecture("HeliumForCausalLM", RELEASE)
    assert (served.base, served.kinds) == ("", ("transformers",))


def test_traits_of_a_class_are_recorded():
    assert known_architecture("JambaForCausalLM", RELEASE).hybrid
    assert known_architecture("Mamba2ForCausalLM", RELEASE).attention_free
    assert not known_architecture("BertModel", RELEASE).generates


def test_release_without_a_recording_is_refused_by_name():
    with pytest.raises(NotInCatalogueError, match=r"0\.31\.0"):
        refusal("LlamaForCausalLM", "0.31.0")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"architectures": ["NobodyForCausalLM"]}, "not in the registry"),
        ({"architectures": []}, "names no architecture"),
        ({"num_hidden_layers": None, "model_type": "nobody"}, "gives no num_hidden_layers"),
        ({"model_type": "deepseek_v41"}, "rings of raw keys beside compressed vectors"),
        ({"model_type": "deepseek_v4", "compress_ratios": [0, 128, 128, 0]}, "only beside an index"),
        ({"model_type": "minimax_m3"}, "gives no sparse_attention_config"),
        ({"layer_types": ["full_attention", "spiral_attention"] * 2}, "layers of kind 'spiral_attention'"),
        (
            {"model_type": "bart", "architectures": ["BartForCausalLM"], "is_encoder_decoder": True},
            "no decoder with an encoder",
        ),
    ],
)
def test_unknown_layers_carry_their_reason(change, reason):
    unknown = read_architecture({**LLAMA, **change}).unknown
    assert len(unknown) == 1
    assert reason in unknown[0]


def _weights(quantisation, tensors):
    return weigh({**LLAMA, "quantization_config": quantisation}, tensors)


PACKED = _weights(
    {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
    },
    {"model.layers.0.mlp.up_proj.weight_packed": ("I32", (64, 16))},
)
BNB = _weights(
    {"quant_method": "bitsandbytes", "load_in_4bit": True}, {"model.layers.0.mlp.up_proj.weight": ("U8", (64, 1))}
)
MODELOPT = _weights({"quant_method": "modelopt"}, {"model.layers.0.mlp.up_proj.weight": ("F8_E4M3", (64, 64))})
FP8 = _weights({"quant_method": "fp8"}, {"model.layers.0.mlp.up_proj.weight": ("F8_E4M3", (64, 64))})
PLAIN = weigh(LLAMA, {"model.layers.0.mlp.up_proj.weight": ("BF16", (64, 64))})


@pytest.mark.parametrize("weights", [PLAIN, PACKED, FP8, MODELOPT])
@pytest.mark.parametrize("capability", ["8.9", "12.0"])
def test_gpu_of_the_catalogue_serves_what_vllm_loads(weights, capability):
    assert gpu_refusal(weights, capability, release=RELEASE) is None


def test_method_that_a_release_does_not_load_is_refused():
    assert "does not load bitsandbytes" in gpu_refusal(BNB, "8.9", release=RELEASE)


def test_older_gpu_is_refused_with_the_capability_that_is_needed():
    assert gpu_refusal(MODELOPT, "7.5", release=RELEASE) == "modelopt needs compute capability 8.0, the GPU has 7.5"


@pytest.mark.parametrize(("weights", "reason"), [(PACKED, "w4a16"), (BNB, "bitsandbytes"), (MODELOPT, "modelopt")])
def test_tpu_refuses_weights_without_a_kernel(weights, reason):
    assert reason in tpu_refusal(read_architecture(LLAMA), weights)


@pytest.mark.parametrize("weights", [None, PLAIN, FP8])
def test_tpu_serves_weights_with_a_kernel(weights):
    assert tpu_refusal(read_architecture(LLAMA), weights) is None


def test_tpu_refuses_layers_without_a_cache():
    whisper = {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "d_model": 64,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
    }
    assert "what an encoder made" in tpu_refusal(read_architecture(whisper))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "deepseek-v4",
        "minimax-m3",
        "mimo-v2",
        "step3.5",
        "iquest-loop-coder",
        "zamba2",
        "qwen3.5",
        "falcon-h1",
        "whisper",
    ],
)
def test_damaged_field_never_ends_the_reading(name):
    """Of a file from anywhere each field may have any value: what no formula takes is unknown, with a reason."""
    config = RECORDED[name]["config"]
    damaged = [{**config, field: value} for field in config if field != "architectures" for value in DAMAGES]
    shapes = [read_architecture(each) for each in damaged]
    assert any("has a value that" in reason or "gives no" in reason for shape in shapes for reason in shape.unknown)
    assert not read_architecture(config).unknown


@pytest.mark.parametrize(
    ("class_name", "fields"),
    [
        ("LlamaForCausalLM", {"num_hidden_layers": 10**12}),
        ("IQuestLoopCoderForCausalLM", {"model_type": "iquestloopcoder", "num_key_value_heads": 2, "loop_num": 10**12}),
    ],
)
def test_number_of_layers_is_bounded(class_name, fields):
    shape = read_architecture({**LLAMA, **fields, "architectures": [class_name]})
    assert "of at most" in shape.unknown[0]
