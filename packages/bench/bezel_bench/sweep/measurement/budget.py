"""Budget of a sweep, a search or a comparison: limits, spending so far, and estimates of the next cell.

Pure. An unknown price stays unknown: then only the time limit applies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bezel_base.text.counting import format_count
from bezel_bench.sweep.grid import Grid, Place

RATES = ("requests_per_second", "output_tokens_per_second", "input_tokens_per_second")
"""Metrics of a sweep: with the grid, they give the duration of a cell."""


@dataclass(frozen=True)
class Limits:
    """Limits of the spending; None sets no limit.

    Attributes:
        seconds: Time of all cells together, waiting for the server included.
        usd: Price of the same seconds.
        usd_per_hour: Price of all serving hardware; None is unknown.
        requests: Requests of all cells together.
    """

    seconds: float | None = None
    usd: float | None = None
    usd_per_hour: float | None = None
    requests: int | None = None

    def cost(self, seconds: float) -> float | None:
        """Return the price of a number of seconds, in USD."""
        return None if self.usd_per_hour is None else seconds * self.usd_per_hour / 3600

    def seconds_left(self, spent: float) -> float | None:
        """Return the seconds until the first of the limits; None without one."""
        left = [] if self.seconds is None else [self.seconds - spent]
        if self.usd is not None and self.usd_per_hour:
            left.append(self.usd * 3600 / self.usd_per_hour - spent)
        return min(left, default=None)

    def keeps_out(self, spent: float, sent: int, seconds: float | None, requests: int) -> str:
        """Return why a cell is not begun, "" where it is; without an estimate, it is begun while anything is left."""
        if self.requests is not None and sent + requests > self.requests:
            return (
                f"{format_count(requests, 'requests')} more than the {self.requests - sent} left of the "
                f"{self.requests} of --share"
            )
        left = self.seconds_left(spent)
        if left is None or (left > 0 and (seconds is None or seconds <= left)):
            return ""
        needed = "an unknown time" if seconds is None else f"about {seconds:.0f} s"
        return f"{needed}, with {max(left, 0.0):.0f} s left of {self.describe()}"

    def describe(self) -> str:
        """Return the limits of time and money in words."""
        limits = [] if self.seconds is None else [f"{self.seconds / 60:g} minutes"]
        if self.usd is not None and self.usd_per_hour:
            limits.append(f"{self.usd:g} USD at {self.usd_per_hour:g} USD an hour")
        return " and ".join(limits)


def notes(limits: Limits, lost_seconds: float) -> list[str]:
    """Return notes on time and money for the reader; `lost_seconds` gave no cell."""
    notes = []
    if lost_seconds > 0:
        notes.append(
            f"{lost_seconds:.0f} s gave no cell, after a kill, a limit, an unreachable server, or a repeated load. "
            "They count against the limits."
        )
    if limits.usd_per_hour is None:
        notes.append("The price of the server is unknown: no cost is shown, and no limit in USD was applied.")
    return notes


@dataclass(frozen=True)
class Pace:
    """Durations of cells, derived from the measured ones.

    Attributes:
        rates: Requests per second of measured cells.
        beside: Seconds of a cell in addition to sending at that rate: waiting, starting, ending.
    """

    rates: Mapping[Place, float]
    beside: float

    def seconds(self, grid: Grid, place: Place, rate: float | None = None) -> float | None:
        """Return the estimated seconds of a cell: at a given rate, or at that of the nearest measured cell."""
        if rate is None:
            if not self.rates:
                return None
            near = min(self.rates, key=lambda one: (abs(one[0] - place[0]) + abs(one[1] - place[1]), one))
            rate = self.rates[near]
        return grid.requests(place) / rate + self.beside


def pace(grid: Grid, values: Mapping[Place, float], metric: str, taken: Sequence[tuple[Place, float]]) -> Pace:
    """Return the pace so far.

    Args:
        grid: The grid.
        values: Values of the metric, which is one of RATES.
        metric: Its name.
        taken: Measured cells and the total seconds of each.
    """
    rates = {place: value / tokens(grid, metric, place) for place, value in values.items()}
    beside = [max(0.0, seconds - grid.requests(place) / rates[place]) for place, seconds in taken if place in rates]
    return Pace(rates, sum(beside) / len(beside) if beside else 0.0)


def tokens(grid: Grid, metric: str, place: Place) -> int:
    """Return how much one request counts in the metric."""
    if metric == "output_tokens_per_second":
        return grid.output_tokens
    return grid.contexts[place[0]] if metric == "input_tokens_per_second" else 1
