"""The estimate is a range below the roof, scales as the roofline does, and brackets what was measured soundly."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.catalog import accelerator, model, models
from bezel.planner.roofline import estimate, read_weight_bytes

L4, RTX = accelerator("nvidia-l4"), accelerator("nvidia-rtx-pro-6000")
QAT, MOE = model("gemma-4-12b-it-qat-w4a16"), model("gemma-4-26b-a4b-it")
LOAD = {"prompt_tokens": 256, "output_tokens": 64, "batch": 8, "kv_element_bytes": 1}


@given(
    st.sampled_from(sorted(models())),
    st.sampled_from([L4, RTX]),
    st.integers(1, 200_000),
    st.integers(2, 4096),
    st.integers(1, 256),
)
def test_every_figure_is_a_range_below_the_bare_roof(name, gpu, prompt, output, batch):
    checkpoint = model(name)
    found = estimate(checkpoint, gpu, prompt_tokens=prompt, output_tokens=output, batch=batch, kv_element_bytes=2)
    for low, high in (found.ttft_seconds, found.tokens_per_second_alone, found.tokens_per_second_batched):
        assert 0 < low < high
    roof = gpu.bandwidth_bytes_per_s / read_weight_bytes(checkpoint, 1)
    assert found.tokens_per_second_alone[1] < roof
    assert found.tokens_per_second_batched[0] >= 0.999 * found.tokens_per_second_alone[0]
    assert found.ttft_seconds[0] > 2 * checkpoint.architecture.active_parameters * prompt / gpu.bf16_flops


def test_a_prompt_ten_times_as_long_takes_about_ten_times_as_long_to_read():
    short, long = (estimate(QAT, L4, **{**LOAD, "prompt_tokens": size}) for size in (3000, 30_000))
    for end in (0, 1):
        assert 8 < long.ttft_seconds[end] / short.ttft_seconds[end] < 10.1


def test_a_short_prompt_takes_no_less_than_one_pass_over_the_weights():
    tiny = estimate(QAT, L4, **{**LOAD, "prompt_tokens": 1})
    assert tiny.ttft_seconds[0] > QAT.weight_bytes / L4.bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("bandwidth", "measured"),
    # 12B bf16: one v6e chip (1,640 GB/s) 45 tok/s alone; four chips 150 tok/s alone
    [(1_640_000_000_000, 45), (4 * 1_640_000_000_000, 150)],
)
def test_the_range_holds_what_was_measured_soundly_elsewhere(bandwidth, measured):
    hardware = dataclasses.replace(L4, bandwidth_bytes_per_s=bandwidth, bf16_flops=918_000_000_000_000)
    found = estimate(model("gemma-4-12b-it"), hardware, **LOAD)
    assert found.tokens_per_second_alone[0] < measured < found.tokens_per_second_alone[1]


def test_experts_are_read_as_far_as_sequences_chose_them():
    alone, few, many = (read_weight_bytes(MOE, size) for size in (1, 8, 4096))
    assert alone < few < many
    assert many == pytest.approx(MOE.weight_bytes, rel=0.001)
    assert alone == pytest.approx(2.06 * MOE.architecture.active_parameters, rel=0.2)


def test_a_dense_model_is_read_whole_for_any_batch():
    assert read_weight_bytes(QAT, 1) == read_weight_bytes(QAT, 64) == QAT.weight_bytes


def test_the_output_states_its_assumptions():
    output = estimate(QAT, L4, **LOAD).as_output()
    assert "45% to 75% of the memory bandwidth" in output["basis"]
    assert "no speculative decoding" in output["basis"]
    assert output["batch"] == 8
