"""What does not fit is refused with the part that is too large, and each proposed way out is one."""

from __future__ import annotations

import dataclasses
import re

import pytest

from bezel.planner import make_plan
from bezel.planner.vllm.argument_conflicts import check_served
from bezel_catalog import model
from tests.support.planner.l4_stack import problems_of, with_changes

LARGE = {"resources": {"cpu": 8, "memory": "32Gi"}, "cost": {"max_hourly_usd": 1.5}}
SHORT = {
    "max-model-len": 4096,
    "enforce-eager": True,
    "gpu-memory-utilization": 0.92,
    "max-num-batched-tokens": 2048,
    "limit-mm-per-prompt": {"video": 0},  # a step of 2048 tokens holds no video
}
BIG = {**LARGE, "model": "gemma-4-31b-it-qat-w4a16", "vllm": SHORT}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"model": "gemma-4-12b-it"}, "22.35 GiB of weights alone exceed the"),
        ({**BIG, "vllm": {**SHORT, "gpu-memory-utilization": 0.9}}, "of overhead (estimated) leave nothing of the"),
        (BIG, "1.72 GiB of KV cache at the start, and 0.13 GiB are left"),
    ],
)
def test_the_part_that_is_too_large_is_named(changes, part):
    (problem,) = problems_of(changes)
    assert part in problem.consequence


@pytest.mark.parametrize("utilization", [0.92, 0.85])
def test_the_proposed_offload_is_enough_and_one_less_is_not(utilization):
    vllm = {**SHORT, "gpu-memory-utilization": utilization}
    (problem,) = problems_of({**BIG, "vllm": vllm})
    enough = int(re.search(r"cpu-offload-gb: (\d+)", problem.repair)[1])
    config = {**BIG, "vllm": {**vllm, "cpu-offload-gb": enough}}
    assert make_plan(with_changes(config), project="p", stack="s").fit.starts
    assert problems_of({**config, "vllm": {**config["vllm"], "cpu-offload-gb": enough - 1}})


@pytest.mark.parametrize("name", ["gemma-4-31b-it", "gemma-4-12b-it"])
def test_no_offload_is_proposed_where_there_is_a_lighter_form(name):
    (problem,) = problems_of({**LARGE, "model": name})
    assert "cpu-offload-gb" not in problem.repair
    assert "w4a16" in problem.repair


def test_no_offload_is_proposed_where_most_weights_would_have_to_move():
    (problem,) = problems_of({**BIG, "vllm": {**SHORT, "gpu-memory-utilization": 0.4}})
    assert "cpu-offload-gb" not in problem.repair


@pytest.mark.parametrize(("machine", "refused"), [("nvidia-l4", True), ("nvidia-rtx-pro-6000", False)])
def test_a_checkpoint_is_refused_where_the_catalogue_excludes_it(machine, refused):
    checkpoint = dataclasses.replace(model("gemma-4-12b-it"), not_on=(("nvidia-l4", "it has no kernel for it"),))
    problems = list(check_served(checkpoint, machine, machine))
    assert bool(problems) is refused
    for problem in problems:
        assert problem.consequence == "it does not run on nvidia-l4: it has no kernel for it."
        assert "model: gemma-4-12b-it-qat-w4a16" in problem.repair
