"""The knee: the fewest users with which a server gives nearly all that it can. Pure.

It is one only where the plateau behind it was seen: twice the users or more get hardly more. While throughput still
rises, nobody knows what the server can give, and so not what is nearly all of it.
"""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARE = 0.9
TIMES = 2  # the users of the knee: as far as a plateau reaches at least
_HIGHEST = 3  # their median is the plateau: one lucky measurement does not raise it


def knee(users: Sequence[float], values: Sequence[float]) -> int | None:
    """The first of a context's values that reaches nine tenths of the plateau; None where no plateau was seen.

    The plateau is the median of the three highest values, or what the most users have, if that is more. It was seen
    where these are at least twice as many as those of the knee.

    Args:
        users: Rising.
        values: Throughput of each, at least one.

    Returns:
        Its place.
    """
    plateau = max(median_low(sorted(values)[-_HIGHEST:]), values[-1])
    found = next(place for place, value in enumerate(values) if value >= SHARE * plateau)
    return found if users[-1] >= TIMES * users[found] else None
