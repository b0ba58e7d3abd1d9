"""Problems of an operation's arguments, in the words of both faces: what is wrong, and what to write instead.

Owns the words for what pydantic reports. A repair names the bound, the known values or an example, and says what the
argument is. Leaves the names that a face shows, and the kind of error that it raises, to the face.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bezel.operations.arguments.model import Arguments
from bezel.operations.results import format_count
from bezel.planner.base.parse import BOUNDS, EXPECTED
from bezel_base.errors import NOT_SET, Problem

_LENGTHS = {"too_short": ("min_length", "at least"), "too_long": ("max_length", "at most")}


def argument_problems(
    error: ValidationError, model: type[Arguments], names: Mapping[str, str] | None = None
) -> list[Problem]:
    """Every problem that pydantic reports of an operation's arguments.

    Args:
        error: What pydantic reports.
        model: Model of the arguments.
        names: Argument -> the name that the face shows for it; by default its own.
    """
    names = names or {}
    details = error.errors(include_url=False)
    # A list whose items are all refused is reported as too short as well.
    refused = {detail["loc"][0] for detail in details if len(detail["loc"]) > 1}
    schemas: Mapping[str, Any] = model.model_json_schema().get("properties") or {}
    problems = []
    for detail in details:
        name = str(detail["loc"][0]) if detail["loc"] else ""
        if detail["type"] == "too_short" and detail["loc"][:1] and detail["loc"][0] in refused:
            continue
        problems.append(_problem(detail, names.get(name, name), name, schemas, names))
    return problems


def _problem(
    detail: ErrorDetails, key: str, name: str, schemas: Mapping[str, Any], names: Mapping[str, str]
) -> Problem:
    schema = schemas.get(name) or {}
    # A repair asks for a value, so what holds without one is left out.
    meaning = f" ({text})" if (text := schema.get("description", "").partition(" (default: ")[0]) else ""
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, schemas, n=1)
        choices = ", ".join(names.get(each, each) for each in schemas)
        repair = f"did you mean {near[0]}?" if near else f"choose of {choices}." if choices else "leave it out."
        return Problem(key, value, "there is no such argument.", repair)
    if kind == "missing":
        return Problem(key, NOT_SET, "it is required.", f"add it{meaning}.")
    if kind in BOUNDS:
        bound, comparison = BOUNDS[kind]
        return Problem(key, value, "it is out of range.", f"set it to {comparison} {context[bound]:.15g}{meaning}.")
    if kind == "literal_error":
        expected = str(context.get("expected", "")).replace("'", "")
        return Problem(key, value, "it is not one of the known values.", f"choose {expected}{meaning}.")
    if (length := _LENGTHS.get(kind.removeprefix("string_"))) is not None:
        bound, comparison = length
        thing = "character" if kind.startswith("string_") else "item"
        wanted = f"{comparison} {format_count(context[bound], thing)}"
        consequence = "it is empty." if not value else "it is too short." if "short" in kind else "it is too long."
        return Problem(key, value, consequence, f"write {wanted}{meaning}.")
    if kind == "string_pattern_mismatch":
        example = next(_examples(schema), None)
        written = f"e.g. {example}" if example else f"in the form {context.get('pattern')}"
        return Problem(key, value, "its form is wrong.", f"write it {written}{meaning}.")
    if expected_kind := EXPECTED.get(kind.partition("_")[0]):
        return Problem(key, value, f"expected {expected_kind}.", f"write {expected_kind}{meaning}.")
    reason = str(context.get("error") or detail["msg"]).rstrip(".")
    return Problem(key, value, f"it is refused: {reason}.", f"write another value{meaning}.")


def _examples(schema: object) -> Iterator[str]:
    """Examples of a value, of itself or of its parts."""
    if isinstance(schema, Mapping):
        yield from (str(example) for example in schema.get("examples") or ())
        for part in schema.values():
            yield from _examples(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _examples(part)
