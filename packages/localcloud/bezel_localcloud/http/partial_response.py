"""Partial responses: the system parameter `fields`, such as "services/name,nextPageToken". Pure.

A name selects a field, a slash or parentheses select within it, a star selects every field; lists are selected item by
item. A name that a response does not have selects nothing. A selection is read once from left to right, and has
`DEEPEST` levels at most: no message has more.
"""

import re
from typing import Any

from bezel_base.json_documents import DEEPEST
from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json

Selection = dict[str, "Selection"]  # name -> selection within it; {} selects all of it

_LONGEST_SHOWN = 200  # characters of a selection in its refusal
_TOKEN = re.compile(r"[\w@.-]+|[*/(),]")


def select_fields(answer: Json, fields: str) -> Json:
    """Return the part of a response that `fields` selects.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed selection.
    """
    tokens = _TOKEN.findall(fields)
    if "".join(tokens) != fields.replace(" ", "") or not tokens:
        raise _wrong(fields)
    tokens.reverse()
    selection = _selection(tokens, fields, 1)
    if tokens:
        raise _wrong(fields)
    part: Json = _pick(answer, selection)
    return part


def _selection(tokens: list[str], fields: str, level: int) -> Selection:
    """The selection up to a closing parenthesis or the end; `tokens` is what is left, in reverse."""
    selection: Selection = {}
    while True:
        at, below = selection, level
        while True:
            if not tokens or tokens[-1] in {"/", "(", ")", ","} or below > DEEPEST:
                raise _wrong(fields)
            at = at.setdefault(tokens.pop(), {})
            if not _accept(tokens, "/"):
                break
            below += 1
        if _accept(tokens, "("):
            at |= _selection(tokens, fields, below + 1)
            if not _accept(tokens, ")"):
                raise _wrong(fields)
        if not _accept(tokens, ","):
            return selection


def _accept(tokens: list[str], token: str) -> bool:
    if tokens[-1:] != [token]:
        return False
    tokens.pop()
    return True


def _pick(value: Any, selection: Selection) -> Any:
    if not selection:
        return value
    if isinstance(value, list):
        return [_pick(item, selection) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: selection.get(key, selection.get("*")) for key in value}
    return {key: _pick(value[key], chosen) for key, chosen in inner.items() if chosen is not None}


def _wrong(fields: str) -> Exception:
    shown = fields if len(fields) <= _LONGEST_SHOWN else f"{fields[:_LONGEST_SHOWN]}..."
    forms = f"use names, a/b, a(b,c) and *, at most {DEEPEST} levels of them"
    return invalid(f"Invalid field selection {shown!r}: {forms}.", ("fields", shown))
