"""Clock of waits: platform seconds, which pass faster on an embedded cloud.

The end of a lease's run duration and its cost use the real clock everywhere.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SPEED = "BEZEL_SPEED"
"""Variable: platform seconds in one second, 1 if unset. `bezel local` sets it to the embedded cloud's speed."""

_REAL_SECONDS = 60.0


@dataclass(frozen=True)
class PlatformClock:
    """A clock and a way to wait.

    Attributes:
        now: Unix seconds.
        pause: Waits a number of real seconds.
        speed: Platform seconds in one second.
        slack: Platform seconds added to each deadline: machines of an embedded cloud are processes of this machine,
            which take real time to start.
    """

    now: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    speed: float = 1.0
    slack: float = 0.0

    def since(self, moment: float) -> float:
        """Platform seconds since a moment in unix seconds; at least 0."""
        return max(0.0, (self.now() - moment) * self.speed)

    def sleep(self, seconds: float) -> None:
        """Wait a number of platform seconds."""
        self.pause(seconds / self.speed)

    def reading(self) -> float:
        """Platform seconds since an arbitrary fixed moment."""
        return self.now() * self.speed


def clock_of(environ: Mapping[str, str] | None = None) -> PlatformClock:
    """The clock of a process."""
    speed = _positive((os.environ if environ is None else environ).get(SPEED, ""))
    return PlatformClock(speed=speed, slack=_REAL_SECONDS * speed if speed > 1 else 0.0)


def _positive(text: str) -> float:
    try:
        value = float(text or 1)
    except ValueError:
        return 1.0
    return value if value > 0 else 1.0


def unix(timestamp: object) -> float | None:
    """Unix seconds of an RFC 3339 time, None for no time."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None


def rfc3339(moment: float | None) -> str | None:
    """A moment in unix seconds as RFC 3339 text, to the second."""
    return None if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_duration(seconds: float) -> str:
    """A duration as text: `45 s`, `12 min`, `2 h 5 min`."""
    if seconds < 120:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
