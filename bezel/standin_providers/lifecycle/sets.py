"""Order of lists that are sets for the Google provider, such as a container's environment or a rule's ranges.

The provider keeps a set sorted by a checksum over its members' properties, and sends it in that order
(terraform-plugin-sdk, helper/schema/serialize.go and set.go). The recorded order of two variables agrees.
"""

import re
import zlib
from collections.abc import Mapping
from typing import Any

from bezel.standin_providers.lifecycle.fields import Field, Kind, Mark


def in_set_order(field: Field, members: list[Any]) -> list[Any]:
    """Return the members in the provider's order."""
    text_of = str if field.kind is Kind.ITEMS else lambda member: _member(field, member)
    return sorted(members, key=lambda member: str(zlib.crc32(text_of(member).encode())))


def _member(field: Field, member: Any) -> str:
    names = sorted(
        (_snake(inner), inner) for inner in field.fields if not inner.marks & Mark.OUTPUT or inner.marks & Mark.COMPUTED
    )
    values = member if isinstance(member, Mapping) else {}
    return "".join(f"{name}:{_value(inner, values.get(inner.name))}" for name, inner in names)


def _value(field: Field, value: Any) -> str:
    if value is None and field.kind is not Kind.BLOCK:
        value = {Kind.TEXT: "", Kind.FLAG: False, Kind.ITEMS: [], Kind.BLOCKS: [], Kind.TABLE: {}}.get(field.kind, 0)
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


def _snake(field: Field) -> str:
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), field.path[-1])
