"""Values that vLLM's parser accepts and its start refuses, each by itself or with the cache's block size.

Owns limits of media, the unit of prefix matches, names of KV connectors and characters of arguments. Sources: vLLM
0.32.0's config/multimodal.py, v1/core/kv_cache_utils.py and distributed/kv_transfer/kv_connector/factory.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option, one_of, setting
from bezel_base.errors import NOT_SHOWN
from bezel_catalog import closest
from bezel_catalog.option_values import as_int
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

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
# Packages of connectors: in vLLM's image by the recipe of its releases, and in none of its images.
_BUILT_IN = {
    **dict.fromkeys(("NixlConnector", "NixlPullConnector", "NixlPushConnector"), "nixl"),
    **dict.fromkeys(("MooncakeConnector", "MooncakeStoreConnector"), "mooncake-transfer-engine"),
    **dict.fromkeys(("LMCacheConnectorV1", "LMCacheMPConnector"), "lmcache"),
}
_NOT_IN_IMAGE = {"FlexKVConnectorV1": "flexkv", "HF3FSKVConnector": "hf3fs_fuse", "MoRIIOConnector": "mori"}
_MULTI = "MultiConnector"
# Without vLLM's SupportsHMA: with them all layers of Gemma 4 share one group of the cache.
_ONE_GROUP = ("ExampleConnector", "FlexKVConnectorV1", "HF3FSKVConnector", "LMCacheConnectorV1", "LMCacheMPConnector")
_HYBRID = ("OffloadingConnector", "SimpleCPUOffloadConnector", "NixlConnector", "MooncakeStoreConnector")


def check_values(values: Mapping[str, Any], *, on_tpu: bool, own_image: bool) -> Iterator[Problem]:
    """Refuse values that end the start.

    Args:
        values: of the options, by option name.
        on_tpu: whether tpu-inference chooses the cache's block size.
        own_image: whether the image is not vLLM's own, and may hold further packages.
    """
    yield from _characters(values)
    yield from _media(values.get("limit-mm-per-prompt"))
    if not on_tpu:  # the plugin has connectors of its own (bezel.planner.vllm.device.device_checks)
        yield from _connector(values.get("kv-transfer-config"), own_image=own_image)
        yield from _prefix_unit(values)


def _characters(values: Mapping[str, Any]) -> Iterator[Problem]:
    names = values.get("served-model-name")
    for name in names if isinstance(names, list) else [names]:
        if name == "":
            yield of_option(
                "served-model-name", '""', f"vLLM takes no empty name: {EXITS}", "write a name, or remove it."
            )
        elif isinstance(name, str) and not name.isprintable():
            consequence = (
                "a process cannot get a NUL as an argument."
                if "\0" in name
                else "it has line breaks or invisible characters, which every caller would have to write too."
            )
            yield of_option("served-model-name", name, consequence, "write letters, digits and -._/ in one line.")
    for option, value in values.items():
        if option != "served-model-name" and isinstance(value, str) and "\0" in value:
            yield of_option(option, NOT_SHOWN, "a process cannot get a NUL as an argument.", "remove the character.")


def _media(limits: object) -> Iterator[Problem]:
    for medium, limit in limits.items() if isinstance(limits, dict) else ():
        sizes = limit if isinstance(limit, dict) else {"count": limit}
        # Of a medium that vLLM does not know it reads the count and ignores the rest.
        keys = ("count", *_SIZES.get(str(medium), tuple(map(str, sizes))))
        for key, value in sizes.items():
            name = f"limit-mm-per-prompt.{medium}" + (f".{key}" if isinstance(limit, dict) else "")
            least = 0 if key == "count" else 1
            number = int(value) if isinstance(value, bool) else as_int(value)
            if key not in keys:
                repair = one_of(keys, closest(str(key), keys))
                yield of_option(name, value, f"vLLM does not know this key: {EXITS}", repair)
            elif number is None or (number < least and (key == "count" or medium in _SIZES)):
                expected = f"a whole number of at least {least}"
                yield of_option(name, value, f"vLLM expects {expected}: {EXITS}", f"write {expected}.")


def _connectors(transfer: object) -> Iterator[str]:
    """Names of a KV connector and of those within it, but for those of modules of one's own."""
    if not isinstance(transfer, dict) or transfer.get("kv_connector_module_path"):
        return
    yield str(transfer.get("kv_connector") or "")
    extra = transfer.get("kv_connector_extra_config")
    inner = extra.get("connectors") if isinstance(extra, dict) and transfer.get("kv_connector") == _MULTI else None
    for each in inner if isinstance(inner, list) else ():
        yield from _connectors(each)


def _connector(transfer: object, *, own_image: bool) -> Iterator[Problem]:
    key = "kv-transfer-config.kv_connector"
    for name in filter(None, _connectors(transfer)):
        if name not in CONNECTORS:
            repair = one_of(CONNECTORS, closest(name, CONNECTORS))
            yield of_option(key, name, f"vLLM has no such connector: {EXITS}", repair)
        elif name in _NOT_IN_IMAGE and not own_image:
            package, repair = (
                _NOT_IN_IMAGE[name],
                f"choose another connector, or set `{setting('image')}` to one with it.",
            )
            yield of_option(key, name, f"vLLM's image lacks the package {package}: {EXITS}", repair)
        elif name in _ONE_GROUP:
            consequence = (
                "vLLM turns the hybrid cache manager off for it: the cache would have another size than the plan "
                "computes, so the memory fit would not be known."
            )
            yield of_option(key, name, consequence, f"choose one of {', '.join(_HYBRID)}.")


def unchecked_packages(transfer: object, *, own_image: bool) -> Iterator[str]:
    """Say which packages of a KV connector are not known to be in the image."""
    for name in filter(None, _connectors(transfer)):
        if package := _NOT_IN_IMAGE.get(name) if own_image else _BUILT_IN.get(name):
            recipe = "" if own_image else ", as the recipe of vLLM's releases has it (requirements/kv_connectors.txt)"
            yield f"kv_connector {name} needs the package {package}: not checked: whether the image has it{recipe}."


def _prefix_unit(values: Mapping[str, Any]) -> Iterator[Problem]:
    unit, block = integer(values, "prefix-match-unit"), integer(values, "block-size") or _BLOCK_TOKENS
    hashed = values.get("enable-prefix-caching") is not False or values.get("kv-transfer-config")
    if unit and unit > 0 and hashed and block % unit:
        consequence = f"blocks of the cache have {block} tokens, which it does not divide: {EXITS}"
        yield of_option("prefix-match-unit", unit, consequence, f"write a divisor of {block}, or remove it.")
