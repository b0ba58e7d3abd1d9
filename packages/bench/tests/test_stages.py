"""Stages: one set of figures for each, and none over several levels."""

import pytest

from bench_support.rendered import text_of
from bench_support.results import staged_result
from bench_support.runs import BEGAN, MS, SECOND, columns, good_sample, measurement
from bezel_bench.cell.stages import stage_figures, without_levels
from bezel_bench.commands.render.tables import run_blocks
from bezel_bench.load.plan import Stage, Staged, Stop
from bezel_bench.metrics.definitions import measure
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.metrics.steady import steady_window
from bezel_bench.result.document import StageFigures
from bezel_bench.result.sample import Measured, Sample

PATTERN = Staged("rate", (Stage(10.0, 20.0), Stage(40.0, 10.0)))


def run(ttft: tuple[int, int] = (50 * MS, 400 * MS)) -> Measured:
    samples: list[Sample] = []
    begin = 0
    for stage, first in zip(PATTERN.stages, ttft, strict=True):
        for place in range(int(stage.level * stage.seconds)):
            at = BEGAN + begin + round(place / stage.level * SECOND)
            samples.append(good_sample(len(samples), at, ttft=first))
        begin += round(stage.seconds * SECOND)
    return measurement(samples)


def figures(run: Measured, stop: Stop = Stop()) -> list[StageFigures]:  # noqa: B008 - frozen
    rows = columns(run)
    steady = steady_window(rows, run.began, run.ended, users=0, changing=True)
    return stage_figures(PATTERN, stop, MetricInputs(rows, steady, True), run)


@pytest.mark.slow
def test_each_stage_has_its_own_percentiles_and_rates() -> None:
    first, second = figures(run())
    assert (first.metrics["ttft_p50"].value, second.metrics["ttft_p50"].value) == (50.0, 400.0)
    assert (first.metrics["ttft_p99"].value, second.metrics["ttft_p99"].value) == (50.0, 400.0)
    assert (first.requests, second.requests) == (200, 400)
    assert (first.begins, first.ends, second.begins, second.ends) == (0.0, 20.0, 20.0, 30.0)
    assert abs((first.metrics["requests_per_second"].value or 0) - 10) < 0.3
    assert abs((second.metrics["requests_per_second"].value or 0) - 40) < 3
    assert first.distributions["ttft"].n == 200


def test_a_figure_that_depends_on_the_level_has_none_over_all_stages() -> None:
    rows = columns(run())
    whole = measure(MetricInputs(rows, steady_window(rows, BEGAN, BEGAN + 31 * SECOND, users=0, changing=True), True))
    left = without_levels(whole)
    assert left.keys() == whole.keys()
    assert whole["ttft_p99"].value is not None
    assert all(left[name].value is None for name in ("ttft_p99", "requests_per_second", "goodput"))
    assert "each stage has its own" in left["ttft_p99"].why
    assert left["prompt_tokens_mean"].value == 100.0


@pytest.mark.slow
def test_a_stage_counts_failed_and_cancelled_requests_apart() -> None:
    measured = run()
    for index, kind in ((3, "timeout"), (4, "cancelled"), (5, "cancelled"), (250, "cancelled")):
        measured.samples[index].failure = kind
    first, second = figures(measured)
    assert (first.failed, first.cancelled, second.failed, second.cancelled) == (3, 2, 1, 1)
    result = staged_result(of="rate", failed=(0, 0, 0))
    (cell,) = result.cells
    update = {"stages": [first, second, cell.stages[2]], "failures": {"timeout": 1, "cancelled": 3}}
    whole = cell.model_copy(update=update)
    assert [part.failures for part in whole.parts()] == [{"timeout": 1, "cancelled": 2}, {"cancelled": 1}, {}]
    text = text_of(run_blocks(result.model_copy(update={"cells": [whole]})))
    assert [line.rpartition("due")[2] for line in text.splitlines() if "  stage " in line] == [
        ", 1 failed, 2 cancelled",
        ", 1 cancelled",
        "",
    ]


def test_stage_not_begun_is_left_out_and_a_short_one_counts_over_its_time() -> None:
    measured = run()
    measured.samples = [one for one in measured.samples if one.planned < BEGAN + 10 * SECOND]
    (only,) = figures(measured, Stop(seconds=10.0))
    assert (only.requests, only.ends) == (100, 10.0)
    assert abs((only.metrics["requests_per_second"].value or 0) - 10) < 0.3
