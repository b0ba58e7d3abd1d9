"""Checks of option values by vLLM's configuration classes, rebuilt from recorded schemas, with pydantic's own texts."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import pydantic

from bezel_catalog import vllm_options
from bezel_simulated_vllm.configuration.failures import VALIDATION_ERROR, StartError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_PLAIN = {"string": str, "boolean": bool, "integer": int, "number": float, "null": None}
_BOUNDS = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt"}
_LENGTHS = {"minItems": "min_length", "maxItems": "max_length"}


def check_fields(options: argparse.Namespace, *, multimodal: bool) -> None:
    """Check every given option by the class of which it is a field.

    Args:
        options: the parsed command line.
        multimodal: whether the model takes more than text; if not, vLLM does not read the options for it.

    Raises:
        StartError: a class refuses the value of an option.
    """
    unused = {"LoRAConfig": not options.enable_lora, "MultiModalConfig": not multimodal}
    for name, schema in vllm_options(options.release).values.items():
        value = getattr(options, name, None)
        if name not in options.given or value is None or unused.get(schema["title"], False):
            continue
        if name == "speculative_config" and isinstance(value, dict):
            continue  # its keys are checked together with the short options for them (speculation.py)
        try:
            _field(name, options.release)(**{name: value})
        except pydantic.ValidationError as error:
            raise StartError(VALIDATION_ERROR, str(error)) from None


@functools.cache
def _field(name: str, release: str) -> Any:
    """Return the configuration class, with this one field."""
    schema = vllm_options(release).values[name]
    return pydantic.create_model(schema["title"], **{name: (_type(schema, name), ...)})  # type: ignore[call-overload]


def _type(schema: Mapping[str, Any], name: str) -> Any:
    if "anyOf" in schema:
        return Union[tuple(_type(branch, name) for branch in schema["anyOf"])]  # noqa: UP007 - made of a list
    if "enum" in schema:
        members = schema["enum"]
        if all(isinstance(word, int) for word in members):
            return enum.IntEnum(name, {f"n{word}": word for word in members})
        return Literal[tuple(members)]
    if "const" in schema:
        return Literal[schema["const"]]
    kind = schema.get("type")
    if kind == "object":
        return _map(schema, name)
    if kind == "array":
        limits = {_LENGTHS[key]: schema[key] for key in _LENGTHS if key in schema}
        return Annotated[list[_type(schema.get("items") or {}, name)], pydantic.Field(**limits)]  # type: ignore[misc]
    if kind is None:
        return Any
    bounds = {_BOUNDS[key]: schema[key] for key in _BOUNDS if key in schema}
    return Annotated[_PLAIN[kind], pydantic.Field(**bounds)] if bounds else _PLAIN[kind]


def _map(schema: Mapping[str, Any], name: str) -> Any:
    if "properties" not in schema:
        others = schema.get("additionalProperties")
        return dict[str, _type(others, name) if isinstance(others, dict) else Any]  # type: ignore[misc]
    required = schema.get("required", ())
    fields: list[Any] = [
        (key, _type(part, key), *(() if key in required else (dataclasses.field(default=None),)))
        for key, part in sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
    ]
    config = pydantic.ConfigDict(extra="forbid" if schema.get("additionalProperties") is False else "ignore")
    return pydantic.dataclasses.dataclass(dataclasses.make_dataclass(name, fields), config=config)
