"""Ways to divide a model between devices, against its heads and experts.

Sources: vllm 0.32.0, config/parallel.py and config/model.py (verify_with_parallel_config).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel_catalog.option_values import as_int
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

_TENSOR, _DECODE, _PREFILL = "tensor-parallel-size", "decode-context-parallel-size", "prefill-context-parallel-size"
_OF_DEEPSEEK = "flashinfer_moe_ep_mega_deep_gemm"
_EXCHANGING = (_OF_DEEPSEEK, "flashinfer_moe_ep_cutedsl")


def check_parallel(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], *, tpu: bool
) -> Iterator[Problem]:
    """Refuse parallel sizes and options for several devices that do not fit the model.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        environment: variables of the container.
        tpu: whether tpu-inference serves the model.
    """
    sizes = {name: max(1, integer(values, name) or 1) for name in (_TENSOR, _PREFILL, "data-parallel-size", _DECODE)}
    heads, tensor = model.architecture.attention_heads, sizes[_TENSOR]
    if heads % tensor:
        consequence = f"{model.id} has {heads} attention heads, which it does not divide: {EXITS}"
        yield of_option(_TENSOR, tensor, consequence, f"write a divisor of {heads}.")
    yield from _experts(values, sizes, tpu=tpu)
    yield from _kernels(values, model)
    if values.get("enable-hc-sp") is True and tensor > 1:
        yield of_option("enable-hc-sp", True, f"{model.id} has no hyper-connections: {EXITS}", "remove it.")
    kv_heads = max(model.architecture.sliding_kv_heads, 1)
    if sizes[_DECODE] > 1 and tensor <= kv_heads:
        consequence = f"{model.id} has {kv_heads} key/value heads; the cache of one is divided only where more GPUs "
        consequence += f"than heads share the model (tensor-parallel-size={tensor}): {EXITS}"
        yield of_option(_DECODE, sizes[_DECODE], consequence, "remove it.")
    if values.get("mm-tensor-ipc") == "torch_shm":
        yield from _shared_memory(values, environment, devices=math.prod(sizes.values()))


def _experts(values: Mapping[str, Any], sizes: Mapping[str, int], *, tpu: bool) -> Iterator[Problem]:
    if values.get("enable-eplb") is True:
        groups = sizes[_TENSOR] * sizes[_PREFILL] * sizes["data-parallel-size"]
        if tpu:
            yield of_option("enable-eplb", True, f"experts are balanced on GPUs only: {EXITS}", "remove it.")
        elif groups <= 1:
            consequence = f"experts are balanced between GPUs, and one serves the model: {EXITS}"
            yield of_option("enable-eplb", True, consequence, "remove it.")
        return
    config = values.get("eplb-config")
    redundant = as_int(config.get("num_redundant_experts")) if isinstance(config, dict) else None
    if redundant:
        consequence = f"it needs enable-eplb: {EXITS}"
        yield of_option("eplb-config.num_redundant_experts", redundant, consequence, "remove it.")


def _kernels(values: Mapping[str, Any], model: Model) -> Iterator[Problem]:
    """Kernels of experts that exchange tokens by themselves. Source: config/kernel.py."""
    kernel, exchange = values.get("moe-backend"), values.get("all2all-backend")
    if not isinstance(kernel, str) or kernel.replace("-", "_").lower() not in _EXCHANGING:
        return
    if kernel.replace("-", "_").lower() == _OF_DEEPSEEK:
        consequence = f"it is made for DeepSeek V4, and {model.id} is another: {EXITS}"
        yield of_option("moe-backend", kernel, consequence, "remove it.")
    elif exchange not in (None, "allgather_reducescatter", "naive", "pplx"):
        consequence = f"moe-backend={kernel} exchanges the tokens by itself: {EXITS}"
        yield of_option("all2all-backend", exchange, consequence, "remove it.")


def _shared_memory(values: Mapping[str, Any], environment: Mapping[str, str], *, devices: int) -> Iterator[Problem]:
    name, spawned = "mm-tensor-ipc", environment.get("VLLM_WORKER_MULTIPROC_METHOD") == "spawn"
    if devices > 1:
        consequence = f"torch_shm reaches one process, and {devices} share the model: {EXITS}"
        yield of_option(name, values[name], consequence, "remove it.")
    elif not spawned:
        consequence = f"torch_shm needs the variable VLLM_WORKER_MULTIPROC_METHOD=spawn: {EXITS}"
        yield of_option(name, values[name], consequence, "add the variable to bezel:variables, or remove it.")
