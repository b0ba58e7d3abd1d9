"""Functions of a window of samples: rates with resets and extrapolation, changes, and values over time. Pure.

Source: prometheus/prometheus, promql/functions.go (v0.316.0), with start timestamps: a counter whose sample says since
when it counts began at zero then, which Google's service knows too.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from bezel_localcloud.services.monitoring.promql.quantiles import quantile
from bezel_localcloud.services.monitoring.promql.series import HALF_MOMENT
from bezel_localcloud.services.monitoring.promql.values import Window, mean, total

_THRESHOLD = 1.1  # of the average distance: a sample that is nearer to an edge stands for all up to it


def rate(window: Window) -> float | None:
    """Increase of a counter in a second."""
    increased = increase(window)
    return None if increased is None else increased / _between(window.after, window.until)


def increase(window: Window) -> float | None:
    """Increase of a counter in the whole range."""
    return _extrapolation(window, is_counter=True)


def delta(window: Window) -> float | None:
    """Difference of a gauge in the whole range."""
    return _extrapolation(window, is_counter=False)


def irate(window: Window) -> float | None:
    """Increase of a counter in a second, by the last two samples."""
    if len(window.times) < 2:
        return None
    (before, last), (then, now) = window.values[-2:], window.times[-2:]
    difference = last if _is_reset(window, len(window.times) - 1) else last - before
    return difference / _between(then, now)


def idelta(window: Window) -> float | None:
    """Difference of the last two samples."""
    return window.values[-1] - window.values[-2] if len(window.values) > 1 else None


def resets(window: Window) -> float:
    """How often a counter began again."""
    return float(sum(_is_reset(window, index) for index in range(1, len(window.values))))


def changes(window: Window) -> float:
    """How often the value changed."""
    both = pairwise(window.values)
    return float(sum(1 for one, two in both if one != two and not (math.isnan(one) and math.isnan(two))))


def _between(time: float, later: float) -> float:
    """Seconds between two times, which have milliseconds."""
    return round((later - time) * 1000) / 1000


def _is_reset(window: Window, index: int) -> bool:
    """Whether a counter began again between a sample and the one before."""
    if window.values[index] < window.values[index - 1]:
        return True
    if window.starts is None:
        return False
    before, start, time = window.starts[index - 1], window.starts[index], window.times[index - 1]
    if start == before or start >= window.times[index] or start < time:
        return False
    return start > time or before < time


def _extrapolation(window: Window, *, is_counter: bool) -> float | None:
    """The difference in the whole range, by its samples."""
    times, values = window.times, window.values
    result, gaps = values[-1] - values[0], len(times) - 1
    if is_counter:
        result += sum(values[index - 1] for index in range(1, len(values)) if _is_reset(window, index))
    to_start, to_end = _between(window.after, times[0]), _between(times[-1], window.until)
    covered = _between(times[0], times[-1])
    average = covered / gaps if gaps else 0.0
    start = window.starts[0] if is_counter and window.starts is not None else None
    if start is not None and window.after + HALF_MOMENT < start < times[0]:
        to_start, covered = 0.0, _between(start, times[-1])
        result += values[0]
    elif not gaps:
        return None
    else:
        if to_start >= average * _THRESHOLD:
            to_start = average / 2
        if is_counter and result > 0 and values[0] >= 0:  # a counter is not below zero
            to_start = min(to_start, covered * (values[0] / result))
    if to_end >= average * _THRESHOLD:
        to_end = average / 2
    return result * ((covered + to_start + to_end) / covered) if covered else result


def variance(values: Sequence[float]) -> float:
    """Mean square of the distances from the mean."""
    middle = mean(values)
    return mean([(value - middle) ** 2 for value in values])


def _extreme(values: Sequence[float], pick: Callable[[list[float]], float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return pick(numbers) if numbers else math.nan


def least(values: Sequence[float]) -> float:
    """The least value that is a number; NaN for none."""
    return _extreme(values, min)


def greatest(values: Sequence[float]) -> float:
    """The greatest value that is a number; NaN for none."""
    return _extreme(values, max)


def quantile_over_time(q: float, window: Window) -> float:
    """A quantile of the values."""
    return quantile(q, window.values)


OF_WINDOW: dict[str, Callable[[Window], float | None]] = {
    "rate": rate,
    "increase": increase,
    "delta": delta,
    "irate": irate,
    "idelta": idelta,
    "resets": resets,
    "changes": changes,
    "avg_over_time": lambda window: mean(window.values),
    "min_over_time": lambda window: least(window.values),
    "max_over_time": lambda window: greatest(window.values),
    "sum_over_time": lambda window: total(window.values),
    "count_over_time": lambda window: float(len(window.values)),
    "last_over_time": lambda window: window.values[-1],
    "present_over_time": lambda _: 1.0,
    "stddev_over_time": lambda window: math.sqrt(variance(window.values)),
    "stdvar_over_time": lambda window: variance(window.values),
}
"""Functions of one window: their value, None for none."""
