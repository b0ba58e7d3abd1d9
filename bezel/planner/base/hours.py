"""Hours in which a stack's machines are leased: whether an instant is in them, when they begin, their share of a month.

Hours are windows, each with two cron schedules: the machines are leased from an occurrence of `start` until the next
one of `end`. Leaves out what may be set (bezel.planner.rules.hours_checks) and who requests and returns the leases
(components/bezel_components/lease_hours.py). Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bezel.planner.base.schedule import FOUR_WEEKS, Entry, minimum_at, occurrences
from bezel_base.cron import parse_cron, time_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_USE = timedelta(minutes=45)
"""Of the hours that a try has to leave: an end may be repeated for 35 minutes while the machine is provisioned."""
CLEARED = timedelta(minutes=10)
"""Until a failed request is deleted."""
_SETTLED = timedelta(minutes=15)
"""After the patience, until a request has failed for certain."""
_YEAR = timedelta(days=366)


class Window(NamedTuple):
    """Hours of a week or a year, by two cron schedules of five fields in a time zone of the tz database."""

    start: str
    end: str
    zone: str


class Retries(NamedTuple):
    """When a start is tried again: two cron schedules in the time zone of its hours.

    Attributes:
        clear: When a failed request is deleted.
        start: When the lease is requested again, some minutes later.
    """

    clear: str
    start: str


class Spans(NamedTuple):
    """Durations between starts and ends.

    Attributes:
        inside: From each start to its end.
        between: From each end to the next start.
        in_turn: Whether starts and ends follow each other, one at a time.
    """

    inside: tuple[timedelta, ...]
    between: tuple[timedelta, ...]
    in_turn: bool


def is_within(windows: Sequence[Window], instant: datetime) -> bool:
    """Whether the last start came after the last end.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    return minimum_at(_entries(windows), instant) == 1


def next_start(windows: Sequence[Window], instant: datetime) -> datetime | None:
    """The first start after an instant, in UTC; None if there is none.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    starts = [parse_cron(window.start).after(instant, time_zone(window.zone)) for window in windows]
    return min((start for start in starts if start is not None), default=None)


def share_of_time(windows: Sequence[Window]) -> Decimal:
    """Share of time that is inside, 0 to 1: of four weeks, or of a year where a schedule does not occur in these.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    end, events = _events(windows)
    since, leased, inside = FOUR_WEEKS[0], is_within(windows, FOUR_WEEKS[0]), timedelta(0)
    for at, leases in [*events, (end, 0)]:
        inside += (at - since) if leased else timedelta(0)
        since, leased = at, bool(leases)
    return Decimal(inside.total_seconds()) / Decimal((end - FOUR_WEEKS[0]).total_seconds())


def spans(windows: Sequence[Window]) -> Spans:
    """Durations over the same time as that of `share_of_time`.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    pairs = list(pairwise(_events(windows)[1]))
    return Spans(
        inside=tuple(later[0] - earlier[0] for earlier, later in pairs if earlier[1] and not later[1]),
        between=tuple(later[0] - earlier[0] for earlier, later in pairs if not earlier[1] and later[1]),
        in_turn=all(earlier[1] != later[1] for earlier, later in pairs),
    )


def retries(window: Window, patience_seconds: float) -> Retries | None:
    """Times at which a start is tried again, on the day of its hours; None where there is no such time.

    Each try comes once the one before it has waited for capacity as long as it may: whole hours after the start, up to
    the last that leaves `LEAST_USE` of the hours. A start at several minutes of an hour has none.

    Args:
        window: Hours of a lease.
        patience_seconds: How long a request waits for capacity.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    cron = parse_cron(window.start)
    inside = spans([window]).inside
    if len(cron.minutes) != 1 or not inside:
        return None
    (minute,) = cron.minutes
    step = -(-(timedelta(seconds=patience_seconds) + _SETTLED) // timedelta(hours=1))
    left = min(inside) - LEAST_USE - CLEARED
    after = range(step, left // timedelta(hours=1) + 1, step)
    dates = window.start.split()[2:]
    hours = sorted({hour + later for hour in cron.hours for later in after})
    overflow, again = divmod(minute + CLEARED // timedelta(minutes=1), 60)
    if dates == ["*", "*", "*"]:
        hours = sorted({hour % 24 for hour in hours})
    else:
        hours = [hour for hour in hours if hour + overflow < 24]  # the next day may be none of the lease's
    if not hours:
        return None
    cleared, requested = (
        " ".join([str(at), ",".join(str((hour + more) % 24) for hour in hours), *dates])
        for at, more in ((minute, 0), (again, overflow))
    )
    return Retries(cleared, requested)


def _events(windows: Sequence[Window]) -> tuple[datetime, list[tuple[datetime, int]]]:
    """End of the observed time, and its starts (1) and ends (0) in order; at one instant the end comes first."""
    begin, end = FOUR_WEEKS
    events = list(occurrences(_entries(windows), begin, end))
    if {number for _, number, _ in events} != set(range(2 * len(windows))):
        end = begin + _YEAR
        events = list(occurrences(_entries(windows), begin, end))
    return end, sorted((at, leases) for at, _, leases in events)


def _entries(windows: Sequence[Window]) -> list[Entry]:
    return [
        entry
        for window in windows
        for entry in (Entry(window.start, window.zone, 1), Entry(window.end, window.zone, 0))
    ]
