"""The planner says of every measured system what was measured, with three fitted constants; the document shows it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bezel_catalog import model, tpu
from bezel_catalog.measurements import measured_memory, measured_speed
from bezel_catalog.sizing.kv_cache import layers_bytes
from bezel_catalog.sizing.tpu_memory import tpu_memory_fit, tpu_token_bytes
from tools.docs.planner import accuracy as planner_accuracy

ROOT = Path(__file__).parents[2]


def test_the_document_is_what_the_planner_says():
    shown = (ROOT / "docs" / "planner-accuracy.md").read_text(encoding="utf-8")
    assert shown == planner_accuracy.document(), "run .venv/bin/python -m tools.docs.planner.accuracy"


@pytest.mark.parametrize("case", measured_memory(), ids=lambda case: case.case)
def test_each_measured_start_is_planned_as_it_was(case):
    assert planner_accuracy.memory_row(case).agrees is (None if case.disputed else True)


@pytest.mark.parametrize("case", measured_speed(), ids=lambda case: case.case)
def test_each_measured_speed_lies_in_the_range(case):
    assert planner_accuracy.speed_row(case).agrees


def test_a_measurement_that_the_planner_misses_would_be_seen():
    case = next(case for case in measured_memory() if case.kv_tokens and not case.disputed)
    assert not planner_accuracy.memory_row(dataclasses.replace(case, kv_tokens=int(case.kv_tokens * 1.12))).agrees
    assert not planner_accuracy.memory_row(dataclasses.replace(case, starts=not case.starts)).agrees
    fast = dataclasses.replace(measured_speed()[0], tokens_per_second=2 * measured_speed()[0].tokens_per_second)
    assert not planner_accuracy.speed_row(fast).agrees


@pytest.mark.slow
def test_three_constants_are_fitted_each_to_a_row():
    fitted = {case.fitted for case in measured_memory()} - {""}
    assert fitted == {"TPU overhead", "CUDA parts", "host processes"}
    assert all(f"| {name} | " in planner_accuracy.document() for name in fitted)


def test_a_cache_with_a_window_on_tpu_would_miss_the_measured_one_by_far():
    shape, chips = model("gemma-4-12b-it").architecture, 4
    assert tpu_token_bytes(shape, chips=chips) == 393_216
    windowed = chips * layers_bytes(shape, shape.window, 65_536, element_bytes=2, shards=chips) // 65_536
    assert 4 * windowed < 393_216


def test_without_the_measured_overhead_the_longer_context_would_fit():
    fit = tpu_memory_fit(model("gemma-4-12b-it"), tpu("v6e-1"), max_model_len=16_384, max_num_seqs=64)
    assert fit.breaks == "KV cache"
    assert dataclasses.replace(fit, overhead_bytes=0).starts


@pytest.mark.parametrize(
    ("name", "slice_", "breaks"),
    [
        ("gemma-4-26b-a4b-it", "v6e-1", "weights"),
        ("gemma-4-31b-it", "v6e-1", "weights"),
        ("gemma-4-31b-it", "v6e-4", None),
        ("gemma-4-e4b-it", "v6e-1", None),
    ],
)
def test_what_breaks_on_a_slice_is_named(name, slice_, breaks):
    fit = tpu_memory_fit(model(name), tpu(slice_), max_model_len=8192, max_num_seqs=64)
    assert fit.breaks == breaks
    assert fit.starts is (breaks is None)
    assert bool(fit.full_context_sequences) is fit.starts


def test_a_slice_that_cannot_sample_serves_nothing_with_any_cache():
    fit = tpu_memory_fit(model("gemma-4-26b-a4b-it"), tpu("v6e-4"), max_model_len=16_384, max_num_seqs=2048)
    assert fit.breaks == "sampling"
    assert fit.kv_tokens > 16_384
    assert fit.full_context_sequences == 0
