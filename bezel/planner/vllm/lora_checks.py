"""Options of LoRA adapters: their names, and the tokens of a step beside drafted ones.

Owns what vLLM compares among the options. Leaves the adapters' memory to bezel.planner.sizing.adapters and their
files to the bucket. Sources: vLLM 0.32.0's engine/arg_utils.py, entrypoints/openai/models/serving.py
and entrypoints/cli/serve.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel.planner.base.option_values import as_int, human_int
from bezel.planner.base.problems import of_option
from bezel.planner.vllm.speculation_checks import drafting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.errors import Problem

_EXITS = "vLLM exits while it starts."
_UPDATING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
_ON = ("1", "true")


def check_lora(values: Mapping[str, Any], model: str, environment: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse adapters that vLLM does not load, and their options beside others.

    Args:
        values: of the options, by option name.
        model: name of the model where none is set.
        environment: of the container.
    """
    names = adapter_names(values.get("lora-modules"))
    if names and values.get("enable-lora") is not True:
        consequence = f"adapters are loaded at start, and enable-lora is not set; {_EXITS}"
        yield of_option("lora-modules", ", ".join(names), consequence, "add enable-lora: true.")
    served = values.get("served-model-name", model)
    taken = list(map(str, served if isinstance(served, list) else [served]))
    for name in names:
        if name in taken:
            consequence = f"the model and another adapter may not have an adapter's name; {_EXITS}"
            yield of_option("lora-modules", name, consequence, "give it another name.")
        taken.append(name)
    if values.get("enable-lora") is True:
        yield from _step(values)
    servers = as_int(values.get("api-server-count")) or 1
    if servers > 1 and environment.get(_UPDATING, "").strip().lower() in _ON:
        consequence = f"{_UPDATING} loads adapters in one API server only; {_EXITS}"
        yield of_option("api-server-count", servers, consequence, "remove one of them.")


def adapter_names(modules: object) -> list[str]:
    """Return the names of the adapters of `lora-modules`, in either spelling.

    Args:
        modules: the option's value: NAME=PATH, or a map as JSON.
    """
    names = []
    for word in modules if isinstance(modules, list) else [modules]:
        row = word
        if isinstance(word, str):
            if "=" in word and "," not in word:
                names.append(word.partition("=")[0])
                continue
            try:
                row = json.loads(word)
            except json.JSONDecodeError:
                continue
        if isinstance(row, dict) and isinstance(row.get("name"), str):
            names.append(row["name"])
    return names


def _step(values: Mapping[str, Any]) -> Iterator[Problem]:
    method, draft, tokens = drafting(values)
    drafted, seqs = as_int(tokens), as_int(values.get("max-num-seqs"))
    batched = human_int(values.get("max-num-batched-tokens"))
    if (method is None and draft is None) or not (drafted and seqs and batched):
        return
    needed = seqs * (drafted + 1)
    if batched < needed:
        consequence = f"with adapters, {seqs} sequences of {drafted} drafted tokens each must fit one step; {_EXITS}"
        yield of_option("max-num-batched-tokens", batched, consequence, f"set it to {needed} or more.")
