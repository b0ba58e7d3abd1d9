"""Options with which the server starts and is healthy, yet does not serve the planned model to chat users.

Owns failures that a health check cannot detect. Leaves the ways of loading weights to
bezel.planner.vllm.loading_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.loading import LOADINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from bezel.planner.base.settings import Settings
    from bezel_base.errors import Problem

# What the server does instead of serving chats and completions, by option and value.
_OTHERWISE = {
    ("runner", "pooling"): "it computes embeddings and scores",
    ("runner", "draft"): "it drafts for another model",
    ("convert", "embed"): "it computes embeddings",
    ("convert", "classify"): "it classifies",
    ("tokens-only", True): "it reads and returns token ids",
    ("skip-tokenizer-init", True): "it reads and returns token ids",
}
_POOLING = (("runner", "pooling"), ("convert", "embed"), ("convert", "classify"))
_DUMMY, _FORMAT = "dummy", "load-format"
_FORMATS = tuple(dict.fromkeys(name for loading in LOADINGS.values() for name in loading.load_formats))


def check_serving(
    values: Mapping[str, Any], settings: Settings, *, leased: bool = False, pools: bool = False
) -> Iterator[Problem]:
    """Refuse servers that are healthy and serve no chat, or noise, and file formats that the checkpoints lack.

    Args:
        values: of the options, by option name.
        settings: of the stack.
        leased: whether the weights are files of a leased machine.
        pools: whether the model is one of the project that vLLM pools with, so that its endpoint is known and checked.
    """
    healthy = "its health check still passes."
    for (name, value), instead in _OTHERWISE.items():
        if pools and (name, value) in _POOLING:
            continue
        if values.get(name) == value and isinstance(values[name], type(value)):
            consequence = f"{instead} and serves neither chats nor completions; {healthy}"
            yield of_option(name, value, consequence, "remove it.")
    chosen = values.get(_FORMAT)
    supported = [name for name in _FORMATS if not (leased and name.startswith("runai"))]
    if chosen in (None, *supported) or (settings.weights.loading and not leased):
        return  # loading_checks compares it with the chosen way of loading
    if chosen != _DUMMY:
        why = "a leased machine reads them as files of its own disk." if leased else "other formats cannot be planned."
        consequence = f"the checkpoints of the catalogue are plain safetensors files, and {why}"
        yield of_option(_FORMAT, chosen, consequence, f"remove it, or write one of {', '.join(supported)}.")
    elif not settings.smoke.random_weights:
        yield of_option(
            _FORMAT,
            chosen,
            f"the weights are random numbers and every response is noise; {healthy}",
            f"remove it, or accept it with `{setting('smoke')}: {{random_weights: true}}`.",
        )
