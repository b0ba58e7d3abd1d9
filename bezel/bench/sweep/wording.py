"""Wording of loads and ranges of them: one complete phrase for each case. Pure."""


def counted(count: float, unit: str) -> str:
    """Format a number with its unit, which is given in the plural: "1 user", "2 entries", "0.5 requests/s"."""
    number = f"{count:.0f}" if count == int(count) else f"{count:g}"
    if count != 1 or "/" in unit:
        return f"{number} {unit}"
    return f"{number} {unit[:-3]}y" if unit.endswith("ies") else f"{number} {unit.removesuffix('s')}"


def edge_position(low: float | None, high: float | None, tried: tuple[float, float], unit: str) -> str:
    """Describe the position of an edge.

    Args:
        low: A load below it; None where even the lowest may be above.
        high: A load above it; None where even the highest may be below.
        tried: The lowest and the highest load that may be measured.
        unit: The unit of the loads, in the plural.
    """
    if low is not None and high is not None:
        return f"between {low:g} and {counted(high, unit)}"
    if low is not None:
        return f"above {counted(low, unit)}, perhaps beyond {tried[1]:g}, the highest"
    if high is not None:
        return f"below {counted(high, unit)}"
    return f"anywhere: below {tried[0]:g}, above {counted(tried[1], unit)}, or between"
