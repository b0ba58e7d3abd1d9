"""Whether an open loop sent more than the server completes, so that its queue grew. Pure.

In a queue that grows each request waits longer than those planned before it: the time from plan to end rises by
`offered / completed - 1` seconds a second. That rise is looked for, as it is seen where hardly anything was completed
before the last request was sent, and as it stays at 0 where answers only take long.

Neighbours in a queue wait together, so that waits wander without any trend, the more the nearer the load is to what the
server can do. The rise is therefore tested by the steps from section to section, which wander around 0 then, and not by
a line through the sections. What was planned before the first answer met a server that was not full, and is left out
where enough others are there.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from bezel.bench.load.plan import Staged, is_closed
from bezel.bench.metrics import statistics

if TYPE_CHECKING:
    from bezel.bench.load.plan import Load
    from bezel.bench.result.columns import Columns, Floats

# Of the offered rate: below it the queue counts as growing, if that is no accident.
COMPLETED_SHARE = 0.98
CERTAINTY = 0.975
_LEAST = 2 * statistics.SECTIONS


def completed_share(load: Load, columns: Columns, began: int) -> float | None:
    """Requests completed, by requests offered in the same time, where fewer were completed for certain; else None.

    Of stages that of the one in which the least came back.

    Args:
        load: What was sent.
        columns: All of its requests.
        began: When the clock started, in nanoseconds.
    """
    if is_closed(load.pattern):
        return None
    good = columns.good()
    planned, ended = good["planned"].astype(np.float64), good["done"].astype(np.float64)
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
    if later.sum() >= _LEAST:
        planned, ended = planned[later], ended[later]
    if len(planned) < _LEAST:
        return None
    order = np.argsort(planned, kind="stable")
    means = [
        (planned[part].mean(), (ended - planned)[part].mean()) for part in np.array_split(order, statistics.SECTIONS)
    ]
    (first, before), (last, after) = means[0], means[-1]
    steps = np.diff([wait for _, wait in means])
    degrees = len(steps) - 1
    error = float(steps.std(ddof=1)) / len(steps) ** 0.5
    # Burst or trace: what was planned at one instant has no rate.
    if last <= first or float(steps.mean()) <= statistics.t_quantile(CERTAINTY, degrees) * error:
        return None
    share = float(1 / (1 + (after - before) / (last - first)))
    return share if share < COMPLETED_SHARE else None
