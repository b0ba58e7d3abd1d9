"""A draft model is the model's own assistant, whose size is known, or the plan is refused with the reason."""

from __future__ import annotations

import dataclasses

import pytest

from bezel.planner import make_plan, plan_summary
from bezel.planner.vllm.speculation_checks import unplanned_draft
from bezel_catalog import model, models
from tests.support.planner.l4_stack import problems_of, with_changes

MOUNTED = "/mnt/models/"
OWN = "gemma-4-12B-it-assistant"
METHODS = (None, "mtp", "gemma4_mtp", "draft_model")


def drafting(draft, method="mtp"):
    return {"spec-model": draft, "spec-tokens": 3} | ({"spec-method": method} if method else {})


@pytest.mark.parametrize("name", sorted(models()))
def test_only_the_own_assistant_of_each_checkpoint_is_planned(name):
    checkpoint = model(name)
    planned = {
        other.assistant for other in models().values() if not unplanned_draft("mtp", other.assistant, checkpoint)
    }
    assert planned == {checkpoint.assistant}
    folders = [f"{MOUNTED}{other.folder}" for other in models().values() if other.folder]
    assert all("one kind only" in unplanned_draft(None, folder, checkpoint) for folder in folders)


@pytest.mark.parametrize(
    ("draft", "method", "reason"),
    [
        ("gemma-4-12B-it-speculator.eagle3", "eagle3", "is not known"),
        ("draft", "mtp", "is not known"),
        ("gemma-4-E2B-it", "draft_model", "one kind only"),
        ("gemma-4-E2B-it", None, "one kind only"),
        ("gemma-4-12B-it-qat-w4a16-ct", None, "one kind only"),
        ("gemma-4-E2B-it-assistant", "mtp", "hidden states of 1536 numbers"),
        (OWN, "eagle3", "another kind"),
        (OWN, "medusa", "another kind"),
    ],
)
def test_a_draft_that_cannot_be_sized_or_started_is_refused(draft, method, reason):
    for vllm in (
        drafting(f"{MOUNTED}{draft}", method),
        {
            "speculative-config": {"model": f"{MOUNTED}{draft}", "num_speculative_tokens": 3}
            | ({"method": method} if method else {})
        },
    ):
        (problem,) = problems_of({"vllm": vllm})
        assert reason in problem.consequence
        assert f"spec-model: {MOUNTED}{OWN}" in problem.repair


@pytest.mark.parametrize("method", METHODS)
def test_the_own_assistant_has_its_size_of_the_catalogue(method):
    config = with_changes({"vllm": drafting(f"{MOUNTED}{OWN}/", method)})
    plan = make_plan(config, project="p", stack="s")
    assert plan.fit.draft_bytes == model(plan.model).assistant_bytes
    (row,) = [line for line in plan_summary(plan).splitlines() if "draft model" in line]
    assert "catalogue; it reads the model's KV cache" in row


def test_a_draft_that_is_quantized_while_it_loads_is_refused():
    config = {"method": "mtp", "model": f"{MOUNTED}{OWN}", "num_speculative_tokens": 3}
    plain = with_changes({"vllm": {"speculative-config": {**config, "quantization": None}}})
    assert make_plan(plain, project="p", stack="s").fit.draft_bytes
    (problem,) = problems_of({"vllm": {"speculative-config": {**config, "quantization": "fp8"}}})
    assert problem.key == "bezel:vllm.speculative-config.quantization"


def test_no_draft_is_planned_for_a_model_without_an_assistant():
    alone = dataclasses.replace(model("gemma-4-12b-it"), assistant=None, assistant_bytes=0)
    assert "no assistant" in unplanned_draft("mtp", OWN, alone)
