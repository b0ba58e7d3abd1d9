"""Host memory that vLLM's options take beside its processes and the loading of weights.

Owns the amount of each option. Facts were read in the source of vLLM 0.32.0, with its issues 53042 and 56410 and its
pull request 48436 for what users measured. Leaves loading to bezel_catalog.sizing.memory and the options' values to
bezel.planner.vllm.host_options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.sizing.adapters import Adapters, adapter_bytes

if TYPE_CHECKING:
    from bezel_catalog import Model

# Pinned memory is allocated in powers of two, one for each tensor: users measured 1.15 to 1.9 of the offloaded weights.
PINNED_FACTOR = 1.9
# Assumed, not measured: Python with PyTorch and the processor of images.
API_SERVER_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class LayerGroups:
    """Layers kept in the host's memory: the last `offloaded` of each `size`, fetched `ahead` steps before their use."""

    size: int
    offloaded: int
    ahead: int

    def count(self, layers: int) -> int:
        """Number of layers in the host's memory."""
        return sum(1 for layer in range(layers) if layer % self.size >= self.size - self.offloaded)


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What the options ask of the host; bytes.

    `kv_bytes` are those of the offloaded KV cache of all GPUs, `kv_option` the option that asks for them.
    `cached_adapters` are LoRA adapters, `api_servers` processes. `not_checked` names what takes an unknown amount.
    """

    kv_bytes: int = 0
    kv_option: str = "kv-offloading-size"
    image_cache_bytes: int = 0
    api_servers: int = 1
    cached_adapters: int = 0
    adapter_rank: int = 0
    sleeps: bool = False
    groups: LayerGroups | None = None
    not_checked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPart:
    """Host memory of one option: bytes that it asks for, and that the host needs for it."""

    option: str
    asked_bytes: int
    needed_bytes: int
    loading: bool = False


def layer_bytes(model: Model, shards: int) -> int:
    """Average weights of one layer on one GPU; the embeddings are in no layer."""
    shape = model.architecture
    return max(0, model.weight_bytes - 2 * shape.embedding_parameters) // max(1, shape.layers) // shards


def host_parts(model: Model, options: HostOptions, *, offloaded_bytes: int, shards: int) -> tuple[HostPart, ...]:
    """The host memory of each option that takes any.

    Args:
        model: the checkpoint.
        options: what the stack asks for.
        offloaded_bytes: weights of each GPU that `cpu-offload-gb` keeps in the host's memory.
        shards: GPUs that share the model.
    """
    shape, groups = model.architecture, options.groups
    layers = groups.count(shape.layers) * layer_bytes(model, shards) if groups else 0
    adapters = adapter_bytes(shape, Adapters(options.cached_adapters, options.adapter_rank))
    servers = API_SERVER_BYTES * (options.api_servers - 1)
    parts = (
        _pinned_part("cpu-offload-gb", offloaded_bytes * shards),
        _pinned_part("offload-group-size", layers * shards),
        HostPart(options.kv_option, options.kv_bytes, power_of_two(options.kv_bytes)),
        HostPart("mm-processor-cache-gb", options.image_cache_bytes, options.image_cache_bytes),
        HostPart("max-cpu-loras", adapters, adapters),
        HostPart("api-server-count", servers, servers),
        HostPart("enable-sleep-mode", model.weight_bytes, model.weight_bytes if options.sleeps else 0),
    )
    return tuple(part for part in parts if part.needed_bytes > 0)


def _pinned_part(option: str, asked: int) -> HostPart:
    return HostPart(option, asked, int(asked * PINNED_FACTOR), loading=True)


def power_of_two(number: int) -> int:
    """The next power of two: at most this much was measured for an offloaded cache; 0.32.0 itself maps it exactly."""
    return 1 << (number - 1).bit_length() if number > 0 else 0
