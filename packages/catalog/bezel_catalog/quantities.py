"""Durations and memory as text: `4h`, `1h30m`, `900s` in seconds, `16Gi` in GiB. Pure."""

from __future__ import annotations

import re

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:(\d{{1,6}}){unit})?" for unit in _UNITS))
_MEMORY = re.compile(r"(\d+)(Gi|Mi)")
GIB = 1024**3
DURATION_PATTERN = r"^\s*(?=[0-9])" + "".join(rf"([0-9]{{1,6}}{unit})?" for unit in _UNITS) + r"\s*$"
"""Pattern of a duration for a JSON Schema."""
MEMORY_PATTERN = r"^\s*[0-9]+(Gi|Mi)\s*$"
"""Pattern of an amount of memory for a JSON Schema; whether it is a whole number of GiB is left to `parse_memory`."""


def parse_duration(text: str) -> int | None:
    """Seconds of a text such as `2h30m`; None for any other text, such as a number without a unit."""
    match = _DURATION.fullmatch(text.strip())
    if not match or not any(match.groups()):
        return None
    return sum(int(number or 0) * size for number, size in zip(match.groups(), _UNITS.values(), strict=True))


def duration_text(seconds: float) -> str:
    """Seconds as `2h30m`; parts that are zero are left out."""
    left, parts = round(seconds), []
    for unit, size in _UNITS.items():
        number, left = divmod(left, size)
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0s"


def parse_memory(text: str) -> int | None:
    """GiB of a text such as `16Gi` or `16384Mi`; None for any other text, and for a fraction of a GiB."""
    match = _MEMORY.fullmatch(text.strip())
    gib, rest = divmod(int(match[1]), 1 if match[2] == "Gi" else 1024) if match else (0, 1)
    return None if rest else gib


def memory_text(gib: int) -> str:
    """GiB as `16Gi`."""
    return f"{gib}Gi"


def as_gib(number: int) -> float:
    """Bytes as a figure of an output, in GiB."""
    return round(number / GIB, 2)


def gib_text(number: int) -> str:
    """Bytes as GiB in a text."""
    return f"{number / GIB:.2f}"
