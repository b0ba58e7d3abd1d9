"""Memory, speed and adapters of models that are no Gemma: every figure is of their own layers."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_catalog import accelerator, model, tpu
from bezel_catalog.architectures import read_architecture
from bezel_catalog.sizing.adapters import Adapters, adapter_bytes
from bezel_catalog.sizing.cache_layout import CacheSettings, UnknownLayoutError, lay_out
from bezel_catalog.sizing.memory import memory_fit, sequences_at_a_time
from bezel_catalog.sizing.roofline import estimate, gpu_peaks, prefill_seconds, read_weight_bytes
from bezel_catalog.sizing.tpu_memory import tpu_memory_fit

L4 = accelerator("nvidia-l4")
BASE = {
    "vocab_size": 32000,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "max_position_embeddings": 8192,
}
CONFIGS = {
    "llama": {**BASE, "model_type": "llama", "architectures": ["LlamaForCausalLM"]},
    "deepseek": {
        **BASE,
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 512,
        "first_k_dense_replace": 1,
    },
    "jamba": {
        **BASE,
        "model_type": "jamba",
        "architectures": ["JambaForCausalLM"],
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "mamba_expand": 2,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
    },
    "mamba": {
        "model_type": "mamba",
        "architectures": ["MambaForCausalLM"],
        "vocab_size": 32000,
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 8,
        "state_size": 16,
        "conv_kernel": 4,
    },
    "bert": {**BASE, "model_type": "bert", "architectures": ["BertModel"], "max_position_embeddings": 512},
    "llama4": {
        **BASE,
        "model_type": "llama4_text",
        "architectures": ["Llama4ForCausalLM"],
        "attention_chunk_size": 1024,
        "head_dim": 64,
    },
}
ALL = pytest.mark.parametrize("name", CONFIGS)


def checkpoint(name, **changes):
    """A checkpoint of a billion parameters with this architecture."""
    shape = read_architecture({**CONFIGS[name], **changes}, as_of="2026-11")
    active = 400_000_000 if shape.experts else 1_000_000_000
    shape = dataclasses.replace(shape, parameters=1_000_000_000, active_parameters=active)
    return dataclasses.replace(
        model("gemma-4-12b-it"), id=name, architecture=shape, weight_bytes=2_000_000_000, assistant=None
    )


def fit_of(name, **changes):
    """The memory of a checkpoint on an L4."""
    settings = {
        "utilization": 0.9,
        "max_model_len": 512,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 2048,
        "kv_cache_dtype": "auto",
        "memory_gib": 32,
        "load_strategy": "lazy",
        **changes,
    }
    return memory_fit(checkpoint(name), L4, **settings)


@ALL
def test_fit_needs_what_the_layout_reserves(name):
    fit = fit_of(name)
    settings = CacheSettings(max_model_len=512, in_flight=4096, encoder_tokens=4096)
    assert fit.kv_start_bytes == lay_out(checkpoint(name).architecture, settings).request_bytes
    assert fit.starts


@ALL
def test_sequences_at_a_time_are_never_more_than_asked_for(name):
    fit = fit_of(name)
    assert 1 <= sequences_at_a_time(fit, checkpoint(name), 512, kv_cache_dtype="auto") <= 16
    assert fit.full_context_sequences >= 1


def test_encoder_keeps_nothing_and_runs_as_many_as_asked_for():
    fit = fit_of("bert")
    assert (fit.kv_sequence_bytes, fit.full_context_sequences, fit.reported_concurrency) == (0, 16, 0.0)


def test_state_never_grows_with_the_length():
    lengths = [fit_of("mamba", max_model_len=length).kv_sequence_bytes for length in (128, 512, 8192)]
    assert len(set(lengths)) == 1


@pytest.mark.slow
@ALL
@given(st.integers(1, 4000), st.integers(1, 4000))
def test_prompt_of_more_tokens_never_takes_less_time(name, one, other):
    shorter, longer = sorted((one, other))
    peaks = gpu_peaks(L4, checkpoint(name))
    fast, slow = (prefill_seconds(checkpoint(name), peaks, tokens) for tokens in (shorter, longer))
    assert fast[0] <= slow[0]
    assert fast[1] <= slow[1]


@ALL
def test_estimate_is_a_range_of_positive_rates(name):
    load = {"prompt_tokens": 100, "output_tokens": 20, "batch": 4, "kv_element_bytes": 2}
    speed = estimate(checkpoint(name), gpu_peaks(L4, checkpoint(name)), **load)
    low, high = speed.tokens_per_second_served
    assert 0 < low < high


def test_step_of_one_token_reads_few_experts():
    weights = checkpoint("deepseek")
    assert read_weight_bytes(weights, 1) < read_weight_bytes(weights, 64) <= weights.weight_bytes


@ALL
def test_adapters_are_counted_for_every_architecture(name):
    shape = checkpoint(name).architecture
    assert adapter_bytes(shape, Adapters(2, 16)) == 2 * adapter_bytes(shape, Adapters(1, 16)) > 0


@ALL
def test_tpu_holds_a_sequence_of_every_architecture(name):
    fit = tpu_memory_fit(checkpoint(name), tpu("v6e-4"), max_model_len=512, max_num_seqs=8)
    assert fit.kv_tokens >= 512
    assert fit.starts


def test_unknown_architecture_is_never_sized():
    weights = checkpoint("llama", model_type="deepseek_v4")
    with pytest.raises(UnknownLayoutError):
        estimate(weights, gpu_peaks(L4, weights), prompt_tokens=1, output_tokens=1, batch=1, kv_element_bytes=2)
    with pytest.raises(UnknownLayoutError):
        tpu_memory_fit(weights, tpu("v6e-4"), max_model_len=512, max_num_seqs=8)
