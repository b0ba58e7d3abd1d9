"""The highest load that still keeps given limits, in few runs.

Noisy bisection on a log axis: a belief over all levels (the limits are kept up to one of them, and missed above it),
the level in its middle is measured, the figure and its interval say how surely it keeps the limits, and the belief
follows. Runs near the edge weigh less than those that are clear, and are repeated as needed.

Leaves out how a level is measured (`Measure`), and what the requests of a load within limits are worth
(`goodput` in `bezel.bench.metrics.definitions`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from bezel.bench.result.document import Finding
from bezel.bench.result.failures import FAILED_SHARE
from bezel.bench.sweep.run_once import INTERRUPTED, LostError, unreached
from bezel.bench.sweep.wording import counted, edge
from bezel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bezel.bench.result.document import Cell
    from bezel.bench.sweep.cell_request import CellWanted
    from bezel.bench.sweep.journal import Taken
    from bezel.bench.sweep.run_once import Once

CONFIDENCE = 0.9
MOST_RUNS = 16
# Two runs of one load never agree better than this, and one run is never surer than that: relative, and a probability.
_REPEATABLE, _SUREST = 0.05, 0.98
_UNKNOWN_SPREAD = 0.1  # of a figure without an interval
_USUAL = 0.95  # confidence of an interval that does not name its own


@dataclass(frozen=True)
class Search:
    """What is looked for.

    Attributes:
        wanted: The cell; its load is replaced by each level, its requests are the least of each.
        levels: Loads, rising: users, or requests a second where `wanted.rate` is set.
        limits: In milliseconds, by the name of the figure: {"ttft_p99": 500.0}.
        requests_per_user: Of a closed loop.
        seconds: Of an open loop: how long requests are sent at least.
    """

    wanted: CellWanted
    levels: tuple[float, ...]
    limits: Mapping[str, float]
    requests_per_user: int = 3
    seconds: float = 30.0

    @property
    def unit(self) -> str:
        """Of the levels."""
        return "users" if self.wanted.rate is None else "requests/s"

    def at(self, index: int, repeat: int) -> CellWanted:
        """The cell of a level."""
        level, least = self.levels[index], self.wanted.requests
        if self.wanted.rate is None:
            most = max(least, self.requests_per_user * int(level))
            return replace(self.wanted, users=int(level), requests=most, repeat=repeat)
        return replace(self.wanted, rate=level, requests=max(least, math.ceil(level * self.seconds)), repeat=repeat)


@dataclass(frozen=True)
class Found:
    """How a search ended.

    Attributes:
        cells: All that were measured, in their order.
        seconds: That were taken, waiting and the lost ones included; `usd` their price, None where it is not known.
        lost_seconds: Of these, what gave no cell.
        kept: How many of the levels keep the limits, most likely: 0 none, all of them all.
        sure: The probability that it is this many, or one level more or less.
        low: The fewest levels that may keep them, `high` the most, at CONFIDENCE.
        able: How many of the levels the client can send: from the next one on it was the limit itself.
        ended: Why, "" where the confidence was reached.
    """

    cells: list[Cell]
    seconds: float
    usd: float | None
    lost_seconds: float
    kept: int
    sure: float
    low: int
    high: int
    able: int
    ended: str = ""


def levels(lowest: float, highest: float, step: float, *, whole: bool) -> tuple[float, ...]:
    """Loads from the lowest to the highest, each `step` (relative) above the one before; whole numbers of users.

    Raises:
        UserError: There is no such range.
    """
    if not 0 < lowest <= highest or not 0 < step <= 1:
        raise UserError(f"{lowest:g} to {highest:g} in steps of {step:.0%} is no range of loads. Give e.g. 1:256.")
    count = math.ceil(math.log(highest / lowest) / math.log1p(step) - 1e-9)
    found = [lowest * (highest / lowest) ** (index / count) for index in range(count)] if count else []
    rounded = [float(round(one)) if whole else float(f"{one:.3g}") for one in (*found, highest)]
    return tuple(dict.fromkeys(rounded))


def search(plan: Search, once: Once, show: Callable[[str], None], most_runs: int = MOST_RUNS) -> Found:
    """Measures until the edge is known to one level, `most_runs` are done, or a limit is reached.

    Each step follows from the cells before it: a search that goes on after a kill takes the same ones as far as they
    were measured. A run of an earlier process that said nothing of the limits is asked again. Where the client was the
    limit, it is so with every higher load: the search goes on below.

    Args:
        plan: What is looked for.
        once: Measures loads, and knows those that were measured before.
        show: Told what is measured, and where the edge is thought to be.
        most_runs: How many loads are measured at most.
    """
    count = len(plan.levels)
    belief = np.full(count + 1, 1.0 / (count + 1))  # of each number of levels that keep the limits
    known = once.answered
    taken: list[Taken] = []
    repeats = [0] * count
    able, ended = count, ""
    while True:
        kept, sure, low, high = _told(belief)
        if sure >= CONFIDENCE or len(taken) == most_runs or ended:
            if not ended and sure < CONFIDENCE:
                ended = f"{most_runs} runs were not enough for {CONFIDENCE:.0%}"
            cells, seconds = [one.cell for one in taken], once.ledger.spent
            usd, lost = once.limits.cost(seconds), once.lost_seconds
            return Found(cells, seconds, usd, lost, kept, sure, low, high, able, ended)
        # The level at which the belief says yes and no as nearly alike as can be.
        index = int(np.argmin(np.abs(np.cumsum(belief)[:-1] - 0.5)))
        wanted = plan.at(index, repeats[index])
        repeats[index] += 1
        one = known.get(wanted.id)
        if one is None or isinstance(probability(one.cell, plan.limits), str):
            show(f"run {len(taken) + 1}, {plan.levels[index]:g}; the edge lies {_edge(plan, low, high, able)}")
            estimate = _estimate(taken, wanted)
            if why := once.keeps_out(estimate):
                ended = f"the limits allow no further run: {counted(plan.levels[index], plan.unit)} would take {why}"
                continue
            try:
                one = once.measure(wanted, estimate)
            except (KeyboardInterrupt, LostError) as error:
                ended = str(error) or INTERRUPTED
                continue
            if one.cut:
                ended = f"{one.cell.id} was cut off: the limit of {once.limits.told()} is reached"
                continue
        taken.append(one)
        if one.cell.state == "client_limited" and index:
            # What lies beyond is out of reach, and no reason to ask next to it: it may be out of the client's, too.
            able, belief = index, belief[: index + 1] / belief[: index + 1].sum()
            continue
        keeps = probability(one.cell, plan.limits)
        if isinstance(keeps, str):
            ended = f"{one.cell.id} says nothing of the limits: {keeps}"
            continue
        at = np.arange(able + 1)
        belief = belief * np.where(at > index, keeps, 1 - keeps)
        belief /= belief.sum()


def _estimate(taken: Sequence[Taken], wanted: CellWanted) -> float | None:
    """Seconds that a load takes at most, by the measured one that is nearest; None before there is one.

    With a higher load requests do not come back more slowly, in all; with a lower one each does not take longer.
    """
    load = _load(wanted)
    near = min(taken, key=lambda one: abs(math.log(_load(one.cell) / load)), default=None)
    if near is None or not near.cell.requests:
        return None
    return near.seconds * wanted.requests / near.cell.requests * max(1.0, _load(near.cell) / load)


def _load(of: Cell | CellWanted) -> float:
    return float(of.rate or of.users or 1)


def probability(cell: Cell, limits: Mapping[str, float]) -> float | str:
    """How likely the load of a cell keeps all limits; why that cannot be said, where it cannot."""
    if unreached(cell):
        return f"nobody answered: {cell.reason}"
    if cell.state in ("client_limited", "infeasible"):
        return f"{cell.state}: {cell.reason}"
    failed = sum(cell.failures.values())
    # A queue that grows keeps a limit for as long only as the load is short.
    if cell.state == "saturated" or failed > FAILED_SHARE * cell.requests:
        return 1 - _SUREST
    if cell.state == "failed":
        return f"{cell.state}: {cell.reason}"
    sure = _SUREST
    for name, limit in limits.items():
        metric = cell.metrics.get(name)
        if metric is None or metric.value is None:
            return f"{name} was not measured: {metric.why if metric else 'there is no figure of that name'}"
        if metric.value <= 0:
            continue
        spread = _UNKNOWN_SPREAD
        if metric.low is not None and metric.high is not None:
            spread = (
                (metric.high - metric.low)
                / 2
                / metric.value
                / NormalDist().inv_cdf((1 + (metric.confidence or 0.95)) / 2)
            )
        spread = math.hypot(spread, _REPEATABLE)
        sure = min(sure, NormalDist().cdf(math.log(limit / metric.value) / spread))
    return max(sure, 1 - _SUREST)


def conclude(plan: Search, found: Found) -> Finding:
    """What a search found, for the reader."""
    slos = " and ".join(f"{name} <= {limit:g} ms" for name, limit in plan.limits.items())
    unit = plan.unit
    cells = [cell.id for cell in found.cells]
    numbers: dict[str, int | float | str | None] = {
        "unit": unit,
        "sure": found.sure,
        "runs": len(found.cells),
        "seconds": found.seconds,
        "usd": found.usd,
        "highest": plan.levels[found.kept - 1] if found.kept else None,
        "low": plan.levels[found.low - 1] if found.low else None,
        "high": plan.levels[found.high - 1] if found.high else None,
    }
    if not cells:
        text = "Nothing was measured"
    elif found.kept in (0, found.able) and found.sure < CONFIDENCE:
        # That none or all of them keep the limits is a claim, which so little does not bear.
        text = f"Which load still keeps {slos} is not known: at {CONFIDENCE:.0%} the edge lies "
        text += _edge(plan, found.low, found.high, found.able)
        numbers["highest"] = None
    elif found.kept == 0:
        text = f"Even the lowest load, {counted(plan.levels[0], unit)}, misses {slos}"
    elif found.kept == found.able:
        highest = "highest load" if found.able == len(plan.levels) else "highest load that this client can send"
        text = f"The {highest}, {counted(plan.levels[found.able - 1], unit)}, still keeps {slos}: the edge lies beyond"
    else:
        best = _at(plan, found)
        goodput = best.value("goodput") if best else None
        text = (
            f"Loads up to {counted(plan.levels[found.kept - 1], unit)} keep {slos} (at {CONFIDENCE:.0%} the edge lies "
        )
        text += f"{_edge(plan, found.low, found.high, found.able)})" + (
            f"; there {goodput:.4g} requests/s keep every limit" if goodput else ""
        )
        numbers["goodput"] = goodput
    text += f" ({counted(len(found.cells), 'runs')})."
    if found.able < len(plan.levels):
        text += (
            f" At {counted(plan.levels[found.able], unit)} the client was the limit, so that this and higher loads are "
            "not judged: more workers, or several machines, send more."
        )
        numbers["client_limited_from"] = plan.levels[found.able]
    return Finding(name="highest_load", text=text + (f" It ended early: {found.ended}." if found.ended else ""),
                   numbers=numbers, cells=cells)  # fmt: skip


def _at(plan: Search, found: Found) -> Cell | None:
    """The last cell that was measured at the highest level that keeps the limits."""
    level = plan.levels[found.kept - 1]
    return next((cell for cell in reversed(found.cells) if level in (cell.users, cell.rate)), None)


def _told(belief: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[int, float, int, int]:
    """The likeliest number of levels, how sure that is to one level, and the range at CONFIDENCE."""
    kept, most = int(np.argmax(belief)), len(belief) - 1
    # At either end "none" and "all" are claims of their own: no neighbour stands in for them, nor they for one.
    sure = float(belief[kept]) if kept in (0, most) else float(belief[max(1, kept - 1) : min(kept + 2, most)].sum())
    below = np.cumsum(belief)
    rest = (1 - CONFIDENCE) / 2
    return kept, sure, int(np.searchsorted(below, rest)), min(int(np.searchsorted(below, 1 - rest)), len(belief) - 1)


def _edge(plan: Search, low: int, high: int, able: int) -> str:
    """Where the edge lies, by the fewest levels that may keep the limits, and the most of those that can be sent."""
    below = plan.levels[low - 1] if low else None
    above = plan.levels[high] if high < able else None
    return edge(below, above, (plan.levels[0], plan.levels[able - 1]), plan.unit)
