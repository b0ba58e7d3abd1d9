"""Starts of a server in its log: of which instance of which revision, whether each went well, and how it ended. Pure.

What a log names is past once the same revision has started well after it. A server that ends again and again is not:
its last good start is one of many, until it has served for longer than those before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bezel.diagnosis.start_evidence import shows_asked_end, shows_end, shows_good_start
from bezel.leases.clock import unix
from bezel.operations.log_reading.lines import LogLine

_BEGIN = "non-default args: "
_LEAST_SECONDS = 600.0
"""A server that has served for so long since its last end does not end again and again."""


@dataclass
class Start:
    """One start. Its lines are numbers in the whole log, oldest first.

    Attributes:
        revision: Revision or machine; "" where it is not known.
        begin: Its first line.
        good: The first line that shows that it went well; None without one.
        end: The line that says how it ended; None while it is not known to have ended by itself.
        asked: The line of a signal to end, as from a platform that scales down; None without one.
    """

    revision: str
    begin: int
    good: int | None = None
    end: int | None = None
    asked: int | None = None


@dataclass(frozen=True)
class Loop:
    """A server that ended several times.

    Attributes:
        ends: Number of its ends.
        answered: How many of them came after it had started well.
        first: Time of the first end, RFC 3339; None where the log has no times.
        last: Time of the last end.
    """

    ends: int
    answered: int
    first: str | None
    last: str | None

    def words(self) -> str:
        """Again and again, how often, since when, and whether it had answered."""
        since = f" since {_clock(self.first)}, last at {_clock(self.last)}" if self.first and self.last else ""
        had = "each time" if self.answered == self.ends else f"{self.answered} times" if self.answered else "never"
        answered = "it had never answered before" if not self.answered else f"it had answered before ({had})"
        return f"again and again: {self.ends} times{since}; {answered}"


class Starts:
    """The starts that a log shows.

    Args:
        lines: The log, oldest line first.
        ready: Revision -> time at which the platform found it ready, RFC 3339.
        now: Unix time; None where it is not known: then a loop counts as present.
    """

    def __init__(self, lines: Sequence[LogLine], ready: Mapping[str, str] | None = None, now: float | None = None):
        self._lines, self._ready, self._now = lines, ready or {}, now
        self._of_line: list[Start] = []
        current: dict[tuple[str, str], Start] = {}
        begun: set[int] = set()
        for number, line in enumerate(lines):
            key = (line.resource or "", line.instance or "")
            start = current.get(key)
            # Cloud Run gives each start an instance; on a machine a container starts again under the same name.
            again = not line.instance and _BEGIN in line.text and start is not None and id(start) in begun
            if start is None or again:
                if start is not None and start.end is None and start.asked is None:
                    start.end = number - 1
                start = current[key] = Start(line.resource or "", number)
            if _BEGIN in line.text:
                begun.add(id(start))
            if start.good is None and shows_good_start(line.text):
                start.good = number
            if start.asked is None and shows_asked_end(line.text):
                start.asked = number
            if shows_end(line.text) and start.asked is None:
                start.end = number
            self._of_line.append(start)

    @cached_property
    def all(self) -> tuple[Start, ...]:
        """All of them, in the order of their first lines."""
        return tuple({id(start): start for start in self._of_line}.values())

    @cached_property
    def _last_good(self) -> dict[str, int]:
        """Revision -> first line of its newest start that went well."""
        return {start.revision: start.begin for start in self.all if start.good is not None}

    def is_past(self, number: int) -> bool:
        """Whether what a line names is history: the same revision has started well since then."""
        start = self._of_line[number]
        if start.good is not None and number < start.good:
            return True
        if (ready := unix(self._ready.get(start.revision))) and self._time(number) < ready:
            return True
        return self._last_good.get(start.revision, -1) > number

    def is_of_asked_end(self, number: int) -> bool:
        """Whether a line is of an end that was asked for: vLLM logs the death of its engine at each."""
        asked = self._of_line[number].asked
        return asked is not None and number > asked

    def loop_of(self, revision: str) -> Loop | None:
        """How often a revision's server has ended; None for less than twice, and where it has served well since."""
        starts = [start for start in self.all if start.revision == revision]
        ended = [start for start in starts if start.end is not None]
        if len(ended) < 2:
            return None
        ends = sorted(start.end for start in ended if start.end is not None)
        well = [start for start in starts if start.good is not None and start.begin > ends[-1]]
        if well and self._now is not None:
            lives = [self._time(start.end or 0) - self._time(start.begin) for start in ended]
            served = self._now - self._time(well[0].good or 0)
            if served > max(_LEAST_SECONDS, 2 * max(lives)):
                return None
        answered = sum(start.good is not None for start in ended)
        return Loop(len(ends), answered, self._lines[ends[0]].time, self._lines[ends[-1]].time)

    def loop_lines(self, revision: str) -> list[int]:
        """The lines of those starts of a revision that ended."""
        return [
            number
            for number, start in enumerate(self._of_line)
            if start.revision == revision and start.end is not None and number <= start.end
        ]

    def _time(self, number: int) -> float:
        return unix(self._lines[number].time) or 0.0


def _clock(time: str) -> str:
    """The time of day of an RFC 3339 time."""
    return time.partition("T")[2][:8]
