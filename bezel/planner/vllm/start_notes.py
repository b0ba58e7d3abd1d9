"""Relations on which vLLM's start fails and that no plan can judge: said in the plan where their options are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog.vllm.start_relations import start_relations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.vllm.arguments import Argument


def unchecked_relations(arguments: Mapping[str, Argument], *, tpu: bool) -> tuple[str, ...]:
    """Return a sentence for each relation that is not checked and of which the stack file sets an option.

    Args:
        arguments: by option name.
        tpu: whether tpu-inference serves the model.
    """
    chosen = {
        name for name, argument in arguments.items() if argument.from_stack and argument.value not in (None, False)
    }
    return tuple(
        f"not checked: {row.not_checked} ({', '.join(name for name in row.options if name in chosen)})"
        for row in start_relations().values()
        if row.not_checked and chosen & set(row.options) and (tpu or row.package == "vllm")
    )
