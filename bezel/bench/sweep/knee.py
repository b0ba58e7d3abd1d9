"""Knee of a throughput curve: the fewest users with which a server gives nearly all that it can. Pure.

A knee requires an observed plateau behind it: twice the users or more get hardly more. While throughput still rises,
the server's maximum is unknown, and so is the knee.
"""

from collections.abc import Sequence
from statistics import median_low

SHARE = 0.9
TIMES = 2  # times the users of the knee: the least extent of a plateau
_HIGHEST = 3  # their median is the plateau: one lucky measurement does not raise it


def knee(users: Sequence[float], values: Sequence[float]) -> int | None:
    """Return the index of the first value that reaches nine tenths of the plateau; None where no plateau was seen.

    The plateau is the median of the three highest values, or the value at the most users, if that is higher. It was
    seen where the most users are at least twice those of the knee.

    Args:
        users: Rising.
        values: Throughput of each, at least one.

    Returns:
        The index of the knee.
    """
    plateau = max(median_low(sorted(values)[-_HIGHEST:]), values[-1])
    found = next(place for place, value in enumerate(values) if value >= SHARE * plateau)
    return found if users[-1] >= TIMES * users[found] else None
