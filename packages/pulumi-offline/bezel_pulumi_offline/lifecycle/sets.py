"""Orders of lists that are sets for the Google provider, such as a container's environment or a rule's ranges.

A request lists the members by a checksum over their properties (terraform-plugin-sdk, helper/schema/serialize.go and
set.go). The state lists them by their content, as the type system below the provider compares them (go-cty,
set_internals.go): texts by their letters, objects by their properties in alphabetical order.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Field, Kind, Mark
from bezel_pulumi_offline.lifecycle.values import has_unknown, unknown


def in_request_order(field: Field, members: list[Any]) -> list[Any]:
    """Return the members in the order of the provider's requests."""
    plain: Callable[[Any], str] = str if field.kind is Kind.ITEMS else lambda member: _member(field, member)
    text_of = _HASHED.get(field.hashed, plain)
    return sorted(members, key=lambda member: str(zlib.crc32(text_of(member).encode())))


def in_state_order(field: Field, members: list[Any]) -> list[Any]:
    """Return the members in the order of the provider's state."""
    kind = Kind.TEXT if field.kind is Kind.ITEMS else Kind.BLOCK
    return sorted(members, key=lambda member: (unknown(member), _content(field, kind, member).encode()))


def without_repeats(field: Field, members: list[Any]) -> list[Any]:
    """Return the members of a set once each, in their order; what is not known yet may be one of its own."""
    kind = Kind.TEXT if field.kind is Kind.ITEMS else Kind.BLOCK
    text_of: Callable[[Any], str] = _HASHED.get(field.hashed, lambda member: _content(field, kind, member))
    first_places = {
        text_of(member): index for index, member in reversed(list(enumerate(members))) if not has_unknown(member)
    }
    return [
        member for index, member in enumerate(members) if has_unknown(member) or first_places[text_of(member)] == index
    ]


ZEROS: dict[Kind, Any] = {Kind.TEXT: "", Kind.FLAG: False, Kind.ITEMS: [], Kind.BLOCKS: [], Kind.TABLE: {}}


def _content(field: Field, kind: Kind, value: Any) -> str:
    """Return the text by which two values are compared; a missing value is the zero of its kind."""
    value = ZEROS.get(kind, 0) if value is None else value
    match kind, value:
        case (Kind.FLAG, _):
            return "T" if value else "F"
        case (Kind.BLOCK, Mapping()):
            inner = sorted(field.fields, key=lambda item: item.provider_name)
            return "<" + "".join(f"{_property_text(item, value.get(item.name))};" for item in inner) + ">"
        case (Kind.TABLE, Mapping()):
            return "{" + "".join(f"{_text(key)}:{_text(value[key])};" for key in sorted(value)) + "}"
        case (Kind.ITEMS, list()):
            return "[" + "".join(f"{_text(item)};" for item in value) + "]"
        case (Kind.BLOCKS, list()):
            return "[" + "".join(f"{_content(field, Kind.BLOCK, item)};" for item in value) + "]"
    return _text(value) if isinstance(value, str) else str(value)


def _property_text(field: Field, value: Any) -> str:
    """Return the text of a property; an object is a list of one to the provider."""
    if field.kind is Kind.BLOCK:
        return f"[{_content(field, Kind.BLOCK, value)};]" if value is not None else "[]"
    return _content(field, field.kind, value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rule(rule: Mapping[str, Any]) -> str:
    """Return a rule of a firewall as the provider hashes it: its protocol, and its ports in order."""
    return "-".join([str(rule.get("protocol", "")).lower(), *sorted(map(str, rule.get("ports") or []))]) + "-"


_HASHED: Mapping[str, Callable[[Any], str]] = {"rule": _rule}


def _member(field: Field, member: Any) -> str:
    inputs = [inner for inner in field.fields if not inner.marks & Mark.OUTPUT or inner.marks & Mark.COMPUTED]
    values = member if isinstance(member, Mapping) else {}
    ordered = sorted(inputs, key=lambda inner: inner.provider_name)
    return "".join(f"{inner.provider_name}:{_value(inner, values.get(inner.name))}" for inner in ordered)


def _value(field: Field, value: Any) -> str:
    if value is None and field.kind is not Kind.BLOCK:
        value = ZEROS.get(field.kind, 0)
    match field.kind:
        case Kind.FLAG:
            return f"{int(bool(value))};"
        case Kind.TABLE:
            return "[" + "".join(f"{key}:{value[key]};" for key in sorted(value)) + "];"
        case Kind.ITEMS:
            return "(" + "".join(f"{item};" for item in value) + ");"
        case Kind.BLOCK:
            return "(" + (f"<{_member(field, value)}>;" if value is not None else "") + ");"
        case Kind.BLOCKS:
            return "(" + "".join(f"<{_member(field, item)}>;" for item in value) + ");"
    return f"{value};"
