"""Cron schedules in a time zone: parsed once, then asked for their next occurrence. Pure.

The format is that of Cloud Scheduler (unix-cron): five fields of numbers, names of months and weekdays, `*`, ranges,
steps of a range, and lists. Leaves out its English-like format ("every 5 minutes").

A schedule follows the wall clock of its zone. A time that the change to summer time skips does not occur. A time that
occurs twice in autumn counts once, the first time, unless the schedule names no hour.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
# Files of a machine's zone database that are no zones of the tz database: Google knows none of them.
_OF_A_MACHINE = frozenset({"localtime", "posixrules", "Factory"})
_TERM = re.compile(r"(\*|\w+(?:-\w+)?)(?:/(\d{1,2}))?", re.ASCII)
# February 29 on a given weekday is the rarest date: at most 40 years apart, over a century without a leap day.
_HORIZON = timedelta(days=366 * 41)


class CronError(ValueError):
    """A text that is no schedule, or a name that is no time zone."""


@dataclass(frozen=True)
class _Range:
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()


_RANGES = (
    _Range("minute", 0, 59),
    _Range("hour", 0, 23),
    _Range("day of the month", 1, 31),
    _Range("month", 1, 12, ("", *_MONTHS)),
    _Range("day of the week", 0, 7, tuple(_DAYS)),
)


@dataclass(frozen=True)
class Cron:
    """A schedule of five fields.

    Attributes:
        minutes: Minutes of an hour.
        hours: Hours of a day.
        days: Days of a month.
        months: Months, January is 1.
        weekdays: Days of a week, Sunday is 0.
        either_day: Whether both kinds of days are restricted: then a date needs to match one of them.
        any_hour: Whether the schedule names no hour.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    any_hour: bool

    def on(self, date: datetime) -> bool:
        """Whether a date of the wall clock matches."""
        if date.month not in self.months:
            return False
        day, weekday = date.day in self.days, date.isoweekday() % 7 in self.weekdays
        return (day or weekday) if self.either_day else (day and weekday)

    def after(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the first occurrence after an instant, in UTC; None if there is none (February 30)."""
        now = instant.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = now + _HORIZON
        while now < end:
            local = now.astimezone(zone)
            if not self.on(local):
                midnight = datetime.combine(local.date() + timedelta(days=1), time(), zone).astimezone(UTC)
                now = max(midnight, now + timedelta(minutes=1))
            elif self._is_time(local):
                return now
            else:
                now = self._next_try(now, local)
        return None

    @cached_property
    def _times(self) -> list[int]:
        """Times of a day, in minutes since midnight."""
        return sorted(hour * 60 + minute for hour in self.hours for minute in self.minutes)

    def _is_time(self, local: datetime) -> bool:
        is_second = local.fold and not self.any_hour
        return local.hour in self.hours and local.minute in self.minutes and not is_second

    def _next_try(self, now: datetime, local: datetime) -> datetime:
        """The next time of the day or midnight; not so far where the clock is changed on the way."""
        minute_of_day = local.hour * 60 + local.minute
        place = bisect_right(self._times, minute_of_day)
        next_time = self._times[place] if place < len(self._times) else 24 * 60
        far = now + timedelta(minutes=next_time - minute_of_day)
        if far.astimezone(local.tzinfo).utcoffset() == local.utcoffset():
            return far
        return now + timedelta(minutes=1 if local.hour in self.hours else 60 - local.minute)

    def between(self, start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield the occurrences after `start` and not after `end`, in UTC."""
        occurrence = self.after(start, zone)
        while occurrence is not None and occurrence <= end:
            yield occurrence
            occurrence = self.after(occurrence, zone)


@lru_cache(maxsize=256)
def parse_cron(text: str) -> Cron:
    """Return a schedule.

    Raises:
        CronError: The text is none; the error says which field is wrong.
    """
    parts = text.split()
    if len(parts) != len(_RANGES):
        raise CronError(f"{text!r} has {len(parts)} fields; a schedule has 5, such as '0 8 * * 1-5'")
    minutes, hours, days, months, weekdays = (_values(part, of) for part, of in zip(parts, _RANGES, strict=True))
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    return Cron(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either, parts[1].startswith("*"))


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone of the tz database; "utc" is UTC.

    Raises:
        CronError: There is none of this name.
    """
    try:
        if name not in _OF_A_MACHINE and not name.startswith(("posix/", "right/")):
            return ZoneInfo("Etc/UTC" if name.lower() == "utc" else name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder, a path outside of the database
        pass
    raise CronError(f"expected a time zone of the tz database, such as 'Europe/Berlin', got {name!r}")


def _values(text: str, of: _Range) -> frozenset[int]:
    values: set[int] = set()
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise CronError(f"expected a {of.name}, got {term!r}")
        first, _, last = match[1].partition("-")
        if first == "*":
            start, end = of.first, of.last
        else:
            start = _number(first, of)
            end = _number(last, of) if last else start
        if start > end:
            raise CronError(f"expected a range of a {of.name}, got {match[1]!r}: it ends before it begins")
        step = int(match[2]) if match[2] else 1
        if match[2] and (first != "*" and not last):
            raise CronError(f"{term!r}: a step needs a range, such as '0-30/5' or '*/5'")
        if step < 1:
            raise CronError(f"{term!r}: a step is 1 or more")
        values.update(range(start, end + 1, step))
    return frozenset(values)


def _number(text: str, of: _Range) -> int:
    if of.names and text.lower() in of.names:
        return of.names.index(text.lower())
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and of.first <= int(text) <= of.last):
        raise CronError(f"expected a {of.name} ({of.first} to {of.last}), got {text!r}")
    return int(text)
