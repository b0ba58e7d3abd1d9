"""Wording of loads and ranges of them: one complete phrase for each case. Pure."""

from bezel_base.text.counting import format_count


def edge_position(low: float | None, high: float | None, tried: tuple[float, float], unit: str) -> str:
    """Describe the position of an edge.

    Args:
        low: A load below it; None where even the lowest may be above.
        high: A load above it; None where even the highest may be below.
        tried: The lowest and the highest load that may be measured.
        unit: The unit of the loads, in the plural.
    """
    if low is not None and high is not None:
        return f"between {low:g} and {format_count(high, unit)}"
    if low is not None:
        most = "" if low >= tried[1] else f", perhaps beyond {tried[1]:g}, the highest"
        return f"above {format_count(low, unit)}{most}"
    if high is not None:
        return f"below {format_count(high, unit)}"
    return f"anywhere: below {tried[0]:g}, above {format_count(tried[1], unit)}, or between"
