"""Options against the device that serves the model: GPUs by their compute capability, TPUs by the plugin's rules.

Owns the order of these rules. Leaves memory to bezel.planner.rules.memory_checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.device.attention_checks import check_attention
from bezel.planner.vllm.device.bound_checks import check_bounds, check_kinds
from bezel.planner.vllm.device.compilation_checks import check_compilation
from bezel.planner.vllm.device.draft_relations import check_draft_relations
from bezel.planner.vllm.device.kernel_checks import check_kernels
from bezel.planner.vllm.device.parallel_checks import check_parallel
from bezel.planner.vllm.device.transfer_checks import check_transfers
from bezel.planner.vllm.speculation_checks import Speculation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Accelerator, Model

# tpu-inference 0.32.0, platforms/tpu_platform.py (check_and_update_config).
_TPU_MODULE = "tpu_inference.distributed.tpu_connector"
TPU_CONNECTORS = ("TPUConnector", "TPUConnectorHMA", "TPUOffloadConnector", "RaidenOffloadConnector")
# vLLM 0.32.0, platforms/interface.py: what a TPU has nothing of.
_OF_GPUS = {
    "enable-sleep-mode": "a TPU has no memory that a sleeping server could give back",
    "enable-cumem-allocator": "it is an allocator of CUDA",
}
# Methods without a drafter in tpu-inference 0.32.0 (runner/tpu_runner.py: _init_speculative_decoding).
_DRAFTS_OF_GPUS = ("ngram_gpu", "suffix", "draft_model")


def check_device(
    values: Mapping[str, Any], model: Model, gpu: Accelerator | None, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Refuse options with which a start fails on this device.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        gpu: the GPU, None for a TPU.
        environment: variables of the container.
    """
    tpu = gpu is None
    yield from check_parallel(values, model, environment, tpu=tpu)
    yield from check_bounds(values, model)
    yield from check_compilation(values)
    yield from check_draft_relations(values, environment)
    yield from check_kinds(values, model, environment, tpu=tpu)
    yield from check_transfers(values, model, environment, tpu=tpu)
    if gpu is not None:
        yield from check_kernels(values, model, gpu.compute_capability)
        yield from check_attention(values, model, gpu.compute_capability, environment)
        return
    method = Speculation.of(values).method
    if method in _DRAFTS_OF_GPUS:
        where = "spec-method" if "spec-method" in values else "speculative-config"
        consequence = f"tpu-inference has no drafts of this method: {EXITS}"
        yield of_option(where, method, consequence, "write spec-method: ngram, or remove it.")
    for name, reason in _OF_GPUS.items():
        if values.get(name) is True:
            yield of_option(name, True, f"{reason}: {EXITS}", "remove it.")
    transfer = values.get("kv-transfer-config")
    connector = transfer.get("kv_connector") if isinstance(transfer, dict) else None
    if connector and connector not in TPU_CONNECTORS:
        consequence = f"tpu-inference does not have it: {EXITS}"
        repair = f"choose one of {', '.join(TPU_CONNECTORS)}."
        yield of_option("kv-transfer-config.kv_connector", connector, consequence, repair)
    elif connector and isinstance(transfer, dict) and not transfer.get("kv_connector_module_path"):
        consequence = f"vLLM finds a connector of tpu-inference by its module only: {EXITS}"
        repair = f"name the module beside it, kv_connector_module_path: {_TPU_MODULE}."
        yield of_option("kv-transfer-config.kv_connector", connector, consequence, repair)
