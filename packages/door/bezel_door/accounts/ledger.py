"""Counts of keys in one instance of the door, and their limits: pure, the time is passed in.

A limit holds for a clock minute or a day (UTC). A request is admitted while what was used, by this instance and by the
others as far as their counts were read, and what is reserved for requests under way is below the limit. So a limit of
requests is exact within an instance, and one of tokens is passed by no more than the last admitted request uses beyond
its reservation. Between instances see docs/keys.md: each knows the others' counts of up to `2 * 5 s` before.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bezel_door.calls.token_use import Tokens
from bezel_door.key_file import Key
from bezel_door.usage_file import KeyUsage, MinuteUse, UsageFile

_MINUTE: Final = 60
_DAY: Final = 86400


@dataclass(frozen=True, slots=True)
class LimitPassed:
    """A limit that a request would pass.

    Attributes:
        limit: Its name, as in `Key`.
        most: Its value.
        retry_after: Seconds to the end of its minute or day.
    """

    limit: str
    most: int
    retry_after: int


@dataclass(slots=True)
class Charge:
    """One admitted request: what it has reserved and what was counted for it."""

    key_id: str
    reserved: int
    counted: Tokens


class Ledger:
    """Counts of one instance. All times are seconds since 1970, UTC."""

    def __init__(self) -> None:
        self._days: dict[int, dict[str, list[int]]] = {}
        self._minutes: dict[str, list[int]] = {}
        self._reserved: dict[str, int] = {}
        self._others_in_day: dict[tuple[str, int], int] = {}
        self._others_in_minute: dict[tuple[str, str], tuple[int, int]] = {}
        self._changed: set[int] = set()

    def begin(self, key_id: str, key: Key, reserved: int, now: float) -> Charge | LimitPassed:
        """Admit a request and count it, or name the limit that refuses it, which is counted too."""
        passed = self._limit_passed(key_id, key, now)
        counts = self._counts(key_id, now)
        if passed is not None:
            counts[_REFUSED] += 1
            return passed
        counts[_REQUESTS] += 1
        self._minute(key_id, now)[1] += 1
        self._reserved[key_id] = self._reserved.get(key_id, 0) + reserved
        return Charge(key_id, reserved, Tokens())

    def refuse(self, key_id: str, now: float) -> None:
        """Count a request that the key does not allow."""
        self._counts(key_id, now)[_REFUSED] += 1

    def update(self, charge: Charge, tokens: Tokens, now: float) -> None:
        """Count what a request under way has used so far; it replaces its reservation."""
        prompt, completion = tokens.prompt - charge.counted.prompt, tokens.completion - charge.counted.completion
        if not prompt and not completion:
            charge.counted = tokens
            return
        counts, minute = self._counts(charge.key_id, now), self._minute(charge.key_id, now)
        counts[_PROMPT] = max(0, counts[_PROMPT] + prompt)
        counts[_COMPLETION] = max(0, counts[_COMPLETION] + completion)
        minute[2] = max(0, minute[2] + prompt + completion)
        self._release(charge, prompt + completion)
        charge.counted = tokens

    def end(self, charge: Charge, tokens: Tokens, now: float, *, has_failed: bool) -> None:
        """Count the end of a request."""
        self.update(charge, tokens, now)
        self._release(charge, charge.reserved)
        counts = self._counts(charge.key_id, now)
        counts[_FAILURES] += has_failed
        counts[_ESTIMATED] += tokens.is_estimate

    def set_others(self, usages: Iterable[tuple[int, UsageFile]]) -> None:
        """Set the use by other instances: of each its day, as days since 1970."""
        days: dict[tuple[str, int], int] = {}
        minutes: dict[tuple[str, str], tuple[int, int]] = {}
        for day, file in usages:
            for key_id, usage in file.keys.items():
                tokens = usage.prompt_tokens + usage.completion_tokens
                days[key_id, day] = days.get((key_id, day), 0) + tokens
            for key_id, use in file.minutes.items():
                requests, tokens = minutes.get((key_id, use.minute), (0, 0))
                minutes[key_id, use.minute] = (requests + use.requests, tokens + use.tokens)
        self._others_in_day, self._others_in_minute = days, minutes

    @property
    def has_changes(self) -> bool:
        """Whether a count has changed since the last call of `take_changes`."""
        return bool(self._changed)

    def take_changes(self) -> list[tuple[int, UsageFile]]:
        """The days that changed since the last call, as they are now; a day before the last two is dropped."""
        days = sorted(self._changed)
        files = [(day, self._file(day)) for day in days]
        self._changed.clear()
        for day in [day for day in self._days if days and day < days[-1] - 1]:
            del self._days[day]
        return files

    def keep_changes(self, days: Iterable[int]) -> None:
        """Note that these days could not be written."""
        self._changed.update(day for day in days if day in self._days)

    def _limit_passed(self, key_id: str, key: Key, now: float) -> LimitPassed | None:
        minute_ends, day_ends = _seconds_left(now, _MINUTE), _seconds_left(now, _DAY)
        requests, minute_tokens = self._used_in_minute(key_id, now)
        reserved = self._reserved.get(key_id, 0)
        limits = (
            ("tokens_per_day", key.tokens_per_day, day_ends, self._used_in_day(key_id, now) + reserved),
            ("requests_per_minute", key.requests_per_minute, minute_ends, requests),
            ("tokens_per_minute", key.tokens_per_minute, minute_ends, minute_tokens + reserved),
        )
        for name, most, ends, used in limits:
            if most is not None and used >= most:
                return LimitPassed(name, most, ends)
        return None

    def _used_in_minute(self, key_id: str, now: float) -> tuple[int, int]:
        _, requests, tokens = self._minute(key_id, now)
        others = self._others_in_minute.get((key_id, _minute_text(int(now // _MINUTE))), (0, 0))
        return requests + others[0], tokens + others[1]

    def _used_in_day(self, key_id: str, now: float) -> int:
        counts = self._counts(key_id, now)
        return counts[_PROMPT] + counts[_COMPLETION] + self._others_in_day.get((key_id, int(now // _DAY)), 0)

    def _release(self, charge: Charge, tokens: int) -> None:
        freed = min(charge.reserved, max(0, tokens))
        charge.reserved -= freed
        rest = self._reserved.get(charge.key_id, 0) - freed
        if rest > 0:
            self._reserved[charge.key_id] = rest
        else:
            self._reserved.pop(charge.key_id, None)

    def _counts(self, key_id: str, now: float) -> list[int]:
        day = int(now // _DAY)
        self._changed.add(day)
        keys = self._days.setdefault(day, {})
        counts = keys.get(key_id)
        if counts is None:
            counts = keys[key_id] = [0] * 6
        return counts

    def _minute(self, key_id: str, now: float) -> list[int]:
        minute = int(now // _MINUTE)
        use = self._minutes.get(key_id)
        if use is None or use[0] != minute:
            use = self._minutes[key_id] = [minute, 0, 0]
        return use

    def _file(self, day: int) -> UsageFile:
        minutes = {
            key_id: MinuteUse(_minute_text(minute), requests, tokens)
            for key_id, (minute, requests, tokens) in self._minutes.items()
            if minute * _MINUTE // _DAY == day
        }
        return UsageFile({key_id: KeyUsage(*counts) for key_id, counts in self._days[day].items()}, minutes)


_REQUESTS, _FAILURES, _REFUSED, _PROMPT, _COMPLETION, _ESTIMATED = range(6)  # the order of KeyUsage


def _seconds_left(now: float, span: int) -> int:
    """Whole seconds to the end of a span, at least one."""
    return span - int(now % span)


def _minute_text(minute: int) -> str:
    return f"{datetime.fromtimestamp(minute * _MINUTE, UTC):%Y-%m-%dT%H:%M}"
