"""Time of a question about the past: its begin and end, and the windows that it is divided into. Pure.

Cloud Monitoring keeps the platform's own metrics, by which time is billed, for six weeks; a longer question has no
complete answer. Windows begin at whole multiples of their length, so that those of a day end at midnight UTC.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from bezel.leases.clock import format_duration, unix
from bezel.operations.log_reading import bounds
from bezel_base.errors import Problem, WrongValueError

LEAST, MOST = 300, 42 * 86_400
"""Seconds of a question: two scrapes and their way to Cloud Monitoring take more than a minute."""
_MOST_WINDOWS = 56  # that fit beside a name in 80 columns
_ROUNDING = 0.001  # seconds by which an age may change as it becomes a time and a length again
_STEPS = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


class TimeRangeError(WrongValueError):
    """A time of the past cannot be asked for."""


@dataclass(frozen=True)
class TimeRange:
    """Windows of the past.

    Attributes:
        start: Begin of the first one, Unix seconds: a multiple of `step`.
        end: End of the last one, which may be a short one.
        step: Length of a window in seconds.
    """

    start: float
    end: float
    step: int

    @property
    def ends(self) -> tuple[float, ...]:
        """End of each window, the oldest first."""
        whole = int((self.end - self.start) // self.step)
        ends = [self.start + self.step * (number + 1) for number in range(whole)]
        return tuple(ends if ends and ends[-1] == self.end else [*ends, self.end])

    @property
    def begins(self) -> tuple[float, ...]:
        """Begin of each window."""
        return (self.start, *self.ends[:-1])

    @property
    def seconds(self) -> float:
        """Length of all windows together."""
        return self.end - self.start

    def line(self) -> str:
        """Begin and end for people."""
        first, last = (datetime.fromtimestamp(moment, UTC) for moment in (self.start, self.end))
        return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def time_range(since: str, now: float) -> TimeRange:
    """The windows from an age or a time until now.

    Args:
        since: Age, e.g. `24h`, or a time in RFC 3339.
        now: Unix seconds.

    Raises:
        TimeRangeError: It is neither, it is in the future, or it is too short or too long ago.
    """
    repair = "give an age such as 1h, 24h or 7d, or a time such as 2026-11-01T00:00:00Z."
    try:
        begin = unix(bounds.since(since, now))
    except bounds.LogsError:
        begin = None
    if begin is None:
        raise TimeRangeError(Problem("--since", since, "expected an age or a time.", repair))
    length = now - begin
    if length < 0:
        consequence = "it is in the future, and nothing is known of that."
    elif length < LEAST - _ROUNDING:
        consequence = f"it is less than {format_duration(LEAST)} ago, and figures arrive minutes late."
    elif length > MOST + _ROUNDING:
        consequence = "it is more than six weeks ago, and Cloud Monitoring keeps the time of instances for six weeks."
    else:
        end = float(int(now))
        step = next(step for step in _STEPS if length / step <= _MOST_WINDOWS)
        return TimeRange(begin // step * step, end, step)
    raise TimeRangeError(Problem("--since", since, consequence, repair))
