"""Relations of options that 0.33.0 judges otherwise than 0.32.0: of the plan and of the simulated server.

The verdicts and texts are those of both releases' own classes (`tools.vllm.starts.verdicts`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from bezel.planner import PlanError, make_plan
from bezel_simulated_vllm.configuration.failures import StartError
from tests.support.start_relations.cases import configuration

RELEASES = ("0.32.0", "0.33.0")
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
UNPADDED = {"method": "mtp", "num_speculative_tokens": 3, "model": "/mnt/models/assistant"}


def start(settings: Any, release: str, *arguments: str, **variables: str) -> str:
    """Return how the simulated server refuses a start, "" where it starts."""
    try:
        settings("/mnt/models/qat", *arguments, variables=variables, release=release, accelerator="nvidia-l4")
    except StartError as error:
        return str(error)
    return ""


def plan(release: str, **options: Any) -> str:
    """Return the plan's objections, "" where it has none."""
    config = configuration("l4-qat")
    config |= {"vllm_version": release, "vllm": {**config.get("vllm", {}), **options}}
    try:
        make_plan(config, project="bezel-local", stack="l4-qat")
    except PlanError as error:
        return "\n".join(f"{problem}" for problem in error.problems)
    return ""


def test_drafts_of_the_text_are_asynchronous_since_0_33(settings):
    arguments = ("--async-scheduling", f"--speculative-config={json.dumps(NGRAM)}")
    assert "async scheduling is only supported with" in start(settings, "0.32.0", *arguments)
    assert start(settings, "0.33.0", *arguments) == ""


@pytest.mark.parametrize(
    ("arguments", "variables", "what"),
    [
        ([f"--speculative-config={json.dumps(NGRAM)}"], {"VLLM_USE_V2_MODEL_RUNNER": "0"}, "ngram-based speculative"),
        (
            [f"--speculative-config={json.dumps(UNPADDED | {'disable_padded_drafter_batch': True})}"],
            {"VLLM_USE_V2_MODEL_RUNNER": "0"},
            "disable_padded_drafter_batch=True",
        ),
    ],
)
def test_first_runner_refuses_asynchronous_drafts_by_name(settings, arguments, variables, what):
    refusal = start(settings, "0.33.0", "--async-scheduling", *arguments, **variables)
    assert f"Async scheduling is not supported by the V1 model runner with {what}" in refusal


def test_unpadded_drafts_are_asynchronous_since_0_33(settings):
    config = UNPADDED | {"disable_padded_drafter_batch": True}
    arguments = ("--async-scheduling", f"--speculative-config={json.dumps(config)}")
    assert "not compatible with disable_padded_drafter_batch=True" in start(settings, "0.32.0", *arguments)
    assert start(settings, "0.33.0", *arguments) == ""


@pytest.mark.parametrize(("name", "refused"), [("muse", ("0.32.0",)), ("nosuch", RELEASES), ("gemma4", ())])
def test_parser_inside_a_map_is_one_of_the_release(settings, name, refused):
    config = {"reasoning_parser": name}
    for release in RELEASES:
        refusal = start(settings, release, f"--structured-outputs-config={json.dumps(config)}")
        assert ("invalid reasoning parser" in refusal) == (release in refused)
        objections = plan(release, **{"structured-outputs-config": config})
        assert ("vLLM does not know this parser" in objections) == (release in refused)


def test_plan_takes_asynchronous_drafts_of_the_release():
    options = {"async-scheduling": True, "speculative-config": NGRAM}
    assert "schedule asynchronously" in plan("0.32.0", **options)
    assert "schedule asynchronously" not in plan("0.33.0", **options)
    suffix = {"async-scheduling": True, "speculative-config": NGRAM | {"method": "suffix"}}
    assert "schedule asynchronously" in plan("0.33.0", **suffix)


def test_plan_takes_unpadded_drafts_of_the_release():
    options = {
        "async-scheduling": True,
        "speculative-config": {"disable_padded_drafter_batch": True, "method": "ngram", "num_speculative_tokens": 3},
    }
    assert "needs padded batches of drafts" in plan("0.32.0", **options)
    assert "needs padded batches of drafts" not in plan("0.33.0", **options)
