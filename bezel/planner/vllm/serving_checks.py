"""Options with which the server starts and is healthy, yet does not serve the planned model to chat users.

Owns failures that a health check cannot detect. Leaves the ways of loading weights to
bezel.planner.vllm.loading_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.loading import LOADINGS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bezel.errors import Problem
    from bezel.planner.base.settings import Settings

# What the server does instead of serving chats and completions, by option and value.
_OTHERWISE = {
    ("runner", "pooling"): "it makes embeddings and scores",
    ("runner", "draft"): "it drafts for another model",
    ("convert", "embed"): "it makes embeddings",
    ("convert", "classify"): "it makes classes",
    ("tokens-only", True): "it takes and gives numbers of tokens",
    ("skip-tokenizer-init", True): "it takes and gives numbers of tokens",
}
_DUMMY, _FORMAT = "dummy", "load-format"
_FORMATS = tuple(dict.fromkeys(name for loading in LOADINGS.values() for name in loading.load_formats))


def check_serving(values: Mapping[str, Any], settings: Settings, *, leased: bool = False) -> list[Problem]:
    """Refuse servers that are healthy and serve no chat, or noise, and file formats that the checkpoints lack.

    Args:
        values: of the options, by option name.
        settings: of the stack.
        leased: whether the weights are files of a leased machine.
    """
    problems = [
        of_option(
            name,
            value,
            f"{instead} and answers no chat and no completion; its health check passes all the same.",
            "remove it.",
        )
        for (name, value), instead in _OTHERWISE.items()
        if values.get(name) == value and isinstance(values[name], type(value))
    ]
    return problems + _format(values, settings, leased=leased)


def _format(values: Mapping[str, Any], settings: Settings, *, leased: bool) -> list[Problem]:
    chosen = values.get(_FORMAT)
    if chosen is None or (settings.weights.loading and not leased):
        return []  # loading_checks compares it with the chosen way of loading
    if chosen == _DUMMY:
        if settings.smoke.random_weights:
            return []
        return [
            of_option(
                _FORMAT,
                chosen,
                "the weights are random numbers and every answer is noise; its health check passes all the same.",
                f"remove it, or say that this is wanted: `{setting('smoke')}: {{random_weights: true}}`.",
            )
        ]
    taken = [name for name in _FORMATS if not (leased and name.startswith("runai"))]
    if chosen in taken:
        return []
    why = "a leased machine reads them as files of its own disk." if leased else "what it needs cannot be planned."
    return [
        of_option(
            _FORMAT,
            chosen,
            f"the checkpoints of the catalogue are plain safetensors files, and {why}",
            f"remove it, or write one of {', '.join(taken)}.",
        )
    ]
