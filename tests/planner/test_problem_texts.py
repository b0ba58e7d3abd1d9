"""What is told of a stack that cannot be planned: everything at once, as text, and no secret."""

from __future__ import annotations

import pytest

from bezel.planner import PlanError, make_plan
from tests.support.planner.l4_stack import problems_of, with_changes


def test_many_faults_are_all_named_at_once():
    wrong = {
        "modle": "x",
        "region": "asia-southeast1",
        "resources": {"memory": "8Gi"},
        "probe": {"period_seconds": 240, "failure_threshold": 30},
        "scaling": {"min_instances": "none"},
        "secrets": {"HF_TOKEN": 3},
        "vllm": {"spec-method": "mtp", "max-model-len": 300000, "swap-space": 4, "dtype": "fp8"},
    }
    keys = {problem.key for problem in problems_of(wrong, project=None)}
    assert keys == {
        "bezel:modle",
        "bezel:region",
        "bezel:resources.memory",
        "bezel:probe",
        "bezel:scaling.min_instances",
        "bezel:secrets.HF_TOKEN",
        "bezel:vllm.spec-method",
        "bezel:vllm.spec-tokens",
        "bezel:vllm.max-model-len",
        "bezel:vllm.swap-space",
        "bezel:vllm.dtype",
        "gcp:project",
    }


def test_an_unknown_accelerator_hides_no_fault_of_the_arguments():
    wrong = {"accelerator": "nvidia-l5", "vllm": {"max-model-len": 300000, "nonsense": 1}}
    assert {problem.key for problem in problems_of(wrong)} == {
        "bezel:accelerator",
        "bezel:vllm.max-model-len",
        "bezel:vllm.nonsense",
    }


def test_the_text_is_complete_numbered_and_without_a_traceback():
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes({"modle": "x", "resources": {"memory": "8Gi"}}), project="p", stack="l4-qat")
    assert str(caught.value).startswith("Stack l4-qat cannot be planned: 2 problems.\n\n1. bezel:modle = x\n")
    assert "\n\n2. bezel:resources.memory = 8Gi\n" in str(caught.value)
    assert str(caught.value).count("Repair: ") == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"secrets": {"HF_TOKEN": "hf_PLANTEDplanted0000"}},
        {"secrets": {"HF_TOKEN": ["hf_PLANTEDplanted0000"]}},
        {"secrets": "hf_PLANTEDplanted0000"},
        {"vllm": {"api-key": "PLANTEDplanted"}},
        {"vllm": {"hf_token": "PLANTEDplanted"}},
        {"vllm": {"tokenizer-mode": "ok", "nonsense": "hf_PLANTEDplanted0000"}},
        {"hf_token": "hf_PLANTEDplanted0000"},
        {"weights": {"bucket": "hf_PLANTEDplanted0000"}},
        {"labels": {"token": "hf_PLANTEDplanted0000"}},
        {"smoke": {"impersonate": "ya29.PLANTEDplanted"}},
    ],
)
def test_a_secret_that_strayed_into_the_settings_is_shown_nowhere(changes):
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes(changes), project="p", stack="l4-qat")
    assert "PLANTED" not in str(caught.value)
    assert "PLANTED" not in repr(caught.value)
