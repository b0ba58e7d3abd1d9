"""Look-up of a path among thousands of templates, such as "/run/v2/projects/{}/locations/{}/services/{}:wait"."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")
# A parameter of a path, which has no slash. A colon begins a custom method, except in a digest.
_SEGMENT = "(?:[^/:]+:[0-9a-f]{64,}|[^/:]+)"


class _Row(NamedTuple, Generic[Value]):
    order: int
    parameters: tuple[tuple[int, str], ...]
    value: Value


class PathTemplates(Generic[Value]):
    """Values by their HTTP methods and templates, of which the first that matches is found.

    Templates with the same places of plain segments are found by those segments, in one step for all of them. To
    compile the forms of all templates instead would take a tenth of the daemon's start.
    """

    def __init__(self, rows: Iterable[tuple[str, str, Value]]) -> None:
        """Make the index of rows of an HTTP method, a template with {} for each parameter, and a value."""
        self._shapes: dict[tuple[str, int], dict[tuple[int, ...], dict[tuple[str, ...], list[_Row[Value]]]]] = {}
        for order, (verb, template, value) in enumerate(rows):
            segments = template.split("/")
            parameters = tuple((at, segment) for at, segment in enumerate(segments) if "{}" in segment)
            plain = tuple(at for at, segment in enumerate(segments) if "{}" not in segment)
            by_texts = self._shapes.setdefault((verb, len(segments)), {}).setdefault(plain, {})
            by_texts.setdefault(tuple(segments[at] for at in plain), []).append(_Row(order, parameters, value))

    def find(self, verb: str, path: str, *, strict: bool = True) -> Value | None:
        """Return the value of the first template that a path matches; None where none does.

        Args:
            verb: GET, POST, ...
            path: Path of a request, still encoded.
            strict: Whether a colon ends a parameter.
        """
        segments = path.split("/")
        matching = [
            row
            for plain, by_texts in self._shapes.get((verb, len(segments)), {}).items()
            for row in by_texts.get(tuple(segments[at] for at in plain), ())
            if all(_form(form, strict).fullmatch(segments[at]) for at, form in row.parameters)
        ]
        return min(matching, key=lambda row: row.order).value if matching else None


@cache
def _form(segment: str, strict: bool) -> re.Pattern[str]:
    return re.compile(re.escape(segment).replace(r"\{\}", _SEGMENT if strict else "[^/]+"))
