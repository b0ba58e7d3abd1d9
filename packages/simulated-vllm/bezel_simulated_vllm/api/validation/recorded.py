"""Validators of the recorded request models of each release: pydantic's own, made from `requests.json.gz`.

The recording (`bezel_catalog.vllm.request_recorder`) holds types, bounds, words, defaults and unions of
vLLM's models, and the names of their functions; `rules.py` has what those functions do. Errors are therefore pydantic's
own, in vLLM's order. A model is built at its first use.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any

from pydantic_core import SchemaValidator

from bezel_base.errors import Problem, UserError
from bezel_catalog.vllm.release_changes import functions
from bezel_catalog.vllm.servers import recorded_server
from bezel_simulated_vllm.api.validation.rules import DEFAULTS, RULES


class _Model:
    """Base of the classes of recorded models, with the attributes that pydantic sets."""

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")


class _Nothing:
    """A class that a recorded model names and no JSON value belongs to."""


@functools.cache
def validator(name: str, release: str) -> SchemaValidator:
    """Return the validator of the body of that name; a field that passes may be changed in place, as in vLLM."""
    return SchemaValidator(_build(recorded_server(release).models[name]))


def check_rules(release: str) -> None:
    """Check that every function of the release's request models is written here.

    Raises:
        UserError: some are not, so that bodies would be validated otherwise than by that release.
    """
    if missing := sorted(functions(recorded_server(release).models) - RULES.keys()):
        consequence = f"its server runs functions on bodies that this one does not know: {', '.join(missing)}."
        repair = "write them in bezel_simulated_vllm/api/validation/rules.py, or choose another release."
        raise UserError(Problem("--release", release, consequence, repair))


@functools.cache
def fields(name: str, release: str) -> tuple[str, ...]:
    """Return the names of a body's fields; of both branches where it has two."""
    names: list[str] = []

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            if part.get("type") == "model-fields":
                names.extend(name for name in part["fields"] if name not in names)
            else:
                for key in ("schema", "choices"):
                    collect(part.get(key))
        elif isinstance(part, list):
            for branch in part:
                collect(branch)

    collect(recorded_server(release).models[name])
    return tuple(names)


def _build(part: Any) -> Any:
    """Return a recorded schema with its classes and functions."""
    if isinstance(part, list):
        return [_build(branch) for branch in part]
    if not isinstance(part, dict):
        return part
    built = dict(part)
    for key, value in part.items():
        if key in ("fields", "choices") and isinstance(value, dict):  # by names of fields, or of a union's branches
            built[key] = {name: _build(inner) for name, inner in value.items()}
        elif key == "function":
            built[key] = {"type": value["type"], "function": RULES[value["name"]]}
        elif key != "default":
            built[key] = _build(value)
    return built | _classes(part)


def _classes(part: dict[str, Any]) -> dict[str, Any]:
    """Return the classes and factories of a recorded schema."""
    match part.get("type"):
        case "default" if "default_factory" in part:
            return {"default_factory": DEFAULTS.get(part["default_factory"], str)}
        case "model":
            return {"cls": type(part["cls"], (_Model,), {})}
        case "dataclass":
            return {"cls": type(part["cls"], (), {"__post_init__": RULES[part["cls"]]})}
        case "enum":
            members = enum.EnumMeta.__call__(enum.Enum, part["cls"], {str(value): value for value in part["members"]})
            return {"cls": members, "members": list(members)}
        case "is-instance":
            return {"cls": Sequence if part["cls"] == "Sequence" else _Nothing}
        case "typed-dict" if "cls" in part:
            return {"cls": type(part["cls"], (dict,), {})}
    return {}
