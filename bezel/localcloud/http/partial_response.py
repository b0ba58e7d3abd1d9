"""Partial responses: what the system parameter `fields` leaves of an answer, such as "services/name,nextPageToken".

Pure. A name picks a field, a slash or parentheses pick within it, a star picks every field; lists are picked in item by
item. A name that an answer does not have picks nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.localcloud.core.errors import invalid

if TYPE_CHECKING:
    from bezel.localcloud.core.json_types import Json

    Selection = dict[str, "Selection"]  # name -> what is picked within it; {} is all of it

_TOKEN = re.compile(r"[\w@.-]+|[*/(),]")


def picked(answer: Json, fields: str) -> Json:
    """The part of an answer that `fields` selects.

    Raises:
        ApiError: INVALID_ARGUMENT for what is no selection.
    """
    tokens = _TOKEN.findall(fields)
    if "".join(tokens) != fields.replace(" ", "") or not tokens:
        raise _wrong(fields)
    selection, rest = _selection(tokens, fields)
    if rest:
        raise _wrong(fields)
    kept: Json = _pick(answer, selection)
    return kept


def _selection(tokens: list[str], fields: str) -> tuple[Selection, list[str]]:
    """(what the tokens select up to a closing parenthesis, what is left of them)."""
    found: Selection = {}
    while True:
        at = found
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
            return found, tokens
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
