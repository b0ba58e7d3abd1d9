"""Connectors of caches and kept prefixes, each refused where vLLM 0.32.0 makes its connector or its cache manager.

Sources: v1/kv_offload/factory.py and cpu/spec.py, distributed/kv_transfer/kv_connector/v1/multi_connector.py,
distributed/ec_transfer/ec_connector/factory.py, v1/core/kv_cache_coordinator.py. Leaves names of KV connectors to
`start_values.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.configuration.failures import StartError, refusal
from bezel_simulated_vllm.configuration.kv_layout import BLOCK

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.kv_layout import KvLayout

_OF_ENCODERS = ("ECExampleConnector", "ECCPUConnector", "ECMooncakeConnector")
_SPECS = ("CPUOffloadingSpec", "TieringOffloadingSpec")


def check_encoder_connector(transfer: object) -> None:
    """Check the name of a connector of encoders.

    Raises:
        StartError: there is none, or it is none of the factory's.
    """
    if not isinstance(transfer, dict):
        return
    name = transfer.get("ec_connector")
    if name is None:
        raise refusal("no-encoder-connector")
    if name not in _OF_ENCODERS and not transfer.get("ec_connector_module_path"):
        raise refusal("encoder-connector", name=name)


def check_offloading_connector(options: argparse.Namespace, layout: KvLayout, environment: Mapping[str, str]) -> None:
    """Check that the KV connector has what its class needs; `--kv-offloading-size` sets the connector and its bytes.

    Args:
        options: the parsed command line.
        layout: of the cache.
        environment: the container's environment.

    Raises:
        StartError: a connector cannot be made.
    """
    size = options.kv_offloading_size
    if size is None:
        _check_connector(options.kv_transfer_config, layout.sliding_groups + layout.full_groups)
    elif (
        not size and options.kv_offloading_backend == "native" and environment.get("VLLM_USE_SIMPLE_KV_OFFLOAD") != "1"
    ):
        raise refusal("offloaded-bytes")


def _check_connector(transfer: object, groups: int) -> None:
    if not isinstance(transfer, dict) or transfer.get("kv_connector_module_path"):
        return
    extra: dict[str, Any] = transfer.get("kv_connector_extra_config") or {}
    if transfer.get("kv_connector") == "MultiConnector":
        for inner in extra.get("connectors") or ():
            _check_connector(inner, groups)
    if transfer.get("kv_connector") == "ExampleHiddenStatesConnector" and groups > 1:
        raise refusal("hidden-states-group", groups=groups)
    if transfer.get("kv_connector") != "OffloadingConnector":
        return
    spec = extra.get("spec_name", _SPECS[0])
    if spec not in _SPECS:
        if not extra.get("spec_module_path"):
            raise refusal("offloading-spec", name=spec)
    elif not (size := extra.get("cpu_bytes_to_use")):
        raise refusal("offloaded-bytes")
    else:
        try:
            int(size)
        except ValueError as error:
            raise StartError("ValueError", str(error), "engine") from None


def check_retention(options: argparse.Namespace, layout: KvLayout) -> None:
    """Check that prefixes are kept at tokens where blocks of every group of the cache end.

    Raises:
        StartError: they end elsewhere.
    """
    interval = options.prefix_cache_retention_interval
    if interval is None or not (layout.sliding_groups and layout.full_groups):
        return
    scale = (options.block_size or BLOCK) // BLOCK or 1
    block = math.lcm(layout.full_block * scale, layout.sliding_block * scale)
    if interval < 0 or interval % block:
        raise refusal("retention-interval", interval=interval, block=block)
