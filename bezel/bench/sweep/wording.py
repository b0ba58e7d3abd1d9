"""How loads and ranges of them are said: one form for each case, and none put together of halves. Pure."""

from __future__ import annotations


def counted(count: float, unit: str) -> str:
    """A number with its unit, which is given for many: "1 user", "8 users", "0.5 requests/s"."""
    return f"{count:g} {unit.removesuffix('s') if count == 1 and unit.isalpha() else unit}"


def edge(low: float | None, high: float | None, tried: tuple[float, float], unit: str) -> str:
    """Where an edge lies.

    Args:
        low: A load that lies below it; None where even the lowest may lie above.
        high: A load that lies above it; None where even the highest may lie below.
        tried: The lowest load and the highest that may be asked.
        unit: Of the loads, for many.
    """
    if low is not None and high is not None:
        return f"between {low:g} and {counted(high, unit)}"
    if low is not None:
        return f"above {counted(low, unit)}, perhaps beyond {tried[1]:g}, the highest"
    if high is not None:
        return f"below {counted(high, unit)}"
    return f"anywhere: below {tried[0]:g}, above {counted(tried[1], unit)}, or between"
