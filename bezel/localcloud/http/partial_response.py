"""Partial responses: the system parameter `fields`, such as "services/name,nextPageToken". Pure.

A name selects a field, a slash or parentheses select within it, a star selects every field; lists are selected item by
item. A name that a response does not have selects nothing.
"""

import re
from typing import Any

from bezel.localcloud.core.errors import invalid
from bezel.localcloud.core.json_types import Json

Selection = dict[str, "Selection"]  # name -> selection within it; {} selects all of it

_TOKEN = re.compile(r"[\w@.-]+|[*/(),]")


def picked(answer: Json, fields: str) -> Json:
    """Return the part of a response that `fields` selects.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed selection.
    """
    tokens = _TOKEN.findall(fields)
    if "".join(tokens) != fields.replace(" ", "") or not tokens:
        raise _wrong(fields)
    selection, rest = _selection(tokens, fields)
    if rest:
        raise _wrong(fields)
    part: Json = _pick(answer, selection)
    return part


def _selection(tokens: list[str], fields: str) -> tuple[Selection, list[str]]:
    """Return (selection of the tokens up to a closing parenthesis, remaining tokens)."""
    selection: Selection = {}
    while True:
        at = selection
        while True:
            if not tokens or tokens[0] in {"/", "(", ")", ","}:
                raise _wrong(fields)
            at = at.setdefault(tokens[0], {})
            tokens = tokens[1:]
            if tokens[:1] != ["/"]:
                break
            tokens = tokens[1:]
        if tokens[:1] == ["("]:
            inner, tokens = _selection(tokens[1:], fields)
            at |= inner
            if tokens[:1] != [")"]:
                raise _wrong(fields)
            tokens = tokens[1:]
        if tokens[:1] != [","]:
            return selection, tokens
        tokens = tokens[1:]


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
    return invalid(f"Invalid field selection {fields!r}: use names, a/b, a(b,c) and *.", ("fields", fields))
