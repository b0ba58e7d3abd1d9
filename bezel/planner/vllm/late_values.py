"""Values that vLLM's parser accepts and its start refuses, each by itself or with the cache's block size.

Owns limits of media, the unit of prefix matches, names of KV connectors and characters of arguments. Sources: vLLM
0.32.0's config/multimodal.py, v1/core/kv_cache_utils.py and distributed/kv_transfer/kv_connector/factory.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.catalog import closest
from bezel.errors import NOT_SHOWN
from bezel.planner.base.option_values import as_int
from bezel.planner.base.problems import of_option, one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.errors import Problem

_EXITS = "vLLM exits while it starts."
_BLOCK_TOKENS = 16  # of Gemma 4's attention on GPUs, where block-size is not set
_SIZES = {"image": ("width", "height"), "video": ("num_frames", "width", "height"), "audio": ("length",)}
CONNECTORS = (
    "DecodeBenchConnector",
    "ExampleConnector",
    "ExampleHiddenStatesConnector",
    "FlexKVConnectorV1",
    "HF3FSKVConnector",
    "HiSparseConnector",
    "LMCacheConnectorV1",
    "LMCacheMPConnector",
    "MoRIIOConnector",
    "MooncakeConnector",
    "MooncakeStoreConnector",
    "MultiConnector",
    "NixlConnector",
    "NixlPullConnector",
    "NixlPushConnector",
    "OffloadingConnector",
    "SimpleCPUOffloadConnector",
)


def check_values(values: Mapping[str, Any], *, on_tpu: bool) -> Iterator[Problem]:
    """Refuse values that end the start.

    Args:
        values: of the options, by option name.
        on_tpu: whether tpu-inference chooses the cache's block size.
    """
    yield from _characters(values)
    yield from _media(values.get("limit-mm-per-prompt"))
    if not on_tpu:  # the plugin has connectors of its own (bezel.planner.vllm.device_checks)
        yield from _connector(values.get("kv-transfer-config"))
        yield from _prefix_unit(values)


def _characters(values: Mapping[str, Any]) -> Iterator[Problem]:
    names = values.get("served-model-name")
    for name in names if isinstance(names, list) else [names]:
        if isinstance(name, str) and not name.isprintable():
            consequence = "no process gets a NUL as an argument, and no caller writes a name with line breaks."
            yield of_option("served-model-name", name, consequence, "write letters, digits and -._/ in one line.")
    for option, value in values.items():
        if option != "served-model-name" and isinstance(value, str) and "\0" in value:
            yield of_option(option, NOT_SHOWN, "a process cannot get a NUL as an argument.", "remove the character.")


def _media(limits: object) -> Iterator[Problem]:
    for medium, limit in limits.items() if isinstance(limits, dict) else ():
        sizes = limit if isinstance(limit, dict) else {"count": limit}
        known = ("count", *_SIZES.get(str(medium), ()))
        for key, value in sizes.items():
            name = f"limit-mm-per-prompt.{medium}" + (f".{key}" if isinstance(limit, dict) else "")
            least = 0 if key == "count" else 1
            number = int(value) if isinstance(value, bool) else as_int(value)
            if key not in known:
                repair = one_of(known, closest(str(key), known))
                yield of_option(name, value, f"vLLM does not know this key: {_EXITS}", repair)
            elif (number is None or number < least) and not (value is None and key != "count"):
                expected = f"a whole number of at least {least}"
                yield of_option(name, value, f"vLLM expects {expected}: {_EXITS}", f"write {expected}.")


def _connector(transfer: object) -> Iterator[Problem]:
    if not isinstance(transfer, dict) or transfer.get("kv_connector_module_path"):
        return
    name = transfer.get("kv_connector")
    if name and name not in CONNECTORS:
        repair = one_of(CONNECTORS, closest(str(name), CONNECTORS))
        yield of_option("kv-transfer-config.kv_connector", name, f"vLLM has no such connector: {_EXITS}", repair)


def _prefix_unit(values: Mapping[str, Any]) -> Iterator[Problem]:
    unit, block = as_int(values.get("prefix-match-unit")), as_int(values.get("block-size")) or _BLOCK_TOKENS
    hashed = values.get("enable-prefix-caching") is not False or values.get("kv-transfer-config")
    if unit and unit > 0 and hashed and block % unit:
        consequence = f"blocks of the cache have {block} tokens, which it does not divide: {_EXITS}"
        yield of_option("prefix-match-unit", unit, consequence, f"write a divisor of {block}, or remove it.")
