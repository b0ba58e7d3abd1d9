"""Prometheus' text format 0.0.4: the series of a scrape and the kinds of their families. Pure.

Leaves out timestamps, which the collector ignores, and OpenMetrics, which it would prefer of a server that has both:
their kept series are the same. Names in quotes are not read. Compared with Prometheus' own reader (v0.316.0,
model/textparse) on nine servers' metrics and 1,500 made-up texts, 2026-11-29.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|(?=\}))')
_TIME = re.compile(r"-?[0-9]+")
_KINDS = frozenset({"counter", "gauge", "histogram", "summary", "untyped", "unknown"})
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class ExpositionError(ValueError):
    """A text that is not in the format: its whole scrape fails."""


@dataclass(frozen=True)
class Exposition:
    """A scrape.

    Attributes:
        kinds: Kind of each family that tells one.
        series: (text of the series without its value, value) in the order of the text.
    """

    kinds: dict[str, str]
    series: list[tuple[str, float]]


def parse_exposition(text: str) -> Exposition:
    """Read a scrape.

    Raises:
        ExpositionError: A line is none of the format.
    """
    kinds: dict[str, str] = {}
    series: list[tuple[str, float]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            parts = line.split(None, 3)
            if len(parts) == 4 and parts[1] == "TYPE":
                kinds[parts[2]] = parts[3].strip()
                if kinds[parts[2]] not in _KINDS:
                    raise ExpositionError(f'invalid metric type "{kinds[parts[2]][:80]}"')
            continue
        if not line or line.isspace():
            continue
        end = line.rfind("}") + 1 or len(line.split(None, 1)[0])
        series.append((line[:end], _value(line[end:].split(), number)))
    return Exposition(kinds, series)


def _value(parts: list[str], line: int) -> float:
    """The value of a series from what follows its labels: a number, and perhaps a timestamp."""
    try:
        value = float(parts[0])
    except (IndexError, ValueError):
        raise ExpositionError(f"line {line} has no value") from None
    if "_" in parts[0] or len(parts) > 2 or (len(parts) == 2 and not _TIME.fullmatch(parts[1])):
        raise ExpositionError(f"line {line} has more than a value and a timestamp")
    return value


def labels_of(series: str) -> dict[str, str]:
    """The labels of a series, its name among them as `__name__`.

    Raises:
        ExpositionError: The text is not of the format.
    """
    name, brace, rest = series.partition("{")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise ExpositionError(f"{name[:80]!r} is not the name of a metric")
    labels = {"__name__": name}
    if brace:
        for label, value in _pairs(rest, name):
            labels[label] = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[0]), value)
    return labels


def _pairs(text: str, name: str) -> Iterator[tuple[str, str]]:
    place = 0
    while text[place:].strip() != "}":
        match = _LABEL.match(text, place)
        if match is None:
            raise ExpositionError(f"the labels of {name} cannot be read")
        yield match[1], match[2]
        place = match.end()
