"""Minimum of instances over a week and at an instant, as a stack's schedule sets it. Pure.

An entry sets the minimum at each occurrence of its cron schedule, and it holds until the next occurrence of any entry.
The minimum of the revision, `scaling.min_instances`, is below it at all times.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from bezel_base.cron import parse_cron, time_zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

ANNOTATION = "bezel-scheduled-minimum"
"""Annotation of a service: the highest minimum that its schedule sets. Policies and prices see declarations only."""

# Four weeks from a Monday without a change of summer time anywhere: what occurs seldom or at the end of a month is in
# it by chance.
_START = datetime(2027, 1, 4, tzinfo=UTC)
_SPAN = timedelta(days=28)
FOUR_WEEKS = (_START, _START + _SPAN)
"""Begin and end of the four weeks over which a schedule's mean is taken."""
# How far the last occurrence is looked for: a day, a week, a month, a year.
_MINUTE, _DAYS_OF_A_YEAR, _MINUTES_OF_A_DAY = timedelta(minutes=1), 366, 24 * 60
_BACK = (timedelta(days=1), timedelta(days=8), timedelta(days=32), timedelta(days=366))


class Entry(NamedTuple):
    """A minimum that is set at certain times.

    Attributes:
        cron: Schedule of five fields, as of `bezel_base.cron`.
        zone: Time zone of the tz database.
        minimum: Instances.
    """

    cron: str
    zone: str
    minimum: int


def minimum_at(entries: Sequence[Entry], instant: datetime) -> int:
    """The minimum that the last occurrence of any entry has set; 0 where none occurred within a year.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    for back in _BACK:
        last = max(((at, number) for at, number, _ in occurrences(entries, instant - back, instant)), default=None)
        if last is not None:
            return entries[last[1]].minimum
    return 0


def average_minimum(entries: Sequence[Entry], least: int) -> Decimal:
    """Mean of the instances that run without traffic, over four weeks.

    Args:
        entries: The schedule.
        least: Minimum of the revision.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    present, since, summed = minimum_at(entries, _START), _START, Decimal(0)
    changes = sorted(occurrences(entries, _START, _START + _SPAN))
    for at, _, minimum in [*changes, (_START + _SPAN, 0, 0)]:
        summed += max(present, least) * Decimal((at - since).total_seconds())
        present, since = minimum, at
    return summed / Decimal(_SPAN.total_seconds())


def together(first: Entry, second: Entry) -> datetime | None:
    """A time at which both entries occur, within four years; of two time zones, within one.

    Raises:
        CronError: A schedule or a time zone is none.
    """
    one, other = parse_cron(first.cron), parse_cron(second.cron)
    zone, other_zone = time_zone(first.zone), time_zone(second.zone)
    days = _DAYS_OF_A_YEAR if zone != other_zone else 4 * _DAYS_OF_A_YEAR
    dates = [_START + timedelta(days=day) for day in range(days)]
    shifts = {_minutes_from(zone, other_zone, date) for date in dates} if zone != other_zone else {0}
    others = {60 * hour + minute for hour in other.hours for minute in other.minutes}
    times = [
        (hour, minute)
        for hour in one.hours
        for minute in one.minutes
        if any((60 * hour + minute + shift) % _MINUTES_OF_A_DAY in others for shift in shifts)
    ]
    for date in dates if times else ():
        if not one.on(date):
            continue
        for hour, minute in sorted(times):
            at = date.replace(hour=hour, minute=minute, tzinfo=zone).astimezone(UTC)
            if all(at in cron.between(at - _MINUTE, at, of) for cron, of in ((one, zone), (other, other_zone))):
                return at
    return None


def _minutes_from(zone: ZoneInfo, other: ZoneInfo, date: datetime) -> int:
    """Minutes that the wall clock of the other zone is ahead on a date."""
    offsets = [date.astimezone(each).utcoffset() or timedelta() for each in (zone, other)]
    return round((offsets[1] - offsets[0]) / _MINUTE)


def occurrences(entries: Sequence[Entry], start: datetime, end: datetime) -> Iterator[tuple[datetime, int, int]]:
    """Occurrences after `start` and not after `end`: time, number of the entry, minimum."""
    for number, entry in enumerate(entries):
        for at in parse_cron(entry.cron).between(start, end, time_zone(entry.zone)):
            yield at, number, entry.minimum
