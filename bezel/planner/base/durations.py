"""Parsing and formatting of durations such as `4h`, `1h30m` and `900s`. Pure."""

from __future__ import annotations

import re

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_FORM = re.compile("".join(rf"(?:(\d{{1,6}}){unit})?" for unit in _UNITS))


def parse_duration(text: str) -> int | None:
    """Seconds of a text such as `2h30m`; None for any other text, such as a number without a unit."""
    found = _FORM.fullmatch(text.strip())
    if not found or not any(found.groups()):
        return None
    return sum(int(number or 0) * size for number, size in zip(found.groups(), _UNITS.values(), strict=True))


def duration_text(seconds: float) -> str:
    """Seconds as `2h30m`; parts that are zero are left out."""
    left, parts = round(seconds), []
    for unit, size in _UNITS.items():
        number, left = divmod(left, size)
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0s"
