"""Mapping of properties to Google's JSON and back, by the fields of a resource type.

Rules for all types: a zero value is left out of a body, a missing value in a response is the zero of its kind, 64-bit
integers are strings, a map or list that the program does not set stays null until the first refresh. Pure functions.
"""

import enum
from collections.abc import Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.comparisons import in_seconds
from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind, Mark
from bezel_pulumi_offline.lifecycle.sets import in_request_order, in_state_order
from bezel_pulumi_offline.lifecycle.values import Properties, secret, unknown


def zero(value: object) -> bool:
    """Whether a value means the same as its absence: none, empty, 0, false, unknown, or a block of such values only."""
    if isinstance(value, Mapping):
        return all(zero(item) for key, item in value.items() if key != "__defaults")
    return value is None or value in ("", 0) or value == [] or unknown(value)


def body(fields: Fields, values: Mapping[str, Any], *, updating: bool = False) -> Properties:
    """Return the JSON of a request: `values` without those that are zero, unknown, local or set by Google only.

    Args:
        fields: The type's properties.
        values: The planned properties.
        updating: Leaves out the properties that only a create may carry.
    """
    result: Properties = {}
    for field in fields:
        if field.marks & (Mark.LOCAL | Mark.OUTPUT | Mark.UNSENT) or (updating and field.marks & Mark.CREATE_ONLY):
            continue
        value = values.get(field.name)
        if unknown(value):
            continue
        sent = _request_value(field, value, updating=updating)
        if updating and field.marks & Mark.EMPTIED:
            sent = sent or ""
        there = (field.marks & Mark.EMPTY and sent is not None) or (
            updating and field.marks & (Mark.KEYED | Mark.EMPTIED)
        )
        if field.marks & Mark.ZERO or there or not (sent is None or sent in ("", 0) or sent in ([], {})):
            into = result
            *parents, last = field.path
            for parent in parents:
                into = into.setdefault(parent, {})
            into[last] = sent
    return result


def _request_value(field: Field, value: Any, *, updating: bool) -> Any:
    if value is None:
        return None
    if field.marks & Mark.SET and isinstance(value, list) and not any(unknown(item) for item in value):
        value = in_request_order(field, value)
    if field.kind is Kind.BLOCK:
        inner = body(field.fields, value, updating=updating)
        return [inner] if field.marks & Mark.LISTED else inner
    if field.kind is Kind.BLOCKS:
        inners = [body(field.fields, item, updating=updating) for item in value]
        if field.marks & Mark.KEYED:
            return {inner.pop("id"): inner for inner in inners}
        return inners[0] if field.marks & Mark.WRAPPED and inners else inners
    if field.marks & Mark.SECONDS:
        return in_seconds(str(value))
    return str(value) if field.kind is Kind.BIG else value


class Nulls(enum.Enum):
    """The lists and maps that stay null where Google has none."""

    ALL = "after a create"
    TOP = "after an update: those of the resource itself, not what is inside its objects"
    NONE = "after a read"


def outputs(
    fields: Fields, answer: Mapping[str, Any], prior: Mapping[str, Any], nulls: Nulls = Nulls.NONE
) -> Properties:
    """Return the properties of a response.

    Args:
        fields: The type's properties.
        answer: Google's JSON of the resource.
        prior: The planned or formerly known properties: local properties come from there.
        nulls: Which lists and maps stay null.
    """
    result: Properties = {}
    for field in fields:
        before = prior.get(field.name)
        if field.marks & (Mark.LOCAL | Mark.UNREAD):
            result[field.name] = field.default if before is None or unknown(before) else before
        else:
            value = dig(answer, field.path)
            if value is None and field.marks & (Mark.UNSENT | Mark.INPUT_ONLY) and not unknown(before):
                value = before
            missing = value is None and field.marks & Mark.NULL
            result[field.name] = None if missing else _read(field, value, before, nulls)
    return result


def dig(answer: Any, path: list[str]) -> Any:
    """Return the value at a path of a JSON object, or None."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, Mapping) else None
    return answer


def _read(field: Field, raw: Any, before: Any, nulls: Nulls) -> Any:
    match field.kind:
        case Kind.TEXT:
            text = "" if raw is None else str(raw)
            return text.rsplit("/", 1)[-1] if field.marks & Mark.SHORT else text
        case Kind.FLAG:
            return bool(raw)
        case Kind.WHOLE | Kind.BIG:
            return int(raw or 0)
        case Kind.REAL:
            return raw or 0
        case Kind.TABLE | Kind.ITEMS:
            if not raw and nulls is not Nulls.NONE and not field.marks & Mark.COMPUTED and before is None:
                return None
            return _many(field, raw)
        case Kind.BLOCK:
            if field.marks & Mark.LISTED:
                raw = raw[0] if raw else None
            if raw is None and not (isinstance(before, Mapping) and _silent(field, before)):
                return None
            prior = before if isinstance(before, Mapping) else {}
            return outputs(field.fields, raw or {}, prior, _inside(field, nulls))
    return _members(field, raw, before, _inside(field, nulls))


def _many(field: Field, raw: Any) -> Any:
    if field.kind is Kind.TABLE:
        return dict(raw or {})
    return in_state_order(field, raw or []) if field.marks & Mark.SET else list(raw or [])


def _silent(field: Field, value: Mapping[str, Any]) -> bool:
    """Whether an object is left out of the body because nothing in it is sent; the property exists all the same."""
    return not field.marks & Mark.EMPTY and body(field.fields, value) == {}


def _inside(field: Field, nulls: Nulls) -> Nulls:
    return nulls if nulls is Nulls.ALL and not field.marks & Mark.SET else Nulls.NONE


def _members(field: Field, raw: Any, before: Any, nulls: Nulls) -> list[Any]:
    if field.marks & Mark.KEYED:
        raw = [{**value, "id": key} for key, value in (raw or {}).items()]
    members = [raw] if field.marks & Mark.WRAPPED and raw else list(raw or [])
    befores = before if isinstance(before, list) else []
    read = [
        outputs(
            field.fields,
            item,
            befores[index] if index < len(befores) else {},
            nulls,
        )
        for index, item in enumerate(members)
    ]
    return in_state_order(field, read) if field.marks & Mark.SET else read


def seal_properties(fields: Fields, values: Properties) -> Properties:
    """Return the same properties with the secret ones in the engine's envelope."""
    hidden = {field.name: field.kind is Kind.BLOCK for field in fields if field.marks & Mark.SECRET}
    # The published plugin wraps a secret block even where it is null.
    return {
        name: secret(value) if name in hidden and (value is not None or hidden[name]) else value
        for name, value in values.items()
    }
