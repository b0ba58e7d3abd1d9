"""Values of options as texts: numbers as vLLM's option parser reads them, maps and lists as JSON."""

from __future__ import annotations

import json
import re
from decimal import Decimal

# Lower-case suffixes are powers of 1000, capitals powers of 1024: 16k = 16000, 16K = 16384.
_SUFFIX = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kmgtKMGT]?)")
_WHOLE = re.compile(r"[+-]?\d+")


def as_int(value: object) -> int | None:
    """A whole number, also one written as text; None for anything else (a switch is not a number)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value.strip()) else None


def as_float(value: object) -> float | None:
    """A finite number, also one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number - number == 0 else None  # neither infinite nor not-a-number


def human_int(value: object) -> int | None:
    """A whole number with an optional suffix such as 16k (16000) or 16K (16384); None for anything else."""
    whole = as_int(value)
    if whole is not None or not isinstance(value, str):
        return whole
    match = _HUMAN.fullmatch(value.strip())
    if match is None:
        return None
    number = Decimal(match[1]) * _SUFFIX[match[2]]
    return int(number) if match[2] in "kmgt" or "." not in match[1] else None


def as_structure(value: object) -> object:
    """The map or list of a JSON text, as `pulumi config set` stores it; any other value unchanged."""
    if not (isinstance(value, str) and value.lstrip().startswith(("{", "["))):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
