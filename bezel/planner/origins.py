"""Where each planned value came from: the stack file, the catalogue's defaults, or a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from bezel.planner.loading import LOADINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.arguments import Argument
    from bezel.planner.settings import Settings

STACK_FILE = "stack file"
DEFAULT = "catalogue default"
COMPUTED = "computed"
# Options that follow from how the weights are loaded, be that chosen or found by a rule.
_OF_LOADING = frozenset(name for loading in LOADINGS.values() for name in loading.options)


def origins(settings: Settings, arguments: Mapping[str, Argument]) -> Mapping[str, str]:
    """By the path of a setting (`scaling.max_instances`) or of an argument (`vllm.max-model-len`).

    A value that equals its declared default counts as default, wherever it is written: the engine hands the defaults
    of Pulumi.yaml over as if the stack file had set them.
    """
    found = dict(_settings(settings, ""))
    for argument in arguments.values():
        unsaid = COMPUTED if argument.name in _OF_LOADING else DEFAULT
        found[f"vllm.{argument.name}"] = STACK_FILE if argument.from_stack else unsaid
    return found


def _settings(section: BaseModel, path: str) -> Iterator[tuple[str, str]]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _settings(value, f"{path}{name}.")
        elif path or name != "vllm":
            chosen = field.is_required() or value != field.default
            # Where the declared default is none, a rule finds the value.
            yield f"{path}{name}", STACK_FILE if chosen else COMPUTED if field.default is None else DEFAULT
