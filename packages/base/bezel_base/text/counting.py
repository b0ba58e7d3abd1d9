"""Numbers with their unit in words: one form for each number. Pure."""


def format_count(count: float, unit: str) -> str:
    """Format a number with its unit, which is given in the plural: "1 user", "2 entries", "0.5 requests/s"."""
    number = f"{count:.0f}" if count == int(count) else f"{count:g}"
    if count != 1 or "/" in unit:
        return f"{number} {unit}"
    return f"{number} {unit[:-3]}y" if unit.endswith("ies") else f"{number} {unit.removesuffix('s')}"
