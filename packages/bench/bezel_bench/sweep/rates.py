"""Rates in one table: the throughput of one user, the highest, and loads of set rates between, each with its figures.

Owns the choice of the rates and the conclusion: the highest rate up to which every one keeps the limits. Leaves out how
a load is measured (`Measure`) and how sure a load keeps its limits (`bezel_bench.sweep.goodput.probability`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bezel_base.text.counting import format_count
from bezel_bench.result.document import Cell, Finding, Numbers
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.goodput import probability
from bezel_bench.sweep.measurement.journal import Taken
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, LostError, Once, died
from bezel_bench.sweep.measurement.second_try import TRIES, is_disturbed

REQUESTS = 16
"""The fewest requests of a load; `RatePlan.request` may have more."""
_ROUNDS = 3  # requests of each user in the loads without a rate
_KEPT = 0.5  # the least probability at which a load counts as one that keeps its limits


@dataclass(frozen=True)
class RatePlan:
    """Plan of the rates.

    Attributes:
        request: The cell; each load replaces its users or its rate, and its requests.
        rates: Requests per second, rising; () for `steps` of them from the throughput of one user to that of `users`.
        steps: The number of rates.
        users: Users of the closed loop that shows the highest throughput.
        seconds: The time in which the requests of a rate are sent.
        limits: Limits in milliseconds, by the name of the figure: {"ttft_p99": 500.0}.
    """

    request: CellRequest
    rates: tuple[float, ...] = ()
    steps: int = 8
    users: int = 64
    seconds: float = 30.0
    limits: Mapping[str, float] = field(default_factory=dict)

    def of_users(self, users: int) -> CellRequest:
        """Return the load without a rate, of a number of users."""
        return replace(self.request, users=users, rate=None, requests=max(REQUESTS, _ROUNDS * users))

    def of_rate(self, rate: float, place: int = 0) -> CellRequest:
        """Return the load of a rate; by its place each has a seed, so gaps of its own, the first that of the plan."""
        requests = max(self.request.requests, math.ceil(rate * self.seconds))
        return replace(self.request, users=None, rate=rate, requests=requests, seed=self.request.seed + place)


@dataclass(frozen=True)
class Rated:
    """Outcome of the loads.

    Attributes:
        cells: The measured cells: without a rate first, then by rate.
        ended: The reason why loads are missing, "" where none is.
        lost_seconds: The time that gave no cell.
    """

    cells: list[Cell]
    ended: str
    lost_seconds: float

    @property
    def is_complete(self) -> bool:
        """Return whether no load is missing, and the client or its machine disturbed none."""
        return not self.ended and not any(is_disturbed(cell) for cell in self.cells)


def rates_between(lowest: float, highest: float, steps: int) -> tuple[float, ...]:
    """Return evenly spaced rates from the lowest to the highest, of three digits each."""
    spread = [lowest + (highest - lowest) * step / max(1, steps - 1) for step in range(steps)]
    return tuple(dict.fromkeys(float(f"{rate:.3g}") for rate in (spread if steps > 1 else [highest])))


def measure_rates(plan: RatePlan, once: Once, show: Callable[[str], None]) -> Rated:
    """Measure each load once, and those again that the client or its machine disturbed.

    Args:
        plan: The plan.
        once: Measures loads, and stores earlier measurements.
        show: Receives the load to be measured.
    """
    runs = _Runs(once, show)
    rates = plan.rates
    if not rates:
        bounds = runs.take_all([plan.of_users(users) for users in dict.fromkeys((1, plan.users))])
        throughputs = [cell.value("requests_per_second") if cell else None for cell in bounds]
        lowest, highest = throughputs[0], throughputs[-1]
        if not lowest or not highest:
            reason = next((cell.reason for cell in bounds if cell and cell.reason), "no response was counted")
            return runs.outcome(f"the range of rates is unknown: {reason}")
        # A server that many users slow down completes most with one.
        rates = rates_between(min(lowest, highest), max(lowest, highest), plan.steps)
    runs.take_all([plan.of_rate(rate, place) for place, rate in enumerate(rates)])
    return runs.outcome("")


class _Runs:
    """The loads so far. Once one cannot be measured, none is any more.

    Attributes:
        cells: The last cell of each load, by its id.
    """

    def __init__(self, once: Once, show: Callable[[str], None]) -> None:
        self.cells: dict[str, Cell] = {}
        self._once, self._show, self._earlier = once, show, once.conclusive_runs
        self._sent: set[str] = set()
        taken = once.ledger.taken
        if any(one.cell.rate is not None for one in taken):
            # Rates that were sent keep their range, also a disturbed one: from another one would come other rates.
            ranges = {one.cell.id: one for one in taken if one.cell.rate is None and is_disturbed(one.cell)}
            self._earlier = ranges | self._earlier
        self._ended = ""
        self._pace: float | None = None  # seconds of a request of one user
        self._beside = 0.0  # seconds that the last rate took beside its own time of sending

    def take_all(self, requests: Sequence[CellRequest]) -> list[Cell | None]:
        """Measure loads, and those once more that the client or its machine disturbed; return what is known of each."""
        for request in requests:
            self.take(request)
        for _ in range(TRIES - 1):
            for request in [one for one in requests if one.id in self._sent and is_disturbed(self.cells[one.id])]:
                self.take(request)
        return [self.cells.get(request.id) for request in requests]

    def take(self, request: CellRequest) -> Cell | None:
        """Measure a load, unless it was measured before; None where it cannot be."""
        taken = self._earlier.pop(request.id, None) or (None if self._ended else self._measure(request))
        if taken is None:
            return None
        self.cells[request.id] = taken.cell
        return taken.cell

    def _measure(self, request: CellRequest) -> Taken | None:
        load = format_count(request.users or 0, "users") if request.rate is None else f"{request.rate:g} requests/s"
        if why := self._once.keeps_out(self._estimate(request)):
            self._ended = f"the limits allow no further load: {load} would need {why}"
            return None
        self._show(load)
        try:
            taken = self._once.measure(request, self._estimate(request))
        except (KeyboardInterrupt, LostError) as error:
            self._ended = str(error) or INTERRUPTED
            return None
        if taken.cut:
            self._ended = f"{request.id} was cut off: the limit of {self._once.limits.describe()} is reached"
            return None
        self._sent.add(request.id)
        if request.rate is not None:
            self._beside = max(0.0, taken.seconds - request.requests / request.rate)
        elif request.users == 1:
            self._pace = taken.seconds / max(1, taken.cell.requests)
        return taken

    def _estimate(self, request: CellRequest) -> float | None:
        """Return the seconds of a load: its time of sending and what the last one took beside it; None if unknown.

        Of users, whose rate is what their load shows, the least: each at the pace of one alone.
        """
        if request.rate is not None:
            return request.requests / request.rate + self._beside
        return None if self._pace is None else self._pace * request.requests / (request.users or 1)

    def outcome(self, ended: str) -> Rated:
        """Return the outcome; `ended` is the reason where no load failed."""
        return Rated([*self.cells.values()], self._ended or ended, self._once.lost_seconds)


def conclude(plan: RatePlan, outcome: Rated) -> Finding:
    """Return the point up to which the limits are kept, for the reader."""
    rated = [cell for cell in outcome.cells if cell.rate is not None]
    limits = " and ".join(f"{name} <= {limit:g} ms" for name, limit in plan.limits.items())
    keeps = {
        cell.id: "the server was lost" if outcome.ended and died(cell) else probability(cell, plan.limits)
        for cell in rated
    }
    kept: list[Cell] = []
    missed: Cell | None = None
    for cell in rated:
        sure = keeps[cell.id]
        if isinstance(sure, float) and sure < _KEPT:
            missed = cell
            break
        if isinstance(sure, float):
            kept.append(cell)
    highest = kept[-1].rate if kept else None
    numbers: Numbers = {"unit": "requests/s", "highest": highest, "missed": missed.rate if missed else None}
    what = f"keep {limits}" if limits else "are completed as fast as they are sent"
    if not rated:
        text = "No rate was measured"
    elif highest is None:
        lowest = "Not even the lowest rate" if missed is rated[0] else "Not even the lowest rate that could be judged"
        why = f"keeps {limits}" if limits else "is completed as fast as it is sent"
        text = f"{lowest}, {missed.rate:g} requests/s, {why}" if missed else "No rate could be judged"
    else:
        text = f"Rates up to {highest:g} requests/s {what}"
        text += f"; {missed.rate:g} requests/s do not" if missed else ", the highest that was sent"
    unclear = [f"{cell.id} ({cell.state})" for cell in rated if isinstance(keeps[cell.id], str)]
    text += f". Not judged: {', '.join(unclear)}" if unclear else ""
    text += f". Ended early: {outcome.ended}" if outcome.ended else ""
    return Finding(name="highest_load", text=f"{text}.", numbers=numbers, cells=[cell.id for cell in rated])
