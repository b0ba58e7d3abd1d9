"""Timestamps and durations of the Common Expression Language, exact to the nanosecond. Pure.

Source: github.com/google/cel-spec, doc/langdef.md, "Timezones" and "Timestamps"; `date` as in IAM's reference of
attributes for conditions.
"""

import functools
import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from bezel_localcloud.access.cel.values import EvaluationError

SECOND = 1_000_000_000
"""Nanoseconds of a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1  # the years 1 to 9999
_LONGEST_SPAN = 315_576_000_001 * SECOND - 1  # 10,000 years
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})",
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SPAN = re.compile(r"[+-]?(?:[0-9]{1,20}(?:\.[0-9]{1,20})?(?:h|ms|m|s|us|ns))+")
_PART = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))?(h|ms|m|s|us|ns)")
_UNITS = {"h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 1_000_000, "us": 1000, "ns": 1}
_LONGEST_TEXT = 200  # characters of a duration
_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")
_LONGEST_ZONE = 64


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """A moment, in nanoseconds since 1970."""

    nanoseconds: int


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """A span of time, in nanoseconds."""

    nanoseconds: int


def timestamp_of(text: str) -> Timestamp:
    """A moment in the form of RFC 3339, such as 2027-01-01T00:00:00Z.

    Raises:
        EvaluationError: It is no such moment, or not of the years 1 to 9999.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise EvaluationError(f"expected a moment such as 2027-01-01T00:00:00Z, got '{text[:40]}'")
    day, clock, fraction, zone = match.groups()
    try:
        seconds = int((datetime.fromisoformat(f"{day}T{clock}+00:00") - _EPOCH).total_seconds())
        shift = 0 if zone == "Z" else int(zone_of(zone).utcoffset(None).total_seconds())  # type: ignore[union-attr]
    except ValueError:
        raise EvaluationError(f"expected a moment of the calendar, got '{text[:40]}'") from None
    return moment((seconds - shift) * SECOND + int((fraction or "").ljust(9, "0")))


def day_of(text: str) -> Timestamp:
    """Midnight in UTC of a day, such as 2027-01-01.

    Raises:
        EvaluationError: It is no such day.
    """
    if not _DAY.fullmatch(text):
        raise EvaluationError(f"expected a day such as 2027-01-01, got '{text[:40]}'")
    return timestamp_of(f"{text}T00:00:00Z")


def duration_of(text: str) -> Duration:
    """A span of time, such as 90s or 1h30m.

    Raises:
        EvaluationError: It is no such span, or longer than 10,000 years.
    """
    if text in {"0", "+0", "-0"}:
        return Duration(0)
    if len(text) > _LONGEST_TEXT or not _SPAN.fullmatch(text):
        raise EvaluationError(f"expected a duration such as 90s, got '{text[:40]}'")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
    return span(-total if text.startswith("-") else total)


def moment(nanoseconds: int) -> Timestamp:
    """The moment of these nanoseconds since 1970.

    Raises:
        EvaluationError: It is not of the years 1 to 9999.
    """
    if not _FIRST <= nanoseconds <= _LAST:
        raise EvaluationError("a timestamp out of the years 1 to 9999")
    return Timestamp(nanoseconds)


def span(nanoseconds: int) -> Duration:
    """The span of these nanoseconds.

    Raises:
        EvaluationError: It is longer than 10,000 years.
    """
    if abs(nanoseconds) > _LONGEST_SPAN:
        raise EvaluationError("a duration of more than 10,000 years")
    return Duration(nanoseconds)


@functools.lru_cache(maxsize=256)
def zone_of(text: str) -> tzinfo:
    """A time zone by its name or its offset, such as Europe/Berlin or +01:00.

    Raises:
        EvaluationError: There is no such zone.
    """
    if offset := _OFFSET.fullmatch(text):
        minutes = int(offset[2]) * 60 + int(offset[3])
        if minutes < 24 * 60 and int(offset[3]) < 60:
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        if len(text) <= _LONGEST_ZONE:
            return zoneinfo.ZoneInfo(text)
    except (ValueError, KeyError, OSError):
        pass
    raise EvaluationError(f"expected a time zone such as Europe/Berlin or +01:00, got '{text[:40]}'")


def local_time(when: Timestamp, zone: str) -> datetime:
    """A moment on the clocks of a time zone, to the second.

    Raises:
        EvaluationError: There is no such zone, or the year is not of 1 to 9999 there.
    """
    try:
        return (_EPOCH + timedelta(seconds=when.nanoseconds // SECOND)).astimezone(zone_of(zone))
    except OverflowError:
        raise EvaluationError("a timestamp out of the years 1 to 9999") from None


PARTS: dict[str, Callable[[datetime], int]] = {
    "getDate": lambda local: local.day,
    "getDayOfMonth": lambda local: local.day - 1,
    "getDayOfWeek": lambda local: local.isoweekday() % 7,
    "getDayOfYear": lambda local: local.timetuple().tm_yday - 1,
    "getFullYear": lambda local: local.year,
    "getMonth": lambda local: local.month - 1,
    "getHours": lambda local: local.hour,
    "getMinutes": lambda local: local.minute,
    "getSeconds": lambda local: local.second,
}
"""Parts of a moment by the methods that return them; getMilliseconds needs no clock."""
SPANS = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND}
"""Units that methods express a whole duration in."""


def text_of_timestamp(when: Timestamp) -> str:
    """A moment in the form of RFC 3339, in UTC."""
    seconds, rest = divmod(when.nanoseconds, SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    return f"{text}{_fraction(rest)}Z"


def text_of_duration(length: Duration) -> str:
    """A span in seconds."""
    seconds, rest = divmod(abs(length.nanoseconds), SECOND)
    return f"{'-' if length.nanoseconds < 0 else ''}{seconds}{_fraction(rest)}s"


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
