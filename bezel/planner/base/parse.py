"""Parser of a stack's configuration: its Settings, and all errors at once.

Owns the translation of pydantic's errors into problems. A wrong value is dropped and the rest is still read, so that
later rules report their problems at the same time.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from bezel.catalog import closest, vllm_options, vllm_versions
from bezel.errors import NOT_SET, NOT_SHOWN, Problem, shown
from bezel.planner.base.problems import setting
from bezel.planner.base.settings import PriceRow, Settings, ZonePreference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

_PLACEHOLDERS = {"model": "", "accelerator": "", "region": ""}

# Lists of sections, by path.
_ENTRIES: dict[str, type[BaseModel]] = {"cost.prices": PriceRow, "lease.zones": ZonePreference}

_WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a map of keys and values",
    "model_type": "a map of keys and values",
    "tuple_type": "a list",
    "list_type": "a list",
}
_BOUNDS = {
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
    given = {key: value for key, value in config.items() if not (key in _PLACEHOLDERS and value == "")}
    remaining = copy.deepcopy(given)
    problems: list[Problem] = []
    for _ in range(1 + _size(remaining)):
        try:
            return Settings.model_validate(remaining), problems
        except ValidationError as error:
            for found in error.errors(include_url=False, include_context=True):
                problems.append(_problem(found))
                _leave_out(remaining, found)
    raise AssertionError("leaving out wrong settings did not end")  # pragma: no cover - each round removes one


def _problem(found: ErrorDetails) -> Problem:
    path = [str(part) for part in found["loc"]]
    key, kind, context = setting(".".join(path)), found["type"], found.get("ctx", {})
    value = NOT_SHOWN if path[0] == "secrets" else shown(found["input"])
    if kind == "extra_forbidden":
        return _unknown_key(path, key, value)
    example = _example(path)
    if kind == "missing":
        write = f"add `{key}: {example}`" if example else f"add `{key}`"
        what = "the entry" if len(path) > 1 else "the stack"
        return Problem(key, NOT_SET, f"it is required: {what} cannot be planned without it.", f"{write}.")
    if kind == "literal_error":
        expected = str(context.get("expected", "")).replace("'", "")
        return Problem(key, value, "it is none of the known values.", f"write {expected}.")
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return Problem(key, value, "it is out of range.", f"set it to {words} {context[name]:g}.")
    if kind == "string_type" and isinstance(found["input"], bool | int | float):
        return Problem(key, value, "text is needed here, and without quotes it is none.", f'quote it: `"{value}"`.')
    wanted = _WANTED.get(kind)
    consequence = f"{wanted} is needed here." if wanted else f"it is refused: {found['msg'].rstrip('.')}."
    repair = f"write {wanted or 'a fitting value'}" + (f", e.g. `{path[-1]}: {example}`." if example else ".")
    field = _fields(path[:-1]).get(path[-1])
    if found["input"] is None and field is not None and not field.is_required():
        repair = f"remove the key, so that its default holds, or {repair}"
    return Problem(key, value, consequence, repair)


def _unknown_key(path: list[str], key: str, value: str) -> Problem:
    fields = _fields(path[:-1])
    near = closest(path[-1], fields)
    elsewhere = [section for section in Settings.model_fields if path[-1] in _fields([section])]
    if near:
        repair = f"did you mean `{setting('.'.join([*path[:-1], near]))}`?"
    elif elsewhere and len(path) == 1:
        repair = f"did you mean `{setting(elsewhere[0])}: {{{path[-1]}: …}}`?"
    elif len(path) == 1 and (section := _of_server(path[0])):
        repair = f"did you mean `{setting(section)}: {{{path[0]}: …}}`?"
    else:
        repair = "remove it."
    return Problem(
        key,
        value,
        "no such setting exists: it would have no effect.",
        f"{repair} Known here: {', '.join(sorted(fields))}.",
    )


def _of_server(name: str) -> str | None:
    """The section for a name that the newest recorded vLLM reads; None where it reads no such name."""
    options = vllm_options(vllm_versions()[-1])
    if name in options.variables:
        return "variables"
    return "vllm" if options.find(f"--{name.lstrip('-')}") else None


def _model_of(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _fields(path: list[str]) -> dict[str, Any]:
    """The fields of the section at a path; empty where the path is not a section's."""
    if entry := _ENTRIES.get(".".join(path[:2])):
        return dict(entry.model_fields)
    here: type[BaseModel] | None = Settings
    for part in path:
        here = _model_of(here.model_fields[part].annotation) if here and part in here.model_fields else None
    return dict(here.model_fields) if here else {}


def _example(path: list[str]) -> object:
    field = _fields(path[:-1]).get(path[-1])
    if field is None:
        return None
    if field.examples:
        return field.examples[0]
    plain = isinstance(field.default, int | str) and not field.is_required()
    return json.dumps(field.default).strip('"') if plain else None


def _leave_out(config: dict[Any, Any], found: ErrorDetails) -> None:
    """Remove the wrong part, or the smallest map entry around it where it is in a list."""
    path = [part for part in found["loc"] if part != "[key]"]
    here, rest = config, path
    while len(rest) > 1 and isinstance(here.get(rest[0]), dict):
        here, rest = here[rest[0]], rest[1:]
    here.pop(rest[0], None)
    if here is config and rest[0] in _PLACEHOLDERS:
        config[rest[0]] = _PLACEHOLDERS[rest[0]]


def _size(value: object) -> int:
    return 1 + sum(_size(part) for part in value.values()) if isinstance(value, dict) else 1
