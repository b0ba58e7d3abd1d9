"""What lies beside the cases of the table: values at the bound, and reasons that hold for the value."""

from __future__ import annotations

import pytest

from bezel_catalog.vllm.multimodal import multimodal_tokens
from tests.support.start_relations.cases import Case, plan_case, seed_models, start_case


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    seed_models(made)
    return made


def option_case(options, stack="l4-qat", **changes):
    return Case("soft-tokens", stack, options, refused=False, changes=changes)


def kwargs(size, *, nested):
    return {
        "mm-processor-kwargs": {"images_kwargs": {"max_soft_tokens": size}} if nested else {"max_soft_tokens": size}
    }


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("size", multimodal_tokens().image_token_choices)
def test_every_size_of_images_starts(size, nested, folder):
    case = option_case(kwargs(size, nested=nested))
    assert plan_case(case)[1] == ()
    assert start_case(case, folder) is None


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("size", [0, -70, 71, 1121, 70.0, "70", True])
def test_no_other_size_starts(size, nested, folder):
    case = option_case(kwargs(size, nested=nested))
    assert len(plan_case(case)[1]) == 1
    assert "must be one of" in (message := start_case(case, folder) or "") or "Unsupported" in message


@pytest.mark.parametrize("stack", ["rtx6000-26b", "l4-qat"])
def test_an_image_that_is_not_measured_fails_its_requests_only(stack, folder):
    case = option_case(kwargs(100, nested=True) | {"skip-mm-profiling": True}, stack)
    (problem,) = plan_case(case)[1]
    assert problem.consequence.endswith("every request with an image fails.")
    assert start_case(case, folder) is None


@pytest.mark.parametrize(("count", "planned"), [(-1, False), (0, False), (1, True), (2, True)])
def test_a_server_without_api_servers_is_refused(count, planned):
    problems = plan_case(option_case({"api-server-count": count}))[1]
    assert [problem.key for problem in problems] == ([] if planned else ["bezel:vllm.api-server-count"])


@pytest.mark.parametrize(("variable", "reason"), [("0", "vLLM refuses more"), ("1", "is noise"), ("true", "is noise")])
def test_a_length_beyond_the_context_is_refused_for_what_happens(variable, reason):
    options = {"max-model-len": 262_145}
    problems = plan_case(option_case(options, variables={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": variable}))[1]
    (consequence,) = [problem.consequence for problem in problems if problem.key == "bezel:vllm.max-model-len"]
    assert reason in consequence


@pytest.mark.parametrize(("batched", "planned"), [(4_095, False), (4_096, True)])
def test_a_step_with_adapters_holds_the_drafts_of_all_sequences(batched, planned):
    drafts = {"spec-method": "ngram", "spec-tokens": 511, "max-num-seqs": 8, "max-num-batched-tokens": batched}
    assert (plan_case(option_case({"enable-lora": True, **drafts}))[1] == ()) is planned
    assert plan_case(option_case(drafts))[1] == ()


@pytest.mark.parametrize("limits", [{"audio": 2}, {"image": 0, "audio": 2}])
def test_a_limit_of_a_kind_that_the_model_lacks_starts(limits, folder):
    case = option_case({"limit-mm-per-prompt": limits}, "l4-26b-qat")
    assert plan_case(case)[1] == ()
    assert start_case(case, folder) is None
