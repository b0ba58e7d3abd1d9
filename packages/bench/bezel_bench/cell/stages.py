"""Figures of each stage of a load whose level changes: one set for each, because no figure describes several levels.

Owns which requests belong to a stage. Rates are of what was completed in its time, also of requests from the stage
before; latencies and lengths are of the requests that were due in it, whenever they ended: those that a full server
completed only later are the slow ones. Leaves out the figures themselves (`bezel_bench.metrics.definitions`).
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

from bezel_bench.load.plan import Staged, Stop
from bezel_bench.metrics.definitions import LATENCIES, distributions, measure
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.metrics.steady import Steady
from bezel_bench.result.document import StageFigures
from bezel_bench.result.records import Metric
from bezel_bench.result.sample import Measured

_WHY = "the load has several levels: each stage has its own figure"
_RATES = (
    *("requests_per_second", "output_tokens_per_second", "prompt_tokens_per_second", "input_tokens_per_second"),
    *("goodput", "goodput_share", "in_flight", "cost_per_million_output_tokens", "cost_per_million_input_tokens"),
)


def without_levels(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return the figures of a whole load in stages, without those that depend on the level."""
    of_level = {*_RATES, *LATENCIES, "offered_requests_per_second"}
    return {
        name: Metric(value=None, unit=metric.unit, why=_WHY) if name in of_level else metric
        for name, metric in metrics.items()
    }


def stage_figures(pattern: Staged, stop: Stop, inputs: MetricInputs, measured: Measured) -> list[StageFigures]:
    """Return the figures of each stage that was begun.

    Args:
        pattern: The stages.
        stop: What may have ended the load before the last of them.
        inputs: The inputs of the whole load's figures.
        measured: The measurement, for its clock.
    """
    columns, began = inputs.columns, measured.began
    planned = columns["planned"]
    ended = math.inf if stop.seconds is None else began + stop.seconds * 1e9
    is_short = measured.client.interrupted or (stop.requests is not None and len(columns) >= stop.requests)
    if is_short and len(columns):
        ended = min(ended, float(planned.max()))
    edges = [0.0, *itertools.accumulate(stage.seconds for stage in pattern.stages)]
    figures = []
    for stage, (begin, end) in zip(pattern.stages, itertools.pairwise(edges), strict=True):
        begins, ends = round(began + begin * 1e9), round(min(began + end * 1e9, ended))
        if ends <= begins:
            break
        due = columns.where((planned >= begins) & (planned < round(began + end * 1e9)))
        last = max(ends, int(due["done"].max())) if len(due) else ends
        # Counters are of the whole load, and tell nothing of one stage.
        of_due = replace(inputs, columns=due, steady=Steady(begins, last, _WHY, cut=False), gained=None)
        rates = measure(replace(inputs, steady=Steady(begins, ends, _WHY, cut=True), gained=None))
        figures.append(
            StageFigures(
                level=stage.level,
                begins=begin,
                ends=(ends - began) / 1e9,
                requests=len(due),
                failed=int((due.failure > 0).sum()),
                cancelled=int(due.cancellations().sum()),
                metrics=measure(of_due) | {name: rates[name] for name in _RATES},
                distributions=distributions(of_due),
            )
        )
    return figures
