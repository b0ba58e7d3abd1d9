"""Parser of a stack's configuration: its Settings, and all errors at once.

Owns the translation of pydantic's errors into problems. A wrong value is dropped and the rest is still read, so that
later rules report their problems at the same time.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from bezel.planner.base.problems import setting
from bezel.planner.base.settings import Settings, default_as_written
from bezel_base.errors import NOT_SET, NOT_SHOWN, Problem, format_value
from bezel_catalog import closest, vllm_options, vllm_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_REQUIRED = ("model", "accelerator", "region")  # `regions` may stand for the last one

# What was expected, by the first word of pydantic's kind of error.
EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "text",
    "bool": "true or false",
    "dict": "a map of keys and values",
    "model": "a map of keys and values",
    "tuple": "a list",
    "duration": "a duration with its unit",
    "memory": "a whole number of GiB",
    "environment": "a word of at most 32 lower-case letters, digits and hyphens, with a letter first",
}
BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def read_settings(config: Mapping[str, object]) -> tuple[Settings, list[Problem]]:
    """Read the configuration of namespace `bezel`.

    Args:
        config: keys without the namespace, values JSON-decoded; numbers may be text.

    Returns:
        The settings, with defaults (for required ones: empty text) in place of wrong values, and the problems.
    """
    # Pulumi.yaml gives required keys an empty default, so that a missing one is reported here.
    values = {key: value for key, value in config.items() if not (key in _REQUIRED and value == "")}
    remaining = copy.deepcopy(values)
    problems: list[Problem] = []
    for _ in range(1 + _size(remaining)):
        try:
            return Settings.model_validate(remaining), problems
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                problems.append(_problem(detail))
                _leave_out(remaining, detail)
    raise AssertionError("leaving out wrong settings did not end")  # pragma: no cover - each round removes one


def _problem(error: ErrorDetails) -> Problem:
    path = [str(part) for part in error["loc"]]
    key, kind, context = setting(".".join(path)), error["type"], error.get("ctx", {})
    value = NOT_SHOWN if path[0] == "secrets" else format_value(error["input"])
    if kind == "extra_forbidden":
        return _unknown_key(path, key, value)
    field = _fields(path[:-1]).get(path[-1])
    example = _example(field)
    if kind == "missing":
        what = "the entry" if len(path) > 1 else "the stack"
        repair = f"add `{key}: {example}`." if example else f"add `{key}`."
        return Problem(key, NOT_SET, f"it is required: {what} cannot be planned without it.", repair)
    if kind == "literal_error":
        expected = str(context.get("expected", "")).replace("'", "")
        return Problem(key, value, "it is not one of the known values.", f"write {expected}.")
    if kind in BOUNDS:
        name, phrase = BOUNDS[kind]
        return Problem(key, value, "it is out of range.", f"set it to {phrase} {context[name]}.")
    if kind == "string_type" and isinstance(error["input"], bool | int | float):
        return Problem(key, value, "expected text; without quotes it is not text.", f'quote it: `"{value}"`.')
    if kind == "string_pattern_mismatch" and example:
        return Problem(key, value, "it does not have the form of this setting.", f"write e.g. `{path[-1]}: {example}`.")
    wanted = EXPECTED.get(kind.partition("_")[0])
    consequence = f"expected {wanted}." if wanted else f"it is refused: {error['msg'].rstrip('.')}."
    repair = f"write {wanted or 'a valid value'}" + (f", e.g. `{path[-1]}: {example}`." if example else ".")
    if error["input"] is None and field is not None and not field.is_required():
        repair = f"remove the key to use its default, or {repair}"
    return Problem(key, value, consequence, repair)


def _unknown_key(path: list[str], key: str, value: str) -> Problem:
    fields = _fields(path[:-1])
    near = closest(path[-1], fields)
    elsewhere = [section for section in Settings.model_fields if path[-1] in _fields([section])]
    if near:
        repair = f"did you mean `{setting('.'.join([*path[:-1], near]))}`?"
    elif elsewhere and len(path) == 1:
        repair = f"did you mean `{setting(elsewhere[0])}: {{{path[-1]}: …}}`?"
    elif len(path) == 1 and (section := _server_section(path[0])):
        repair = f"did you mean `{setting(section)}: {{{path[0]}: …}}`?"
    else:
        repair = "remove it."
    known_keys = f"Known here: {', '.join(sorted(fields))}."
    return Problem(key, value, "this setting does not exist: it would have no effect.", f"{repair} {known_keys}")


def _server_section(name: str) -> str | None:
    """The section for a name that the newest recorded vLLM reads; None where it reads no such name."""
    options = vllm_options(vllm_versions()[-1])
    if name in options.variables:
        return "variables"
    return "vllm" if options.find(f"--{name.lstrip('-')}") else None


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a section, an optional one too, or of the entries of a list of sections."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_of(part))), None)


def _fields(path: list[str]) -> dict[str, FieldInfo]:
    """The fields of the section at a path; empty where the path is not a section's."""
    here: type[BaseModel] | None = Settings
    for part in path:
        if part.isdigit():  # an entry of a list, whose model is there already
            continue
        here = _model_of(here.model_fields[part].annotation) if here and part in here.model_fields else None
    return dict(here.model_fields) if here else {}


def _example(field: FieldInfo | None) -> object:
    if field is None or field.examples:
        return field and field.examples and field.examples[0]
    default = default_as_written(field)
    return json.dumps(default).strip('"') if isinstance(default, int | str) else None


def _leave_out(config: dict[Any, Any], error: ErrorDetails) -> None:
    """Remove the wrong part; the whole list where one of its entries cannot be without that part."""
    path = [part for part in error["loc"] if part != "[key]"]
    section: Any = config
    holder, key = section, path[0]
    for depth, part in enumerate(path):
        if isinstance(section, dict):
            if not _entry_needs(path[: depth + 1]):
                holder, key = section, part
            section = section.get(part)
        elif isinstance(section, list):
            section = section[int(part)]
        else:  # an earlier problem removed it
            break
    holder.pop(key, None)
    if holder is config and key in _REQUIRED:
        config[key] = ""


def _entry_needs(path: list[int | str]) -> bool:
    """Whether the last part of a path is a required field of an entry of a list."""
    field = _fields([str(part) for part in path[:-1]]).get(str(path[-1]))
    return field is not None and field.is_required() and len(path) > 1


def _size(value: object) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_size(part) for part in parts)
