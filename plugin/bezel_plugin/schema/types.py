"""Types of the schema for Python's annotations: `tuple[str, ...]` is an array of strings.

A model or a TypedDict within another becomes an object type of the package, in the module of the component that first
has it. An annotation that has no type in the schema raises `TypeError`: the model has to change. A default that is a
text, a number or a switch is in the schema, and SDKs send it; what depends on a plan is in the description.
"""

import collections.abc
import dataclasses
import json
import types
import typing
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any

import pulumi
from pydantic import BaseModel

from bezel_components.base.check_resource import camel_case
from bezel_plugin.schema.descriptions import describe_fields

_SIMPLE: Mapping[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_ARRAYS = (tuple, list, collections.abc.Sequence)
_MAPS = (dict, collections.abc.Mapping)
ANY = {"$ref": "pulumi.json#/Any"}
REQUIRED = object()
"""Stands for the default of a field that has none."""
HIDDEN = (pulumi.ResourceHookBinding,)
"""Types of arguments that only a program in Python can give."""


@dataclasses.dataclass(frozen=True)
class Field:
    """An argument of a component, a check or an object.

    Attributes:
        name: Python's name; the schema has it in camel case.
        annotation: Its type, without `pulumi.Output` and None.
        required: Whether it must be given.
        takes_unknown: Whether its value may be unknown in a preview.
        description: What it is.
        default: Its value where none is given; None for none.
    """

    name: str
    annotation: Any
    required: bool
    takes_unknown: bool
    description: str
    default: Any = None

    @property
    def key(self) -> str:
        """Its name in the schema."""
        return camel_case(self.name)


def fields_of(model: type[Any], *, always_unknown: bool = False) -> list[Field]:
    """The fields of a pydantic model, a TypedDict or a dataclass that a program of any language can set.

    Args:
        model: The class.
        always_unknown: Whether every value may be unknown in a preview, as for checks.
    """
    described = describe_fields(model)
    made = []
    for name, annotation, default in _declared(model):
        inner, takes_unknown = plain_annotation(annotation)
        if inner in HIDDEN:
            continue
        shown = f" Default: {_default_text(default)}." if _is_told(default) else ""
        if typing.get_origin(inner) is typing.Literal:
            shown = f" One of {', '.join(typing.get_args(inner))}.{shown}"
        description = f"{described.get(name, '').rstrip('.')}.{shown}"
        required, takes_unknown = default is REQUIRED, takes_unknown or always_unknown
        made.append(Field(name, inner, required, takes_unknown, description, None if required else default))
    return made


def _is_told(default: Any) -> bool:
    """Whether a default says something that its absence does not."""
    return isinstance(default, str | int | float | tuple) and bool(default)


def _default_text(default: str | float | tuple[Any, ...]) -> str:
    """A default in a description: a switch and a list as JSON has them, a text without quotes."""
    return (
        default if isinstance(default, str) else f"{default:g}" if isinstance(default, float) else json.dumps(default)
    )


def _declared(model: type[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, annotation and default of each field."""
    if issubclass(model, BaseModel):
        for name, info in model.model_fields.items():
            default = None if info.default_factory else info.default
            yield name, info.annotation, REQUIRED if info.is_required() else default
        return
    # Those that the SDK's `Input` refers to by name are among them.
    names = {"Mapping": Mapping, "Sequence": collections.abc.Sequence, "Output": pulumi.Output, "T": Any}
    hints = typing.get_type_hints(model, localns=names)
    if typing.is_typeddict(model):
        yield from ((name, hint, _default_setting(model, name)) for name, hint in hints.items())
        return
    for field in dataclasses.fields(model):
        yield field.name, hints[field.name], REQUIRED if field.default is dataclasses.MISSING else field.default


def _default_setting(model: type[Any], name: str) -> Any:
    """The default of a key of a TypedDict of settings, as a stack file writes it.

    The class of a section has the TypedDict's name; the settings of a service are settings of a stack file.
    """
    from bezel.planner.base import settings  # late: the components need none of it

    section: type[BaseModel] = getattr(settings, model.__name__, settings.Settings)
    field = section.model_fields[name]
    return REQUIRED if field.is_required() else settings.default_as_written(field)


def is_object(annotation: Any) -> bool:
    """Whether an annotation is a class that the schema has as an object type."""
    return typing.is_typeddict(annotation) or (isinstance(annotation, type) and issubclass(annotation, BaseModel))


def plain_annotation(annotation: Any) -> tuple[Any, bool]:
    """An annotation without Outputs, Awaitables and None, and whether it had an Output."""
    if typing.get_origin(annotation) is typing.Annotated:
        return plain_annotation(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    parts = typing.get_args(annotation)
    has_output = any(typing.get_origin(part) is pulumi.Output for part in parts)
    left = [
        part for part in parts if part is not type(None) and typing.get_origin(part) not in (pulumi.Output, Awaitable)
    ]
    left = [part for part in left if typing.get_origin(part) is not collections.abc.Awaitable]
    if set(left) == {int, float}:
        return float, has_output
    return (left[0] if len(left) == 1 else Any), has_output


def type_of(annotation: Any, module: str, objects: dict[str, Any]) -> dict[str, Any]:
    """The type in the schema; object types that it needs are added to `objects`.

    Args:
        annotation: Python's type.
        module: The package's module that new object types are put into.
        objects: Token -> object type.

    Raises:
        TypeError: The schema has no such type.
    """
    annotation, _ = plain_annotation(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _SIMPLE:
        return {"type": _SIMPLE[annotation]}
    if annotation is Any:
        return ANY
    if origin is typing.Literal:
        return {"type": "string"}
    if origin in _ARRAYS:
        return {"type": "array", "items": type_of(arguments[0], module, objects)}
    if origin in _MAPS:
        return {"type": "object", "additionalProperties": type_of(arguments[1], module, objects)}
    if is_object(annotation):
        return {"$ref": f"#/types/{_object_type(annotation, module, objects)}"}
    raise TypeError(f"{annotation} has no type in the schema of the package")


def _object_type(model: type[Any], module: str, objects: dict[str, Any]) -> str:
    known = next((token for token in objects if token.rpartition(":")[2] == model.__name__), None)
    if known:
        return known
    token = f"bezel:{module}:{model.__name__}"
    objects[token] = {}  # before its fields: a model may hold itself
    objects[token] = {
        "type": "object",
        "description": describe_fields(model)[""],
        **properties_of(fields_of(model), module, objects),
    }
    return token


def properties_of(fields: list[Field], module: str, objects: dict[str, Any]) -> dict[str, Any]:
    """`properties` and `required` of an object with these fields."""
    described = {
        field.key: {
            **type_of(field.annotation, module, objects),
            "description": field.description,
            **({"default": field.default} if isinstance(field.default, str | bool | int | float) else {}),
        }
        for field in fields
    }
    return {"properties": described, "required": sorted(field.key for field in fields if field.required)}
