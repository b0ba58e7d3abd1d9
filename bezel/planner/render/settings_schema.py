"""JSON Schema of the settings, and every key in it: what the documents, editors and `bezel explain` are made from.

pydantic leaves three things that no validator understands: bounds of optional numbers under its own names, defaults as
numbers where a stack file writes text (1800 for `30m`), and examples as YAML text. They are put right here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import yaml
from pydantic import BaseModel

from bezel.planner.base.settings import Settings, default_as_written, is_computed
from bezel_catalog.quantities import DURATION_PATTERN, MEMORY_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_PYDANTICS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_QUANTITIES = {DURATION_PATTERN: "a duration", MEMORY_PATTERN: "an amount of memory"}


@dataclass(frozen=True)
class Key:
    """A key of the stack file.

    Attributes:
        path: Its name below those of its sections; a list of sections has the name with `[]`.
        schema: Its own JSON Schema, with references replaced and without the alternative null.
        default: The default as a stack file writes it; None without one.
        is_required: Whether it has to be given.
        is_computed: Whether a rule computes the value where it is not given; its description names the rule.
    """

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    default: object
    is_required: bool
    is_computed: bool

    @property
    def description(self) -> str:
        """What it means."""
        return str(self.schema.get("description") or "")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have; empty where any of its type may be."""
        return tuple(map(str, self.schema.get("enum", ())))

    @property
    def kind(self) -> str:
        """Its type as a word: string, integer, number, boolean, list, map."""
        return {"array": "list", "object": "map"}.get(self.schema["type"], str(self.schema["type"]))

    @property
    def form(self) -> str:
        """Its type with the quantity, or what a list or a map holds, e.g. `list of strings`."""
        if self.kind == "list":
            items = self.schema["items"]
            return f"list of {'maps' if '$ref' in items else items['type'] + 's'}"
        if isinstance(of := self.schema.get("additionalProperties"), dict):
            return f"map of {of['type']}s"
        quantity = _QUANTITIES.get(str(self.schema.get("pattern")))
        return f"{self.kind}, {quantity}" if quantity else self.kind

    @property
    def type_text(self) -> str:
        """Its form with choices or bounds, e.g. `integer, 1 to 16`."""
        if self.choices:
            return f"{self.form}: {', '.join(f'`{word}`' for word in self.choices)}"
        return ", ".join([self.form, *self._bounds()])

    @property
    def default_text(self) -> str:
        """The default as a word: its value, or one of required, computed, empty, none."""
        if self.is_required:
            return "required"
        if self.default is None:
            return "computed" if self.is_computed else "none"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return "empty" if self.kind == "map" or self.default in ("", []) else str(self.default)

    def _bounds(self) -> list[str]:
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        if low is not None and high is not None:
            return [f"{low} to {high}"]
        return [f"{phrase} {self.schema[key]}" for key, phrase in BOUNDS.items() if key in self.schema]


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of all settings by their names, in the words of the standard."""
    whole = Settings.model_json_schema()
    for model in _models(Settings):
        properties = whole["properties"] if model is Settings else whole["$defs"][model.__name__]["properties"]
        for name, field in model.model_fields.items():
            _put_right(properties[name], field)
    return whole


def setting_keys() -> tuple[Key, ...]:
    """Every key, a section or list of sections before what is in it."""
    whole = settings_schema()
    return tuple(_keys((), whole, Settings, whole["$defs"]))


def _keys(
    path: tuple[str, ...], section: Mapping[str, Any], model: type[BaseModel], defs: Mapping[str, Any]
) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        property_schema = section["properties"][name]
        branch: Mapping[str, Any] = next(
            (part for part in property_schema.get("anyOf", ()) if part.get("type") != "null"), {}
        )
        inner = _model_of(field.annotation)
        named = defs[inner.__name__] if inner and "$ref" in property_schema else {}
        schema = {
            **named,
            **{word: value for word, value in property_schema.items() if word not in ("$ref", "anyOf")},
            **branch,
        }
        required = name in section.get("required", ())
        yield Key((*path, name), schema, property_schema.get("default"), required, is_computed(field))
        if inner:
            within = (*path, f"{name}[]" if schema["type"] == "array" else name)
            yield from _keys(within, defs[inner.__name__], inner, defs)


def _put_right(schema: dict[str, Any], field: FieldInfo) -> None:
    for part in (schema, *schema.get("anyOf", ())):
        for pydantic_keyword, standard in _PYDANTICS.items():
            if pydantic_keyword in part:
                part[standard] = part.pop(pydantic_keyword)
    if "default" in schema and isinstance(schema["default"], int):
        schema["default"] = default_as_written(field)
    if "examples" in schema:
        schema["examples"] = [_as_value(example) for example in schema["examples"]]


def _as_value(example: object) -> object:
    """An example as a value: sections, lists and quoted texts are written as YAML."""
    return yaml.safe_load(example) if isinstance(example, str) and example[:1] in "{[\"'" else example


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        if inner := _model_of(field.annotation):
            yield from _models(inner)


def _model_of(annotation: object) -> type[BaseModel] | None:
    """The model of a section, or of the entries of a list of sections."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_of(part))), None)
