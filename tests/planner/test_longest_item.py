"""A step that is too short for the longest image, audio clip or video is refused by the plan before it is paid for."""

from __future__ import annotations

import pytest

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, make_plan
from bezel.planner.vllm.model.multimodal_checks import check_longest_item, item_tokens
from bezel_catalog import model
from tests.support.planner.l4_stack import ROOT, check_refused, with_changes

VIDEO = 2496  # 32 frames of 78 tokens
KEY = "bezel:vllm.max-num-batched-tokens"
BIG, SMALL = "gemma-4-31b-it", "gemma-4-e2b-it"
NO_VIDEO = {"limit-mm-per-prompt": {"video": 0}}
ONLY_TEXT = {"limit-mm-per-prompt": {"image": 0, "video": 0, "audio": 0}}
OFF = {"disable-chunked-mm-input": True}
# model, options, tokens of the longest item
ITEMS = [
    (BIG, {}, VIDEO),
    (BIG, NO_VIDEO, 280),
    (SMALL, NO_VIDEO, 750),
    (SMALL, {"limit-mm-per-prompt": {"video": 0, "audio": 0}}, 280),
    (BIG, {"limit-mm-per-prompt": {"video": {"count": 0}}}, 280),
    (BIG, {"limit-mm-per-prompt": {"video": {"count": 1, "num_frames": 8}}}, 624),
    (BIG, {"limit-mm-per-prompt": {"video": {"num_frames": 64}}}, VIDEO),
    (BIG, NO_VIDEO | {"mm-processor-kwargs": {"max_soft_tokens": 1120}}, 1120),
    (BIG, NO_VIDEO | {"mm-processor-kwargs": {"images_kwargs": {"max_soft_tokens": 560}}}, 560),
    (BIG, NO_VIDEO | {"enable-mm-embeds": True}, VIDEO),
    (BIG, {"language-model-only": True}, 0),
    (BIG, ONLY_TEXT, 0),
]


@pytest.mark.parametrize(("name", "options", "longest"), ITEMS)
def test_the_longest_item_follows_model_limits_and_processor(name, options, longest):
    assert max(item_tokens(options, model(name)).values(), default=0) == longest


@pytest.mark.parametrize(("name", "options", "longest"), ITEMS)
def test_a_step_holds_the_longest_item_or_is_refused(name, options, longest):
    for batched in (longest - 1, longest):
        values = options | OFF | {"max-num-batched-tokens": batched}
        problems = list(check_longest_item(values, model(name), tpu=False))
        assert bool(problems) == (0 < batched < longest), values
        assert all(problem.key == KEY and str(longest) in problem.consequence for problem in problems)


@pytest.mark.parametrize(
    ("name", "tpu", "refused"), [(BIG, False, True), (BIG, True, False), (SMALL, False, False), (SMALL, True, False)]
)
def test_a_gpu_never_splits_images_that_attend_both_ways(name, tpu, refused):
    values = {"max-num-batched-tokens": 2048, "disable-chunked-mm-input": False}
    assert bool(list(check_longest_item(values, model(name), tpu=tpu))) == refused


def test_a_stack_with_short_steps_is_refused_with_both_repairs():
    check_refused({"vllm": {"max-num-batched-tokens": 2495}}, KEY, "one video", "2496 or more")
    check_refused({"vllm": {"max-num-batched-tokens": 2048}}, KEY, "takes 2496 tokens", "`video: 0` to limit-mm")
    make_plan(with_changes({"vllm": {"max-num-batched-tokens": VIDEO}}), project="bezel-local", stack="l4-qat")
    short = {"vllm": {"max-num-batched-tokens": 2048, **NO_VIDEO}}
    make_plan(with_changes(short), project="bezel-local", stack="l4-qat")


@pytest.mark.parametrize("stack", [name for name in Project(ROOT).stacks() if name != "gce-l4x8"])
def test_every_shipped_stack_holds_the_longest_item(stack):
    plan = make_plan(Project(ROOT).configuration(stack), project="bezel-local", stack=stack)
    arguments = plan.node.arguments if isinstance(plan, LeasePlan) else plan.service.arguments
    (batched,) = [word.rpartition("=")[2] for word in arguments if word.startswith("--max-num-batched-tokens")]
    assert int(batched) >= VIDEO
