"""Test of an open loop's saturation: a queue that grows because more was sent than completed. Pure.

In a growing queue each request waits longer than those planned before it: the time from plan to end rises by
`offered / completed - 1` seconds per second. The test looks for that rise, as it also appears where hardly anything was
completed before the last request was sent, and stays at 0 where responses merely take long.

Neighbours in a queue wait together, so waits wander without any trend, the more the nearer the load is to the server's
capacity. The rise is therefore tested by the steps from section to section, which then wander around 0, and not by a
line through the sections. Requests planned before the first response met a server that was not full, and are left out
where enough others remain.
"""

import itertools

import numpy as np

from bezel_bench.load.plan import Load, Staged, is_closed
from bezel_bench.metrics import statistics
from bezel_bench.result.columns import Columns, Floats

# Share of the offered rate: below it the queue counts as growing, if the difference is significant.
COMPLETED_SHARE = 0.98
CERTAINTY = 0.975
_MIN_REQUESTS = 2 * statistics.SECTIONS


def completed_share(load: Load, columns: Columns, began: int) -> float | None:
    """Return requests completed by requests offered in the same time, where certainly fewer were completed; else None.

    Of a staged load the smallest share of a stage.

    Args:
        load: The load.
        columns: All of its requests.
        began: The start of the clock, in nanoseconds.
    """
    if is_closed(load.pattern):
        return None
    good = columns.failure == 0
    planned, ended = columns["planned"][good].astype(np.float64), columns["done"][good].astype(np.float64)
    stages = [stage.seconds for stage in load.pattern.stages] if isinstance(load.pattern, Staged) else [np.inf]
    edges = [0.0, *itertools.accumulate(stages)]
    shares = []
    for begin, end in itertools.pairwise(edges):
        inside = (planned >= began + begin * 1e9) & (planned < began + end * 1e9)
        shares.append(_share(planned[inside], ended[inside]))
    return min((share for share in shares if share is not None), default=None)


def _share(planned: Floats, ended: Floats) -> float | None:
    if len(planned) == 0:
        return None
    later = planned > ended.min()
    if later.sum() >= _MIN_REQUESTS:
        planned, ended = planned[later], ended[later]
    if len(planned) < _MIN_REQUESTS:
        return None
    order = np.argsort(planned, kind="stable")
    means = [
        (planned[part].mean(), (ended - planned)[part].mean()) for part in np.array_split(order, statistics.SECTIONS)
    ]
    (first, before), (last, after) = means[0], means[-1]
    steps = np.diff([wait for _, wait in means])
    degrees = len(steps) - 1
    error = float(steps.std(ddof=1)) / len(steps) ** 0.5
    # Burst or trace: requests planned at one instant have no rate.
    if last <= first or float(steps.mean()) <= statistics.t_quantile(CERTAINTY, degrees) * error:
        return None
    share = float(1 / (1 + (after - before) / (last - first)))
    return share if share < COMPLETED_SHARE else None
