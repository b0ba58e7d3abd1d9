"""Origin of each planned value: the stack file, the catalogue's defaults, or a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from bezel.planner.base.settings import is_computed
from bezel.planner.vllm.loading import LOADINGS
from bezel.planner.vllm.model.named_adapters import ADAPTER_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.base.settings import Settings
    from bezel.planner.vllm.arguments import Argument

STACK_FILE = "stack file"
DEFAULT = "catalogue default"
COMPUTED = "computed"
# Options that follow from the way of loading weights, chosen or computed by a rule.
_OF_LOADING = frozenset(name for loading in LOADINGS.values() for name in loading.options)


def origins(settings: Settings, arguments: Mapping[str, Argument], environment: Mapping[str, str]) -> Mapping[str, str]:
    """Origins by path of a setting (`scaling.max_instances`), an argument (`vllm.max-model-len`) or a variable.

    A value in a section of the stack file has that origin, even where it equals the default. For a top-level key the
    two cannot be distinguished: the engine passes the defaults of Pulumi.yaml as if the stack file had set them, so a
    value that equals its declared default counts as default.

    Args:
        settings: of the stack file.
        arguments: of the server.
        environment: its variables; those that the stack file does not set come from rules of the plan.
    """
    sources = dict(_settings(settings, ""))
    for name in environment:
        sources[f"variables.{name}"] = STACK_FILE if name in settings.variables else COMPUTED
    for name in settings.secrets:
        sources[f"secrets.{name}"] = STACK_FILE
    computed = _OF_LOADING | (ADAPTER_OPTIONS if settings.adapters else frozenset())
    for argument in arguments.values():
        default = COMPUTED if argument.name in computed else DEFAULT
        sources[f"vllm.{argument.name}"] = STACK_FILE if argument.from_stack else default
    return sources


def _settings(section: BaseModel, path: str) -> Iterator[tuple[str, str]]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _settings(value, f"{path}{name}.")
        elif path or name != "vllm":
            is_given = name in section.model_fields_set and value is not None
            chosen = is_given if path else field.is_required() or value != field.default
            yield f"{path}{name}", STACK_FILE if chosen else COMPUTED if is_computed(field) else DEFAULT
