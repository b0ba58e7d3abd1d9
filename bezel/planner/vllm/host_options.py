"""Options of vLLM that take host memory, read for the memory fit.

Owns which options these are, by vLLM 0.32.0: weights and KV cache moved out of the GPU, caches of processed images and
of adapters, further API processes, sleep. Leaves their amounts to bezel_catalog.sizing.host_memory and the loading of
weights to bezel.planner.vllm.engine_args.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option
from bezel_catalog.option_values import as_int
from bezel_catalog.quantities import GIB
from bezel_catalog.sizing.adapters import read_adapters
from bezel_catalog.sizing.host_memory import HostOptions, LayerGroups
from bezel_catalog.vllm.typed_values import integer, real_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

_SIMPLE_CACHE_BYTES = 8 * GIB  # default of SimpleCPUOffloadConnector
# Connectors that keep no cache in this server's own memory.
_WITHOUT_CACHE = ("ExampleConnector", "ExampleHiddenStatesConnector", "DecodeBenchConnector")


def read_host_options(values: Mapping[str, Any], devices: int = 1) -> HostOptions:
    """What the options ask of the host; values that vLLM refuses count as nothing.

    Args:
        values: by option name.
        devices: GPUs that share the model.
    """
    servers = max(1, integer(values, "api-server-count", 1) or 1)
    adapters = read_adapters(values)
    # Filled by the adapters that are loaded; without the option, as many as the GPU holds, which are few.
    kept = max(0, integer(values, "max-cpu-loras", 0) or 0) if adapters.count else 0
    bytes_of_option = _gib(values, "kv-offloading-size") if _native(values) else 0
    connectors = list(_connectors(values.get("kv-transfer-config")))
    sizes = [_connector_bytes(name, extra, devices) for name, extra in connectors]
    unknown = [
        f"host memory of kv_connector {name}" for (name, _), size in zip(connectors, sizes, strict=True) if size is None
    ]
    encoder = values.get("ec-transfer-config")
    if isinstance(encoder, dict) and encoder.get("ec_connector"):
        unknown.append(f"host memory of ec_connector {encoder['ec_connector']}")
    return HostOptions(
        kv_bytes=bytes_of_option or sum(size or 0 for size in sizes),
        kv_option="kv-offloading-size" if bytes_of_option else "kv-transfer-config",
        image_cache_bytes=_image_cache(values, servers),
        api_servers=servers,
        cached_adapters=kept,
        adapter_rank=adapters.rank,
        sleeps=values.get("enable-sleep-mode") is True,
        groups=_groups(values),
        not_checked=tuple(unknown),
    )


def offloaded_gib(values: Mapping[str, Any]) -> float:
    """Weights of each GPU that vLLM keeps in the host's memory by `cpu-offload-gb`, which groups of layers overrule."""
    if _groups(values) or values.get("offload-backend") == "prefetch":
        return 0
    return real_number(values, "cpu-offload-gb") or 0


def check_host_options(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse options whose host memory cannot be planned."""
    if _groups(values) and values.get("offload-params"):
        consequence = "their share of a layer is not known, so the memory fit cannot be planned."
        yield of_option("offload-params", values["offload-params"], consequence, "remove it.")
    if _gib(values, "kv-offloading-size") and not _native(values):
        yield of_option(
            "kv-offloading-backend",
            values["kv-offloading-backend"],
            "the cache then belongs to a server of its own beside vLLM, which nothing starts: vLLM cannot connect.",
            "remove it: vLLM's own backend needs no other server.",
        )


def _native(values: Mapping[str, Any]) -> bool:
    return bool(values.get("kv-offloading-backend", "native") == "native")


def _gib(values: Mapping[str, Any], name: str) -> int:
    """Bytes of an option in GiB."""
    return max(0, int((real_number(values, name) or 0) * GIB))


def _image_cache(values: Mapping[str, Any], servers: int) -> int:
    """Cache of processed images where the stack sets it; the default is part of the measured need of the processes.

    vLLM keeps a copy in each API process and one in the engine, or one in shared memory for both.
    """
    if "mm-processor-cache-gb" not in values:
        return 0
    copies = 1 if values.get("mm-processor-cache-type") == "shm" else servers + 1
    return _gib(values, "mm-processor-cache-gb") * copies


def _groups(values: Mapping[str, Any]) -> LayerGroups | None:
    size = integer(values, "offload-group-size") or 0
    if size <= 0 or values.get("offload-backend", "auto") not in ("auto", "prefetch"):
        return None
    offloaded, ahead = (integer(values, name, 1) for name in ("offload-num-in-group", "offload-prefetch-step"))
    return LayerGroups(size, min(size, max(1, offloaded or 1)), max(1, ahead or 1))


def _connectors(config: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names of the connectors of the KV cache with their own settings; those inside of MultiConnector too."""
    if not isinstance(config, dict) or not isinstance(name := config.get("kv_connector"), str):
        return
    extra = config.get("kv_connector_extra_config")
    extra = extra if isinstance(extra, dict) else {}
    if name != "MultiConnector":
        yield name, extra
        return
    inner = extra.get("connectors")
    for part in inner if isinstance(inner, list) else []:
        # One level: vLLM's own connectors are not nested deeper.
        if isinstance(part, dict) and part.get("kv_connector") != name:
            yield from _connectors(part)


def _connector_bytes(name: str, extra: Mapping[str, Any], devices: int) -> int | None:
    """Bytes of a connector's cache; None where they are not known."""
    if name == "SimpleCPUOffloadConnector":
        if (rank := as_int(extra.get("cpu_bytes_to_use_per_rank"))) is not None:
            return max(0, rank) * devices
        return max(0, as_int(extra.get("cpu_bytes_to_use", _SIMPLE_CACHE_BYTES)) or 0)
    if name == "OffloadingConnector":
        return max(0, as_int(extra.get("cpu_bytes_to_use")) or 0)
    return 0 if name in _WITHOUT_CACHE else None
