"""Package schema of the `gcp` stand-in, with which `pulumi import` writes code for the resources that it imported.

Made of the table of types: what the stand-in supports, under the names that the published SDK has. Leaves out
properties that Check refuses, and every documentation.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind, Mark
from bezel_pulumi_offline.lifecycle.resource import ResourceType

_SIMPLE: dict[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string"},
    Kind.FLAG: {"type": "boolean"},
    Kind.WHOLE: {"type": "integer"},
    Kind.BIG: {"type": "integer"},
    Kind.REAL: {"type": "number"},
    Kind.TABLE: {"type": "object", "additionalProperties": {"type": "string"}},
    Kind.ITEMS: {"type": "array", "items": {"type": "string"}},
    Kind.ASSET: {"$ref": "pulumi.json#/Asset"},
}


def package_schema(types: Mapping[str, ResourceType], version: str) -> dict[str, Any]:
    """Return the schema of a package with these resource types."""
    nested: dict[str, Any] = {}
    for token, kind in types.items():
        nested |= _nested_types(token, kind.fields)
    return {
        "name": "gcp",
        "version": version,
        "meta": {"moduleFormat": "(.*)(?:/[^/]*)"},
        "types": nested,
        "resources": {token: _resource(token, kind) for token, kind in types.items()},
        "language": {"python": {"compatibility": "tfbridge20", "usesIOClasses": True}},
    }


def _resource(token: str, kind: ResourceType) -> dict[str, Any]:
    fields = [item for item in kind.fields if not item.marks & Mark.REFUSED]
    inputs = [item for item in fields if _settable(item)]
    required = [item.name for item in inputs if item.marks & Mark.REQUIRED and item.name != kind.autoname]
    return {
        "properties": {item.name: _type(token, item) for item in fields},
        "inputProperties": {item.name: _type(token, item) for item in inputs},
        "requiredInputs": required,
    }


def _nested_types(owner: str, fields: Fields) -> dict[str, Any]:
    """Return the types of the objects inside a type, by their tokens."""
    types: dict[str, Any] = {}
    for item in _objects(fields):
        token = nested_token(owner, item)
        inner = [field for field in item.fields if not field.marks & Mark.REFUSED]
        types[token] = {
            "type": "object",
            "properties": {field.name: _type(token, field) for field in inner},
            "required": [field.name for field in inner if field.marks & Mark.REQUIRED],
        }
        types |= _nested_types(token, item.fields)
    return types


def _objects(fields: Fields) -> Iterator[Field]:
    return (item for item in fields if item.kind in (Kind.BLOCK, Kind.BLOCKS) and not item.marks & Mark.REFUSED)


def _type(owner: str, field: Field) -> dict[str, Any]:
    if field.kind in _SIMPLE:
        return _SIMPLE[field.kind]
    reference = {"$ref": f"#/types/{nested_token(owner, field)}"}
    return {"type": "array", "items": reference} if field.kind is Kind.BLOCKS else reference


def nested_token(owner: str, field: Field) -> str:
    """Return the token of an object: its owner's name and its own, in the singular."""
    package, module, name = owner.split(":")
    part = _singular(field.name) if field.kind is Kind.BLOCKS else field.name
    whole = name + part[0].upper() + part[1:]
    return f"{package}:{module.partition('/')[0]}/{whole}:{whole}"


def _singular(name: str) -> str:
    for plural, singular in ((r"ies$", "y"), (r"(ss|us|x|ch)es$", r"\1"), (r"s$", "")):
        if re.search(plural, name):
            return re.sub(plural, singular, name)
    return name


def _settable(field: Field) -> bool:
    return not field.marks & Mark.OUTPUT and not field.name.startswith("effective")
