"""Connectors of caches, groups of offloaded layers and kept prefixes, against what each needs to start.

Sources: vllm 0.32.0, v1/kv_offload/factory.py and cpu/spec.py, config/vllm.py (_post_init_kv_transfer_config),
distributed/kv_transfer/kv_connector/v1/multi_connector.py, distributed/ec_transfer/ec_connector/factory.py,
config/offload.py, v1/core/kv_cache_coordinator.py. Leaves names of KV connectors to bezel.planner.vllm.late_values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option, one_of
from bezel_catalog import closest
from bezel_catalog.option_values import as_int
from bezel_catalog.sizing.kv_cache import block_sizes
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

_KV, _EC, _SIZE = "kv-transfer-config", "ec-transfer-config", "kv-offloading-size"
_OFFLOADING, _MULTI = "OffloadingConnector", "MultiConnector"
_EC_CONNECTORS = ("ECCPUConnector", "ECExampleConnector", "ECMooncakeConnector")
_SPECS = ("CPUOffloadingSpec", "TieringOffloadingSpec")
_BYTES = "kv_connector_extra_config.cpu_bytes_to_use"


def check_transfers(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], *, tpu: bool
) -> Iterator[Problem]:
    """Refuse connectors without what they need, and offloaded groups and intervals that do not fit.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        environment: variables of the container.
        tpu: whether tpu-inference serves the model.
    """
    yield from _groups(values)
    yield from _encoders(values.get(_EC))
    if not tpu:  # the plugin has connectors and a layout of the cache of its own
        yield from _offloading(values, environment)
        yield from _interval(values, model)


def _groups(values: Mapping[str, Any]) -> Iterator[Problem]:
    size, number = integer(values, "offload-group-size", 0), integer(values, "offload-num-in-group", 1)
    if size is None or number is None or not (values.get("offload-backend") == "prefetch" or size > 0):
        return
    if number > size:
        consequence = f"{number} layers of each group are offloaded, and a group has {size}: {EXITS}"
        yield of_option("offload-group-size", size, consequence, f"set it to {number} or more, or remove it.")
    ahead = integer(values, "offload-prefetch-step", 1)
    if size > 0 and ahead is not None and ahead < 1:
        consequence = f"layers that are offloaded in groups are fetched at least one step ahead: {EXITS}"
        yield of_option("offload-prefetch-step", ahead, consequence, "write 1 or more, or remove it.")


def _encoders(transfer: object) -> Iterator[Problem]:
    if not isinstance(transfer, dict):
        return
    name = transfer.get("ec_connector")
    if name is None:
        repair = f"add ec_connector, one of {', '.join(_EC_CONNECTORS)}, or remove it."
        yield of_option(_EC, "", f"it names no connector of encoders: {EXITS}", repair)
    elif isinstance(name, str) and name not in _EC_CONNECTORS and not transfer.get("ec_connector_module_path"):
        repair = one_of(_EC_CONNECTORS, closest(name, _EC_CONNECTORS))
        yield of_option(f"{_EC}.ec_connector", name, f"vLLM has no such connector: {EXITS}", repair)


def _offloading(values: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Problem]:
    size = values.get(_SIZE)
    if size is not None:  # it sets the connector and its bytes, whatever kv-transfer-config says
        native = values.get("kv-offloading-backend", "native") == "native"
        simple = environment.get("VLLM_USE_SIMPLE_KV_OFFLOAD", "0") == "1"
        if size == 0 and native and not simple:
            yield of_option(_SIZE, size, f"a cache of 0 bytes cannot be offloaded to: {EXITS}", "remove it.")
        return
    yield from _connector(values.get(_KV))


def _connector(transfer: object) -> Iterator[Problem]:
    """What a connector needs in its own configuration, and those within a MultiConnector."""
    if not isinstance(transfer, dict) or transfer.get("kv_connector_module_path"):
        return
    extra = transfer.get("kv_connector_extra_config")
    extra = extra if isinstance(extra, dict) else {}
    if transfer.get("kv_connector") == _MULTI:
        yield from _connectors(extra.get("connectors"))
    if transfer.get("kv_connector") == "ExampleHiddenStatesConnector":
        consequence = f"it needs a group of the cache of its own, which Gemma 4 does not have: {EXITS}"
        yield of_option(f"{_KV}.kv_connector", transfer["kv_connector"], consequence, "choose another connector.")
    if transfer.get("kv_connector") != _OFFLOADING:
        return
    spec = extra.get("spec_name", _SPECS[0])
    if spec not in _SPECS:
        if not extra.get("spec_module_path"):
            repair = one_of(_SPECS, closest(str(spec), _SPECS))
            consequence = f"vLLM has no such kind of offloading: {EXITS}"
            yield of_option(f"{_KV}.kv_connector_extra_config.spec_name", spec, consequence, repair)
    elif not as_int(extra.get("cpu_bytes_to_use")):
        consequence = f"it keeps the cache in host memory, and {_BYTES} does not say how much: {EXITS}"
        repair = f"add {_BYTES}, or write {_SIZE} instead."
        yield of_option(f"{_KV}.kv_connector", _OFFLOADING, consequence, repair)


def _connectors(inner: object) -> Iterator[Problem]:
    """Connectors within a MultiConnector."""
    key = f"{_KV}.kv_connector"
    if not inner:
        consequence = "it is made of the connectors of its list, and has none: "
        consequence += "the cache would have another layout than the planned one." if inner == [] else EXITS
        repair = "write them as kv_connector_extra_config.connectors, or choose one connector."
        yield of_option(key, _MULTI, consequence, repair)
    for each in inner if isinstance(inner, list) else ():
        if isinstance(each, dict) and each.get("kv_connector") and not each.get("kv_role"):
            consequence = f"it is within {_MULTI} and has no kv_role: {EXITS}"
            yield of_option(key, each["kv_connector"], consequence, "add kv_role to it, e.g. kv_both.")
        yield from _connector(each)


def _interval(values: Mapping[str, Any], model: Model) -> Iterator[Problem]:
    name = "prefix-cache-retention-interval"
    interval = integer(values, name)
    if interval is None:
        return
    shards = max(1, integer(values, "tensor-parallel-size") or 1)
    sizes = block_sizes(model.architecture, integer(values, "block-size"), shards=shards)
    unit = math.lcm(*sizes)
    if interval < 0 or interval % unit:
        consequence = f"blocks of the cache of {model.id} end together every {unit} tokens only: {EXITS}"
        yield of_option(name, interval, consequence, f"write a multiple of {unit}, or remove it.")
