"""Logging's filter language, as far as simple comparisons joined by AND go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.localcloud.errors import invalid

if TYPE_CHECKING:
    from bezel.localcloud.shapes import Json

_SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_TERM = re.compile(
    r"\s*(?:AND\s+)?(?P<field>[A-Za-z_][\w.]*)\s*(?P<operator>!=|>=|<=|=~|!~|=|>|<|:)\s*"
    r'(?P<value>"(?:[^"\\]|\\.)*"|[^\s()"]+)'
)


@dataclass(frozen=True)
class Term:
    """One comparison of a field of an entry with a value."""

    field: str
    operator: str
    value: str

    def holds(self, entry: Json) -> bool:
        """Whether an entry fulfils it; an absent field fulfils only "unequal"."""
        found = _field(entry, self.field)
        if found is None:
            return self.operator in {"!=", "!~"}
        if self.operator in {"=~", "!~"}:
            return (re.search(self.value, found) is not None) == (self.operator == "=~")
        if self.operator == ":":
            return self.value.lower() in found.lower()
        left, right = _comparable(self.field, found), _comparable(self.field, self.value)
        return {
            "=": left == right,
            "!=": left != right,
            ">": left > right,
            ">=": left >= right,
            "<": left < right,
            "<=": left <= right,
        }[self.operator]


def parse_filter(text: str) -> list[Term]:
    """The terms of a filter.

    Raises:
        ApiError: INVALID_ARGUMENT for what is not a list of comparisons (OR, NOT, parentheses, bare words).
    """
    terms, position = [], 0
    while position < len(text.rstrip()):
        match = _TERM.match(text, position)
        if match is None:
            raise invalid(f"Unparseable filter: at character {position}: {text[position : position + 30]!r}")
        value = match["value"]
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        terms.append(Term(match["field"], match["operator"], value))
        position = match.end()
    return terms


def _field(entry: Json, path: str) -> str | None:
    value: object = entry
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return "DEFAULT" if path == "severity" else None
        value = value[part]
    return str(value)


def _comparable(field: str, value: str) -> tuple[int, float, str]:
    if field == "severity" and value.upper() in _SEVERITIES:
        return (0, _SEVERITIES.index(value.upper()), "")
    if field in {"timestamp", "receiveTimestamp"}:
        # RFC 3339 in UTC sorts as text once the fraction has one length.
        head, _, fraction = value.rstrip("Z").replace("+00:00", "").partition(".")
        return (2, 0.0, f"{head}.{fraction:0<9}")
    try:
        return (1, float(value), "")
    except ValueError:
        return (2, 0.0, value)
