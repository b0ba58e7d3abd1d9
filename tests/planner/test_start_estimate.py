"""How long a start may take: a range that follows the weights, inside what a startup probe may wait for."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner import PlanError, make_plan, plan_summary
from bezel.planner.base.settings import ProbeSettings
from bezel.planner.rules.startup import check_start, estimate_start
from bezel_catalog import accelerators, models
from tests.support.planner.l4_stack import with_changes

PLAN = make_plan(with_changes({}), project="p", stack="l4-qat")
MOST = {"cost": {"max_hourly_usd": 100}}


def starting(weight_bytes, draft_bytes=0):
    return estimate_start(dataclasses.replace(PLAN.fit, weight_bytes=weight_bytes, draft_bytes=draft_bytes))


def plan_or_keys(config):
    try:
        return make_plan(config, project="p", stack="s"), set()
    except PlanError as error:
        return None, {problem.key for problem in error.problems}


def probe(**seconds):
    return ProbeSettings(**({"initial_delay_seconds": 0, "timeout_seconds": 1} | seconds))


def test_the_output_says_what_it_rests_on():
    output = PLAN.start.as_output()
    assert output == {"seconds": [30, 262], "basis": PLAN.start.basis}
    assert output["basis"].startswith("estimated, not measured: weights at 0.1 to 0.85 GB/s")
    (line,) = [line for line in plan_summary(PLAN).splitlines() if "cold start" in line]
    assert "30 to 262 s" in line
    assert "estimated, not measured" in line


@pytest.mark.slow
@given(st.integers(0, 10**11), st.integers(1, 10**11))
def test_more_to_read_takes_longer_and_a_draft_is_read_too(weights, more):
    less, longer = starting(weights).seconds, starting(weights + more).seconds
    assert 0 < less[0] < less[1]
    assert less[0] < longer[0]
    assert less[1] < longer[1]
    assert starting(weights, more).seconds == longer


@pytest.mark.parametrize("accelerator", accelerators())
@pytest.mark.parametrize("model", models())
def test_the_default_window_covers_every_model_that_fits(model, accelerator):
    region = accelerators()[accelerator].regions[-1]
    changes = {"model": model, "accelerator": accelerator, "region": region, "weights": {"path": "any"}, **MOST}
    plan, refused = plan_or_keys(with_changes(changes))
    if plan is None:
        assert refused == {"bezel:model"}  # it does not fit
        return
    window = plan.service.startup_probe.period_seconds * plan.service.startup_probe.failure_threshold
    assert plan.start.seconds[1] < window <= 1800


@pytest.mark.slow
@given(st.integers(0, 60 * 10**9), st.integers(0, 240), st.integers(2, 240), st.integers(1, 900))
def test_a_window_is_refused_or_covers_the_start_and_the_repair_is_enough(weights, delay, period, failures):
    start = starting(weights)
    given_probe = probe(initial_delay_seconds=delay, period_seconds=period, failure_threshold=failures)
    problems = list(check_start(start, given_probe))
    assert bool(problems) == (delay + period * failures < start.seconds[1])
    if problems:
        enough = int(problems[0].repair.split("failure_threshold to ")[1].split()[0])
        mended = probe(initial_delay_seconds=delay, period_seconds=period, failure_threshold=enough)
        assert period * enough <= 1800
        assert not list(check_start(start, mended))
