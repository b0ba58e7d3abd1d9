"""Reasons why an accelerator does not serve a model: no kernel for its weights, no cache for its layers.

Source for GPUs: `get_min_capability` of vLLM's methods of quantisation, recorded with its architectures. Source for
TPUs: tpu-inference 0.32.0, `platforms/tpu_platform.py` (supported_quantization), `runner/kv_cache_manager.py`
(get_kv_cache_spec: no cross-attention, no chunks) and `models/common/model_loader.py` (its own definitions), recorded
by tools/vllm/recorders/tpu_architectures.py.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.architectures.layers import ChunkedLayers, CrossLayers
from bezel_catalog.architectures.registry import known_quantisations, least_capability
from bezel_catalog.loader import DATA

if TYPE_CHECKING:
    from bezel_catalog.architectures.architecture import Architecture
    from bezel_catalog.architectures.weights import Weights

_FILE = DATA / "vllm" / "architectures" / "tpu-inference-0.32.0.json"
# Names of the same method in a configuration and in the list of tpu-inference.
_TPU_NAMES = {"awq": "auto_awq", "mxfp4": "gpt_oss_mxfp4", "modelopt-fp4": "modelopt_fp4"}
_UNPACKED_ON_TPU = ("bf16", "fp8", "w8a8", "mxfp4", "nvfp4")


@dataclass(frozen=True, slots=True)
class TpuSupport:
    """What a release of tpu-inference has: definitions for JAX, those it prefers of vLLM, and quantisations."""

    version: str
    native: frozenset[str]
    through_vllm: frozenset[str]
    quantisations: frozenset[str]


@functools.cache
def tpu_support() -> TpuSupport:
    """What the recorded release of tpu-inference has."""
    content = json.loads(_FILE.read_text(encoding="utf-8"))
    lists = (frozenset(content[key]) for key in ("native", "through_vllm", "quantisations"))
    return TpuSupport(content["version"], *lists)


def gpu_refusal(weights: Weights, compute_capability: str, *, release: str) -> str | None:
    """Why a GPU has no kernel for the weights, None where none is known to be absent.

    Args:
        weights: what the checkpoint weighs.
        compute_capability: of the GPU, e.g. "8.9".
        release: release of vLLM.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    if weights.method is None:
        return None
    try:
        least = least_capability(weights.method, release)
    except KeyError:
        return f"vLLM {release} does not load {weights.method}: it loads {', '.join(known_quantisations(release))}"
    if least is None or float(compute_capability) >= least:
        return None
    return f"{weights.method} needs compute capability {least}, the GPU has {compute_capability}"


def tpu_refusal(architecture: Architecture, weights: Weights | None = None) -> str | None:
    """Why tpu-inference does not serve a model, None where nothing is known against it."""
    support = tpu_support()
    if architecture.groups(CrossLayers):
        return f"tpu-inference {support.version} has no cache for what an encoder made"
    if architecture.groups(ChunkedLayers) and architecture.class_name not in support.native:
        return f"tpu-inference {support.version} has no cache for attention in chunks"
    if weights is None or weights.method is None:
        return None
    method = _TPU_NAMES.get(weights.method, weights.method)
    if method not in support.quantisations:
        return f"tpu-inference {support.version} has no kernel for {weights.method}"
    if weights.encoding not in _UNPACKED_ON_TPU:
        return f"tpu-inference {support.version} has no kernel for {weights.encoding} weights"
    return None
