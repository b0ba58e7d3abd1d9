"""Speed of models that pool: the roofline of whole inputs, and what bounds a step."""

import dataclasses

import pytest

from bezel_catalog import accelerator, model
from bezel_catalog.sizing.pooled_speed import pooled_estimate
from bezel_catalog.sizing.roofline import REQUEST_SECONDS, STEP_SECONDS, gpu_peaks, prefill_seconds

MODEL = model("gemma-4-12b-it")
PEAKS = gpu_peaks(accelerator("nvidia-l4"), MODEL)


def of(**changes):
    values = {"prompt_tokens": 256, "sequences": 8, "step_tokens": 4096, **changes}
    return pooled_estimate(MODEL, PEAKS, **values)


def test_full_step_computes_its_inputs_one_after_the_other():
    low, high = prefill_seconds(MODEL, PEAKS, 256)
    expected = (8 * low + STEP_SECONDS[0], 8 * high + STEP_SECONDS[1])
    assert of().step_seconds == pytest.approx(expected)
    assert of().inputs_per_second == pytest.approx((8 / expected[1], 8 / expected[0]))
    assert of().tokens_per_second[0] == pytest.approx(256 * 8 / expected[1])


def test_step_takes_no_less_than_the_weights_need():
    one = of(prompt_tokens=1, sequences=1)
    assert one.step_seconds[0] > MODEL.weight_bytes * 0.9 / PEAKS.bandwidth_bytes_per_s
    assert one.input_seconds[0] == pytest.approx(one.step_seconds[0] + REQUEST_SECONDS[0])


@pytest.mark.parametrize(("changes", "batch"), [({}, 8), ({"step_tokens": 1024}, 4), ({"step_tokens": 100}, 1)])
def test_step_holds_whole_inputs(changes, batch):
    assert of(**changes).batch == batch


def test_twice_the_peak_is_at_most_twice_the_speed():
    fast = dataclasses.replace(PEAKS, flops=2 * PEAKS.flops)
    quick = pooled_estimate(MODEL, fast, prompt_tokens=256, sequences=8, step_tokens=4096).tokens_per_second[1]
    assert of().tokens_per_second[1] < quick <= 2 * of().tokens_per_second[1]
