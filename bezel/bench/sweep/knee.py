"""The knee: the fewest users with which a server gives nearly all that it can. Pure."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARE = 0.9
_HIGHEST = 3  # their median is the plateau: one lucky measurement does not raise it


def knee(values: Sequence[float]) -> int:
    """The first of a context's values, by rising users, that reaches nine tenths of the plateau.

    The plateau is the median of the three highest values.

    Args:
        values: Throughput, at least one.

    Returns:
        Its index.
    """
    plateau = median_low(sorted(values)[-_HIGHEST:])
    return next(index for index, value in enumerate(values) if value >= SHARE * plateau)
