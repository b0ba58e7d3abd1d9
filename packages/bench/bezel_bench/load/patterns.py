"""Timing of requests: planned instants of an open loop, presence windows of a closed loop's users. Pure.

The same pattern, stop and seed give the same plan. All times are seconds from the start of the run. An open loop's
latencies count from these instants, whether or not the request could be sent then.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from bezel_bench.load.plan import Burst, Closed, Constant, Load, Pattern, Poisson, Replay, Stage, Staged, Stop

_SECOND: Final = 1_000_000_000
# An instant (ns) after all others.
_NEVER: Final = 1 << 62
Window = tuple[float, float]
"""Begin and end of the time in which a user begins requests; the end may be infinite."""


class User:
    """A user with its position in the load.

    Attributes:
        number: The user's number in the load, from 0.
        conversation: The current conversation.
        turn: Its next turn.
        said: The responses to its earlier turns, where later ones repeat them.
    """

    __slots__ = ("_begin", "_until", "_windows", "conversation", "number", "said", "turn")

    def __init__(self, number: int, windows: Iterable[Window]) -> None:
        self.number, self.conversation, self.turn = number, 0, 0
        self.said: list[str] = []
        # (Whole ends, as these are compared faster.)
        rounded = [(round(begin * _SECOND), math.ceil(min(until * _SECOND, _NEVER))) for begin, until in windows]
        self._windows = iter([*rounded, (_NEVER, _NEVER)])
        self._begin, self._until = next(self._windows)

    def present(self, at: int) -> int | None:
        """Return when the user may begin a request that is ready at `at` (ns since the start); None is never."""
        while at >= self._until:
            self._begin, self._until = next(self._windows)
        if at >= self._begin:
            return at
        return self._begin if self._begin < _NEVER else None


def instants(pattern: Pattern, stop: Stop, seed: int) -> Iterator[float]:
    """Yield the planned instants of an open loop, in order; endless where nothing stops it.

    Args:
        pattern: A pattern that plans instants.
        stop: Limits the number of instants and their time (an instant at the very end is not sent).
        seed: The seed of the random gaps.

    Raises:
        ValueError: A closed loop plans no instants.
    """
    planned = _endless(pattern, seed)
    if stop.seconds is not None:
        end = stop.seconds
        planned = itertools.takewhile(lambda at: at < end, planned)
    return itertools.islice(planned, stop.requests)


def user_windows(load: Load) -> list[list[Window]]:
    """Return for each user of a closed loop when it begins requests; requests open at a window's end are finished.

    Users of one level start one after the other over `ramp_seconds`, the first at once; those of a stage at its
    begin. `Stop.seconds` closes open windows.

    Raises:
        ValueError: An open loop has no users.
    """
    match load.pattern:
        case Closed(users):
            windows = [[(user * load.ramp_seconds / users, math.inf)] for user in range(users)]
        case Staged("users", stages):
            windows = [_presence(user, stages) for user in range(int(max(stage.level for stage in stages)))]
        case _:
            raise ValueError(f"{type(load.pattern).__name__} has no users")
    end = math.inf if load.stop.seconds is None else load.stop.seconds
    return [[(begin, min(until, end)) for begin, until in shown if begin < end] for shown in windows]


def _endless(pattern: Pattern, seed: int) -> Iterator[float]:
    dice = random.Random(seed)  # noqa: S311 - gaps, no secrets
    match pattern:
        case Constant(rate):
            # Multiplied, not summed: no rounding error accumulates up to the millionth. (`map`, as the compiler makes a
            # list of a generator expression.)
            return map(lambda number: number / rate, itertools.count())  # noqa: C417
        case Poisson(rate):
            return _instants_of_gaps(lambda: dice.expovariate(rate))
        case Burst(rate, burstiness):
            return _instants_of_gaps(lambda: dice.gammavariate(burstiness, 1 / (rate * burstiness)))
        case Staged("rate", stages):
            return _instants_of_stages(stages)
        case Replay(trace):
            return iter(trace)
    raise ValueError(f"{type(pattern).__name__} plans no instants")


def _instants_of_gaps(gap: Callable[[], float]) -> Iterator[float]:
    # No gap is None: the gaps never end.
    return itertools.accumulate(iter(gap, None))


def _instants_of_stages(stages: Iterable[Stage]) -> Iterator[float]:
    """Yield instants where the area below the stages reaches a whole number: none is lost between two stages."""
    begin = area = 0.0
    for stage in stages:
        whole = math.ceil(area)
        area_after = area + stage.level * stage.seconds
        while whole < area_after:
            yield begin + (whole - area) / stage.level
            whole += 1
        begin, area = begin + stage.seconds, area_after


def _presence(user: int, stages: Iterable[Stage]) -> list[Window]:
    windows: list[Window] = []
    begin = 0.0
    for stage in stages:
        end = begin + stage.seconds
        if user < stage.level:
            if windows and windows[-1][1] == begin:
                windows[-1] = (windows[-1][0], end)
            else:
                windows.append((begin, end))
        begin = end
    return windows
