"""Drafts gain what they yield less what they cost, as a range from an acceptance that is said to be assumed."""

from __future__ import annotations

import pytest

from bezel.planner import make_plan, plan_summary
from bezel_catalog import accelerator, model
from bezel_catalog.sizing.roofline import estimate, gpu_peaks
from bezel_catalog.sizing.speculation import speculative_gain, tokens_of_step
from tests.support.planner.l4_stack import with_changes

QAT, L4 = model("gemma-4-12b-it-qat-w4a16"), accelerator("nvidia-l4")
PEAKS = gpu_peaks(L4, QAT)
LOAD = {"prompt_tokens": 256, "output_tokens": 64, "kv_element_bytes": 1}
DRAFTS = {"spec-method": "mtp", "spec-model": "/mnt/models/gemma-4-12B-it-assistant", "spec-tokens": 3}


def gain(batch=8, tokens=3, draft=QAT.assistant_bytes, **more):
    estimated = estimate(QAT, PEAKS, batch=batch, **LOAD)
    return speculative_gain(QAT, PEAKS, estimated, draft_tokens=tokens, draft_bytes=draft, kv_element_bytes=1, **more)


@pytest.mark.parametrize(
    ("acceptance", "tokens", "expected"), [(0.0, 3, 1.0), (1.0, 3, 4.0), (0.5, 3, 1.875), (0.5, 1, 1.5)]
)
def test_a_step_yields_its_token_and_the_drafts_before_the_first_wrong_one(acceptance, tokens, expected):
    assert tokens_of_step(acceptance, tokens) == expected


def test_an_assistant_gains_less_than_its_drafts_and_may_lose():
    gains = gain()
    for low, high in (gains.alone, gains.batched):
        assert 0 < low < high < 4
    refused = gain(step_tokens=1.0)
    assert refused.alone[1] < 1


def test_each_further_draft_costs_another_pass_of_the_assistant():
    one, two = (1 / gain(tokens=count, step_tokens=1.0).alone[1] for count in (1, 2))
    assert two - 1 == pytest.approx(2 * (one - 1), rel=0.01)


def test_drafts_copied_from_the_text_may_gain_nothing_and_cost_little():
    gains = gain(draft=0)
    assert 0.9 < gains.alone[0] <= 1
    assert gains.alone[1] <= tokens_of_step(0.6, 3)


def test_a_batch_that_fills_the_arithmetic_gains_less_by_drafts():
    assert gain(batch=256).batched[1] < 0.8 * gain(batch=1).batched[1]


def test_the_plan_says_what_it_assumes_and_nothing_without_drafts():
    plain = make_plan(with_changes({}), project="p", stack="s")
    assert plain.gain is None
    assert "speculation" not in plain.as_output()
    assert "drafts" not in plan_summary(plain)
    plan = make_plan(with_changes({"vllm": DRAFTS}), project="p", stack="s")
    speculation = plan.as_output()["speculation"]
    assert speculation["draft_tokens"] == 3
    assert speculation["basis"] == "each of 3 drafted tokens accepted with a probability of 40% to 80% (assumed)"
    assert speculation["gain_alone"][0] < speculation["gain_alone"][1]
    assert f"({speculation['basis']})" in plan_summary(plan)


def test_ngram_is_reckoned_without_a_draft_model():
    ngram = {"speculative-config": {"method": "ngram", "num_speculative_tokens": 5}}
    plan = make_plan(with_changes({"vllm": ngram}), project="p", stack="s")
    assert plan.fit.draft_bytes == 0
    assert (plan.gain.draft_tokens, plan.gain.acceptance) == (5, (0.0, 0.6))
