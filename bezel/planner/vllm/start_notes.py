"""Relations on which vLLM's start fails and that no plan can judge: said in the plan where their options are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.vllm.start_relations import start_relations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog.vllm.start_relations import StartRelation


def unchecked_relations(arguments: Mapping[str, Argument], *, tpu: bool) -> tuple[str, ...]:
    """Return a sentence for each relation that is not checked and of which the stack file sets an option.

    Args:
        arguments: by option name.
        tpu: whether tpu-inference serves the model.
    """
    chosen = {name: argument.value for name, argument in arguments.items() if argument.from_stack}
    named = {
        row.not_checked: [name for name in row.options if name in chosen and _concerns(row, chosen[name])]
        for row in start_relations().values()
        if row.not_checked and (tpu or row.package == "vllm")
    }
    return tuple(f"not checked: {reason} ({', '.join(names)})" for reason, names in named.items() if names)


def _concerns(row: StartRelation, value: object) -> bool:
    """Whether a value of an option is one of those that the relation is about."""
    if value in (None, False, "auto"):
        return False
    values = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return not row.values or any(str(word) in row.values for word in values)
