"""Comparison of two saved results: of each load that both measured, which figures differ beyond chance. Pure.

A figure has changed where the intervals of both results are apart and the difference exceeds the tolerance. It is the
same where each interval lies within the tolerance of the other: means that are close show nothing while an interval
around them is wide. With several repeats the interval is that of their mean, else the measurement's own; without one
nothing can be said of a figure, neither that it differs nor that it is the same. A stage of a load in stages is a load.
Leaves out which of two running servers is faster (`bezel bench ab`), which measures them in turns.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bezel_base.text.counting import format_count
from bezel_bench.metrics.statistics import of_repeats
from bezel_bench.result.document import Cell, Result

Change = Literal["better", "worse", "same", "not_shown", "unknown"]
# Figure -> whether a larger one is better.
FIGURES: Mapping[str, bool] = {
    "requests_per_second": True,
    "output_tokens_per_second": True,
    "goodput": True,
    "ttft_p50": False,
    "ttft_p99": False,
    "tpot_p50": False,
    "tpot_p99": False,
    "e2e_p50": False,
    "e2e_p99": False,
}


class Value(BaseModel):
    """A figure of one result: mean of the cells that are ok, and its interval at 95 %."""

    model_config = ConfigDict(frozen=True)

    mean: float
    low: float | None = Field(description="lower end of the interval; null where there is none")
    high: float | None = Field(description="upper end of the interval; null where there is none")
    cells: int = Field(description="number of measurements")


class Compared(BaseModel):
    """A figure of one load in both results."""

    model_config = ConfigDict(frozen=True)

    load: str = Field(description="the load, for people")
    figure: str
    unit: str
    before: Value
    after: Value
    change: Change = Field(
        description="better or worse beyond chance and tolerance, the same, no difference shown, or unknown"
    )
    share: float | None = Field(description="after / before - 1; null where the first one is 0")


class Comparison(BaseModel):
    """Two results, figure by figure."""

    model_config = ConfigDict(frozen=True)

    figures: tuple[Compared, ...]
    refusals: tuple[str, ...] = Field(description="why the results cannot be compared; empty where they can")
    notes: tuple[str, ...] = Field(description="what differs between the two beside the figures")

    @property
    def verdict(self) -> Change:
        """Worse if any figure is; else not shown where chance may hide a difference; else better or the same.

        A figure without an interval hides a difference beside others that have one; alone it makes the verdict unknown.
        """
        changes = {figure.change for figure in self.figures}
        if self.refusals or changes <= {"unknown"}:
            return "unknown"
        if "worse" in changes:
            return "worse"
        if changes & {"not_shown", "unknown"}:
            return "not_shown"
        return "better" if "better" in changes else "same"


def compare(before: Result, after: Result, tolerance: float) -> Comparison:
    """Compare two results.

    Args:
        before: The earlier one.
        after: The later one.
        tolerance: Difference that counts as the same, as a share.
    """
    refusals = []
    if before.nature != after.nature:
        refusals.append(f"one is {before.nature}, the other {after.nature}: no difference would be one of servers")
    old, new = _loads(_by_stage(before)), _loads(_by_stage(after))
    common = [key for key in old if key in new]
    if not common:
        refusals.append("they have no load in common: pattern, users or rate, prompts and lengths have to be the same")
    figures: list[Compared] = []
    notes = _differences(before, after)
    for key in common:
        for cells, name in ((old[key], "first"), (new[key], "second")):
            if reasons := [f"{cell.id} is {cell.state} ({cell.reason})" for cell in cells if cell.state != "ok"]:
                notes.append(f"{key}: of the {name} result, {'; '.join(reasons)}")
        if any(cell.state == "ok" for cell in old[key]) and not any(cell.state == "ok" for cell in new[key]):
            refusals.append(f"{key}: the second result has no measurement that is ok, the first one has")
        figures += _figures(key, old[key], new[key], tolerance)
    missing = [f"{key} is in the first result only" for key in old if key not in new]
    if common and not figures and not refusals:
        refusals.append("no figure was measured in both")
    return Comparison(figures=tuple(figures), refusals=tuple(refusals), notes=(*notes, *missing))


def _by_stage(result: Result) -> Result:
    """Return the result with each stage as a load that has its number: a level that comes back is no repeat."""
    cells = [
        part.model_copy(update={"pattern": f"{part.pattern}, stage {number}:"}) if whole.stages else part
        for whole in result.cells
        for number, part in enumerate(whole.parts(), 1)
    ]
    return result.model_copy(update={"cells": cells})


def _loads(result: Result) -> dict[str, list[Cell]]:
    """The cells of each load: repeats of one are together."""
    cells_by_load: dict[str, list[Cell]] = {}
    for cell in (part for whole in result.cells for part in whole.parts()):
        load = (
            format_count(cell.users, "users")
            if cell.users is not None
            else f"{cell.rate:g}/s"
            if cell.rate
            else cell.pattern
        )
        tokens = f"{_length(cell.context_tokens)} + {_length(cell.output_tokens)} tokens"
        variant = f"{cell.variant}: " if cell.variant else ""
        cells_by_load.setdefault(f"{variant}{cell.pattern} {load}, {cell.prompts}, {tokens}", []).append(cell)
    return cells_by_load


def _length(tokens: int | None) -> str:
    return "any" if tokens is None else str(tokens)


def _figures(load: str, old: Sequence[Cell], new: Sequence[Cell], tolerance: float) -> list[Compared]:
    comparisons = []
    for name, is_more_better in FIGURES.items():
        before, after = _value(old, name), _value(new, name)
        if before is None or after is None:
            continue
        unit = next(cell.metrics[name].unit for cell in old if name in cell.metrics)
        share = after.mean / before.mean - 1 if before.mean else None
        change = _change(before, after, tolerance, is_more_better=is_more_better)
        comparisons.append(
            Compared(load=load, figure=name, unit=unit, before=before, after=after, change=change, share=share)
        )
    return comparisons


def _value(cells: Sequence[Cell], name: str) -> Value | None:
    good = [cell.metrics[name] for cell in cells if cell.state == "ok" and cell.value(name) is not None]
    values = [metric.value for metric in good if metric.value is not None]
    if not values:
        return None
    interval = of_repeats(values) if len(values) > 1 else (good[0].low, good[0].high)
    low, high = interval or (None, None)
    # The figures cannot be negative, but an interval around them can.
    low = low if low is None else max(0.0, low)
    return Value(mean=math.fsum(values) / len(values), low=low, high=high, cells=len(values))


def _change(before: Value, after: Value, tolerance: float, *, is_more_better: bool) -> Change:
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return "unknown"
    within = 1 + tolerance
    if after.high <= before.low * within and before.high <= after.low * within:
        return "same"
    apart = before.high < after.low or after.high < before.low
    if not apart or abs(after.mean - before.mean) <= tolerance * before.mean:
        return "not_shown"
    return "better" if (after.mean > before.mean) == is_more_better else "worse"


def _differences(before: Result, after: Result) -> list[str]:
    """What was measured differs: a change of a figure may come from it."""
    pairs = {
        "model": (before.manifest.model, after.manifest.model),
        "vLLM": (before.manifest.served_by.vllm_version, after.manifest.served_by.vllm_version),
        "accelerator": (before.manifest.platform.accelerator, after.manifest.platform.accelerator),
        "chips": (before.manifest.platform.chips, after.manifest.platform.chips),
        "instances": (before.manifest.platform.instances, after.manifest.platform.instances),
        "client": (before.manifest.client.bezel, after.manifest.client.bezel),
    }
    return [
        f"{name}: {old or 'unknown'} before, {new or 'unknown'} after"
        for name, (old, new) in pairs.items()
        if old != new
    ]
