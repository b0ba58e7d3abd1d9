"""Sequences at a time beside the number that vLLM will log: where they differ, the plan says why."""

import re
from dataclasses import replace

import pytest

from bezel.planner import make_plan
from bezel.planner.render.summary import plan_summary
from bezel.planner.render.text_table import logged_concurrency
from bezel_catalog.sizing.memory import MemoryFit
from tests.stacks.test_every_stack import PROJECT, STACKS

_ROW = re.compile(r"such sequences at a time\s+(\d+)\s+\(vLLM will log ([0-9.]+)x(.*)")


def fit_of(stack: str) -> MemoryFit | None:
    fit = make_plan(PROJECT.configuration(stack), project="my-project-1", stack=stack).fit
    return fit if isinstance(fit, MemoryFit) else None


GPU_STACKS = [stack for stack in STACKS if fit_of(stack)]


@pytest.mark.parametrize("stack", GPU_STACKS)
def test_plan_gives_the_reason_beside_the_logged_number(stack: str) -> None:
    made = make_plan(PROJECT.configuration(stack), project="my-project-1", stack=stack)
    row = _ROW.search(" ".join(plan_summary(made).split()))
    assert row is not None
    sequences, logged, reason = int(row[1]), float(row[2]), row[3]
    assert sequences > logged + 1, "a cache keeps less of a sequence than its admission takes"
    assert ": it counts each as while its prompt is computed, " in reason


def test_equal_numbers_need_no_reason() -> None:
    fit = fit_of("l4-qat")
    assert fit is not None
    alike = replace(fit, kv_start_bytes=fit.kv_sequence_bytes)
    assert logged_concurrency(alike) == f"vLLM will log {alike.reported_concurrency:.2f}x"
    assert alike.full_context_sequences == int(alike.reported_concurrency)


def test_all_shipped_gpu_stacks_are_tried() -> None:
    assert len(GPU_STACKS) == 11
