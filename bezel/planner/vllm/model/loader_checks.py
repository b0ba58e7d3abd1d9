"""Keys and values of `model-loader-extra-config` against the loader of the load format, and its threads.

Owns what vLLM 0.32.0's loaders refuse when they are made (model_executor/model_loader/). Leaves the format itself, and
the streamer's keys where it is chosen by `weights.loading`, to bezel.planner.vllm.loading_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option
from bezel.planner.vllm.loading import STREAMER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

_EXTRA, _EXITS = "model-loader-extra-config", "vLLM exits while it loads the weights."
_FILES = ("auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "mistral", "npcache", "pt")
_KEYS = {
    **dict.fromkeys(_FILES, ("enable_multithread_load", "num_threads", "enable_weights_track")),
    "runai_streamer": ("distributed", "concurrency", "memory_limit"),
    "runai_streamer_sharded": ("pattern",),
    "sharded_state": ("pattern",),
}
_SWITCHES = ("enable_multithread_load", "distributed")
_LEAST = {"num_threads": 1, "concurrency": 1, "memory_limit": -1}


def check_loader(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse keys and values that the loader does not take.

    Args:
        values: of the options, by option name.
    """
    extra, name = values.get(_EXTRA), str(values.get("load-format") or "auto").lower()
    if not isinstance(extra, dict) or name not in _KEYS or extra == STREAMER.options[_EXTRA]:
        return  # the streamer's own, beside another format: bezel.planner.vllm.loading_checks names the contradiction
    keys = _KEYS[name]
    for key, value in extra.items():
        if key not in keys:
            consequence = f"the loader of load-format: {name} does not know this key; {_EXITS}"
            yield of_option(f"{_EXTRA}.{key}", value, consequence, f"remove it; it knows {', '.join(keys)}.")
        elif key in _SWITCHES and not isinstance(value, bool):
            yield of_option(f"{_EXTRA}.{key}", value, f"it is true or false; {_EXITS}", "write true or false.")
        elif key in _LEAST and not _is_whole(value, _LEAST[key]):
            expected = f"a whole number of at least {_LEAST[key]}"
            yield of_option(f"{_EXTRA}.{key}", value, f"it is {expected}; {_EXITS}", f"write {expected}.")
    strategy = values.get("safetensors-load-strategy")
    if name in _FILES and extra.get("enable_multithread_load") is True and strategy not in (None, "lazy"):
        consequence = f"several threads read lazily only, and safetensors-load-strategy is {strategy}; {_EXITS}"
        repair = "remove it, or write safetensors-load-strategy: lazy."
        yield of_option(f"{_EXTRA}.enable_multithread_load", True, consequence, repair)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
