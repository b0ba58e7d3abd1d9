"""Search for the highest load that still keeps given limits, in few runs.

Noisy bisection on a log axis: it holds a belief over all levels (the limits are kept up to one of them, and missed
above it) and measures the level in its middle; the figure and its interval give the probability that the level keeps
the limits, which updates the belief. Runs near the edge weigh less than clear ones, and are repeated as needed.

Leaves out how a level is measured (`Measure`), and the goodput of a load within limits
(`goodput` in `bezel_bench.metrics.definitions`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.result.document import Cell, Finding, Numbers
from bezel_bench.result.failures import FAILED_SHARE
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.inference.repeats import REPEATABLE
from bezel_bench.sweep.measurement.journal import Taken
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, LostError, Once, is_unreached
from bezel_bench.sweep.measurement.second_try import TRIES, is_disturbed
from bezel_bench.sweep.wording import edge_position

CONFIDENCE = 0.9
MOST_RUNS = 16
_SUREST = 0.98  # the highest probability that one run can give
_UNKNOWN_SPREAD = 0.1  # assumed for a figure without an interval
_USUAL = 0.95  # assumed confidence of an interval that states none
_LEAST_STEP, _HIGHEST = 0.001, 1e9  # more loads than these give would fill the memory


@dataclass(frozen=True)
class Search:
    """Plan of a search.

    Attributes:
        request: The cell; each level replaces its load, its requests are the minimum of each level.
        levels: Loads, rising: users, or requests per second where `request.rate` is set.
        limits: Limits in milliseconds, by the name of the figure: {"ttft_p99": 500.0}.
        requests_per_user: Requests per user of a closed loop.
        seconds: The least time of sending in an open loop.
    """

    request: CellRequest
    levels: tuple[float, ...]
    limits: Mapping[str, float]
    requests_per_user: int = 3
    seconds: float = 30.0

    @property
    def unit(self) -> str:
        """Return the unit of the levels."""
        return "users" if self.request.rate is None else "requests/s"

    def at(self, index: int, repeat: int) -> CellRequest:
        """Return the cell of a level; each repeat of each rate has a seed, so gaps of its own."""
        level, lower = self.levels[index], self.request.requests
        if self.request.rate is None:
            upper = max(lower, self.requests_per_user * int(level))
            return replace(self.request, users=int(level), requests=upper, repeat=repeat)
        requests, seed = max(lower, math.ceil(level * self.seconds)), index + repeat * len(self.levels)
        return replace(self.request, rate=level, requests=requests, repeat=repeat, seed=self.request.seed + seed)


@dataclass(frozen=True)
class Found:
    """Outcome of a search.

    Attributes:
        cells: All measured cells, in their order.
        seconds: Time spent, waiting and lost seconds included; `usd` is its price, None where unknown.
        lost_seconds: The part of them that gave no cell.
        kept: The likeliest number of levels that keep the limits: from 0 to all of them.
        sure: The probability of this number, or of one level more or less.
        low: The fewest levels that may keep them, `high` the most, at CONFIDENCE.
        able: The number of levels that could be measured: at the next the client was the limit, or its machine busy.
        disturbed: The measured cells of that next level.
        is_limit: Whether a second try confirmed that the client cannot send it, and no higher load was sent.
        ended: The reason of the end, "" where the confidence was reached.
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
    disturbed: Sequence[Cell] = ()
    is_limit: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether the search reached its confidence."""
        return not self.ended


def levels(lowest: float, highest: float, step: float, *, whole: bool) -> tuple[float, ...]:
    """Return loads from lowest to highest, each `step` (relative) above the one before; whole numbers for users.

    Raises:
        UserError: The range is invalid.
    """
    if not 1 / _HIGHEST <= lowest <= highest <= _HIGHEST or not _LEAST_STEP <= step <= 1:
        option, value = "--users" if whole else "--rate", f"{lowest:g}:{highest:g}, {100 * step:g}"
        consequence = f"a range of loads rises from above 0 to {_HIGHEST:,.0f} at most, in steps of 0.1 % to 100 %."
        repair = f"give e.g. {option} 1:256, and leave --step out."
        raise UserError(Problem(f"{option}, --step", value, consequence, repair))
    count = math.ceil(math.log(highest / lowest) / math.log1p(step) - 1e-9)
    loads = [lowest * (highest / lowest) ** (index / count) for index in range(count)]
    rounded = [float(round(load)) if whole else float(f"{load:.3g}") for load in (*loads, highest)]
    return tuple(dict.fromkeys(rounded))


def search(plan: Search, once: Once, show: Callable[[str], None], most_runs: int = MOST_RUNS) -> Found:
    """Measure until the edge is known to one level, `most_runs` are done, or a limit is reached.

    Each step follows from the cells before it: a search resumed after a kill takes the same steps as far as they
    were measured. A run of an earlier process that was inconclusive about the limits is repeated. Where the client was
    the limit, or its machine busy, the search continues below, and returns for a second try if the edge is not there.

    Args:
        plan: The plan of the search.
        once: Measures loads, and stores earlier measurements.
        show: Receives the load to be measured, and the estimated edge.
        most_runs: The most loads to measure.
    """
    edge = _Edge(len(plan.levels))
    earlier = once.conclusive_runs
    taken: list[Taken] = []
    repeats = [0] * len(plan.levels)
    ended = ""
    while True:
        able, (kept, sure, low, high) = edge.able, edge.conclusion
        tries = edge.disturbed.get(able, [])
        if not ended and edge.is_beyond and len(tries) >= TRIES:
            ended = f"{tries[-1].id} is inconclusive about the limits: {probability(tries[-1], plan.limits)}"
        if len(taken) == most_runs or ended or (sure >= CONFIDENCE and not edge.is_beyond):
            if not ended and (sure < CONFIDENCE or edge.is_beyond):
                ended = (
                    f"{format_count(most_runs, 'runs')} {'was' if most_runs == 1 else 'were'} not enough for "
                    f"{CONFIDENCE:.0%}"
                )
            cells, seconds = [run.cell for run in taken], once.ledger.spent_seconds
            usd, lost = once.limits.cost(seconds), once.lost_seconds
            is_limit = len(tries) >= TRIES and not _higher_was_sent(tries, cells)
            return Found(cells, seconds, usd, lost, kept, sure, low, high, able, ended, tries, is_limit)
        index = edge.next_level
        request = plan.at(index, repeats[index])
        repeats[index] += 1
        run = earlier.get(request.id)
        if run is None or isinstance(probability(run.cell, plan.limits), str):
            show(f"run {len(taken) + 1}, {plan.levels[index]:g}; the edge is {_edge(plan, low, high, able)}")
            measured = _measure(once, request, _estimate(taken, request), plan.unit)
            if isinstance(measured, str):
                ended = measured
                continue
            run = measured
        taken.append(run)
        keeps = probability(run.cell, plan.limits)
        if is_disturbed(run.cell):
            edge.disturbed.setdefault(index, []).append(run.cell)
        elif isinstance(keeps, str):
            ended = f"{run.cell.id} is inconclusive about the limits: {keeps}"
        else:
            edge.learn(index, keeps)


def _measure(once: Once, request: CellRequest, estimate: float | None, unit: str) -> Taken | str:
    """Measure a load; return why it could not be measured, and the search ends, instead."""
    if why := once.keeps_out(estimate):
        return f"the limits allow no further run: {format_count(_load(request), unit)} would need {why}"
    try:
        run = once.measure(request, estimate)
    except (KeyboardInterrupt, LostError) as error:
        return str(error) or INTERRUPTED
    return f"{run.cell.id} was cut off: the limit of {once.limits.describe()} is reached" if run.cut else run


class _Edge:
    """What is known of the edge: the probability of each number of levels that keep the limits.

    Attributes:
        disturbed: The cells of levels that the client or its machine disturbed, until they or higher ones are measured.
    """

    def __init__(self, levels: int) -> None:
        self._belief = np.full(levels + 1, 1.0 / (levels + 1))
        self.disturbed: dict[int, list[Cell]] = {}

    @property
    def able(self) -> int:
        """Return the number of levels below every disturbed one."""
        return min(self.disturbed, default=len(self._belief) - 1)

    @property
    def conclusion(self) -> tuple[int, float, int, int]:
        """Return what `_conclusion` does, of the levels that could be measured."""
        return _conclusion(self._within)

    @property
    def is_beyond(self) -> bool:
        """Whether the search has come to an end below a disturbed level, and the edge may be there."""
        _, sure, _, high = self.conclusion
        return self.able in self.disturbed and high == self.able and sure >= CONFIDENCE

    @property
    def next_level(self) -> int:
        """Return the level at which the belief is closest to one half, or the disturbed one to be tried again."""
        if self.is_beyond:
            return self.able
        return int(np.argmin(np.abs(np.cumsum(self._within)[:-1] - 0.5)))

    @property
    def _within(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        below = self._belief[: self.able + 1]
        within: np.ndarray[tuple[int], np.dtype[np.float64]] = below / below.sum()
        return within

    def learn(self, level: int, keeps: float) -> None:
        """Take the probability that a level keeps the limits. It was sent, so no lower one is beyond the client."""
        self.disturbed = {place: cells for place, cells in self.disturbed.items() if place > level}
        belief = self._belief * np.where(np.arange(len(self._belief)) > level, keeps, 1 - keeps)
        self._belief = belief / belief.sum()


def _higher_was_sent(tries: Sequence[Cell], cells: Sequence[Cell]) -> bool:
    """Whether a disturbed load is no limit of the client: its machine was busy, or a higher one was sent."""
    return any(cell.state != "client_limited" for cell in tries) or any(
        _load(cell) > _load(tries[0]) and not is_disturbed(cell) for cell in cells
    )


def _estimate(taken: Sequence[Taken], request: CellRequest) -> float | None:
    """Return the most seconds that a load takes, from the nearest measured one; None before there is one.

    With a higher load the total rate of responses does not fall; with a lower one no single response takes longer.
    """
    load = _load(request)
    near = min(taken, key=lambda run: abs(math.log(_load(run.cell) / load)), default=None)
    if near is None or not near.cell.requests:
        return None
    return near.seconds * request.requests / near.cell.requests * max(1.0, _load(near.cell) / load)


def _load(of: Cell | CellRequest) -> float:
    return float(of.rate or of.users or 1)


def probability(cell: Cell, limits: Mapping[str, float]) -> float | str:
    """Return the probability that the load of a cell keeps all limits, or the reason why it is unknown."""
    if is_unreached(cell):
        return f"the server was unreachable: {cell.reason}"
    if is_disturbed(cell) or cell.state == "infeasible":
        return f"{cell.state}: {cell.reason}"
    failed = sum(cell.failures.values())
    # A growing queue keeps a limit only because the load is short.
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
            quantile = NormalDist().inv_cdf((1 + (metric.confidence or _USUAL)) / 2)
            spread = (metric.high - metric.low) / 2 / metric.value / quantile
        spread = math.hypot(spread, REPEATABLE)
        sure = min(sure, NormalDist().cdf(math.log(limit / metric.value) / spread))
    return max(sure, 1 - _SUREST)


def conclude(plan: Search, outcome: Found) -> Finding:
    """Return a search's finding for the reader."""
    slos = " and ".join(f"{name} <= {limit:g} ms" for name, limit in plan.limits.items())
    unit = plan.unit
    cells = [cell.id for cell in outcome.cells]
    numbers: Numbers = {
        "unit": unit,
        "sure": outcome.sure,
        "runs": len(outcome.cells),
        "seconds": outcome.seconds,
        "usd": outcome.usd,
        "highest": plan.levels[outcome.kept - 1] if outcome.kept else None,
        "low": plan.levels[outcome.low - 1] if outcome.low else None,
        "high": plan.levels[outcome.high - 1] if outcome.high else None,
    }
    edge = _edge(plan, outcome.low, outcome.high, outcome.able)
    if not cells:
        text = "Nothing was measured"
    elif outcome.kept == outcome.able < len(plan.levels) and not (outcome.able and outcome.is_limit):
        text = f"The highest load that keeps {slos} is unknown"
        text += f": loads up to {format_count(plan.levels[outcome.kept - 1], unit)} keep them" if outcome.kept else ""
        numbers["highest"] = None
    elif outcome.kept in (0, outcome.able) and outcome.sure < CONFIDENCE:
        # "None" or "all of them keep the limits" would be a claim that so few data do not support.
        text = f"The highest load that keeps {slos} is unknown: at {CONFIDENCE:.0%} the edge is {edge}"
        numbers["highest"] = None
    elif outcome.kept == 0:
        text = f"Even the lowest load, {format_count(plan.levels[0], unit)}, misses {slos}"
    elif outcome.kept == outcome.able:
        best_load = "highest load" if outcome.able == len(plan.levels) else "highest load that this client can send"
        load = format_count(plan.levels[outcome.able - 1], unit)
        text = f"The {best_load}, {load}, still keeps {slos}: the edge is higher"
    else:
        best = _at(plan, outcome)
        goodput = best.value("goodput") if best else None
        highest = format_count(plan.levels[outcome.kept - 1], unit)
        text = f"Loads up to {highest} keep {slos} (at {CONFIDENCE:.0%} the edge is {edge})"
        text += f"; there {goodput:.4g} requests/s keep every limit" if goodput else ""
        numbers["goodput"] = goodput
    text += f" ({format_count(len(outcome.cells), 'runs')})."
    if outcome.able < len(plan.levels):
        busy = all(cell.state == "busy_machine" for cell in outcome.disturbed)
        what = "other work kept the machine busy" if busy else "the client was the limit"
        tries = f"in {len(outcome.disturbed)} tries" if outcome.is_limit else "when it was tried"
        text += f" At {format_count(plan.levels[outcome.able], unit)} {what} {tries}, so this and higher loads "
        text += "are not judged."
        if outcome.is_limit:
            text += " More workers, or several machines, send more."
            numbers["client_limited_from"] = plan.levels[outcome.able]
    return Finding(name="highest_load", text=text + (f" It ended early: {outcome.ended}." if outcome.ended else ""),
                   numbers=numbers, cells=cells)  # fmt: skip


def _at(plan: Search, outcome: Found) -> Cell | None:
    """Return the last cell that was measured at the highest level that keeps the limits."""
    level = plan.levels[outcome.kept - 1]
    return next((cell for cell in reversed(outcome.cells) if level in (cell.users, cell.rate)), None)


def _conclusion(belief: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[int, float, int, int]:
    """Return the likeliest number of levels, its probability to within one level, and the range at CONFIDENCE."""
    kept, highest = int(np.argmax(belief)), len(belief) - 1
    # At either end "none" and "all" are claims of their own: neighbours do not count for them, nor they for neighbours.
    sure = (
        float(belief[kept]) if kept in (0, highest) else float(belief[max(1, kept - 1) : min(kept + 2, highest)].sum())
    )
    below = np.cumsum(belief)
    rest = (1 - CONFIDENCE) / 2
    return kept, sure, int(np.searchsorted(below, rest)), min(int(np.searchsorted(below, 1 - rest)), len(belief) - 1)


def _edge(plan: Search, low: int, high: int, able: int) -> str:
    """Describe the edge by the fewest levels that may keep the limits, and the most of those that can be sent."""
    below = plan.levels[low - 1] if low else None
    above = plan.levels[high] if high < able else None
    return edge_position(below, above, (plan.levels[0], plan.levels[able - 1]), plan.unit)
