"""Options of the weight loaders, as each checks them when it is made, in the words of vLLM 0.32.0.

Source: vllm 0.32.0, model_executor/model_loader/default_loader.py, runai_streamer_loader.py, sharded_state_loader.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse

_OF_FILES = {"auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "mistral", "npcache", "pt"}


def check_loader(options: argparse.Namespace) -> None:
    """Check the loader's options; the format is known.

    Raises:
        StartError: the loader cannot be made with them.
    """
    config, name = options.model_loader_extra_config, str(options.load_format).lower()
    if not isinstance(config, dict):
        return
    if name in _OF_FILES:
        _check_files(config, name, options.safetensors_load_strategy)
    elif name == "runai_streamer":
        _check_streamer(config)
    elif name in {"sharded_state", "runai_streamer_sharded"} and (
        unknown := [key for key in config if key != "pattern"]
    ):
        raise refusal("loader-keys", name=name, keys=f"dict_keys({unknown})")


def _check_files(config: dict[str, Any], name: str, strategy: str | None) -> None:
    unknown = set(config) - {"enable_multithread_load", "num_threads", "enable_weights_track"}
    if unknown:
        raise refusal("loader-keys", name=name, keys=unknown)
    several, threads = config.get("enable_multithread_load", False), config.get("num_threads")
    if not isinstance(several, bool):
        raise refusal("loader-threads-switch", kind=type(several).__name__)
    if threads is not None and not (isinstance(threads, int) and threads > 0):
        raise refusal("loader-threads", threads=repr(threads))
    if several and strategy not in (None, "lazy"):
        raise refusal("loader-strategy", strategy=strategy)


def _check_streamer(config: dict[str, Any]) -> None:
    if unknown := set(config) - {"distributed", "concurrency", "memory_limit"}:
        raise refusal("streamer-keys", keys=unknown)
    if "distributed" in config and not isinstance(config["distributed"], bool):
        raise refusal("streamer-distributed", value=repr(config["distributed"]))
    for key, least, text in (("concurrency", 1, "a positive integer"), ("memory_limit", -1, "an integer >= -1")):
        value = config.get(key, least)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise refusal("streamer-number", key=key, text=text, value=repr(value))
