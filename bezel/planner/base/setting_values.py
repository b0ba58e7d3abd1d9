"""Values of a stack file's settings: switches, numbers, durations, memory, environments; and what a section takes.

Written as text such as `4h` and `16Gi`, a number for every rule: seconds and GiB.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from bezel.planner.base.environments import PATTERN as ENVIRONMENT_PATTERN
from bezel.planner.base.environments import is_environment
from bezel_catalog.quantities import (
    DURATION_PATTERN,
    MEMORY_PATTERN,
    duration_text,
    memory_text,
    parse_duration,
    parse_memory,
)


def _no_bool(value: object) -> object:
    # pydantic takes True for 1; a switch in place of a number is a mistake.
    return "true" if value is True else "false" if value is False else value


def _is_on(value: object) -> bool:
    # pydantic takes yes, on, t and 1 for true: text that opens a service or costs money must say so in YAML's own word.
    # Pulumi's command line stores true and false as text.
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    raise PydanticCustomError("bool", "not true or false")


Switch = Annotated[bool, BeforeValidator(_is_on)]
Whole = Annotated[int, BeforeValidator(_no_bool)]
Number = Annotated[float, BeforeValidator(_no_bool)]


_MOST_SECONDS = 366 * 86_400  # far above any limit of a lease


def _seconds(value: object) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None or seconds > _MOST_SECONDS:
        raise PydanticCustomError("duration", "not a duration")
    return seconds


_MOST_GIB = 10_000  # far above any machine


def _gib(value: object) -> int:
    gib = parse_memory(value) if isinstance(value, str) else None
    if gib is None or gib > _MOST_GIB:
        raise PydanticCustomError("memory", "not a whole number of GiB")
    return gib


def _environment(value: object) -> str:
    if not isinstance(value, str) or not is_environment(value.strip()):
        raise PydanticCustomError("environment", "not the name of an environment")
    return value.strip()


_DURATION = WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN})
_MEMORY = WithJsonSchema({"type": "string", "pattern": MEMORY_PATTERN})
Duration = Annotated[int, BeforeValidator(_seconds), PlainSerializer(duration_text), _DURATION]
Environment = Annotated[
    str, BeforeValidator(_environment), WithJsonSchema({"type": "string", "pattern": ENVIRONMENT_PATTERN})
]
Memory = Annotated[int, BeforeValidator(_gib), PlainSerializer(memory_text), _MEMORY]


class Section(BaseModel):
    """A part of a stack file: unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False, str_strip_whitespace=True
    )
