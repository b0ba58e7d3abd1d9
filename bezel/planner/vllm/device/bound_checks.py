"""Numbers that vLLM compares with another option's, and options for another kind of model or device.

Sources: vllm 0.32.0, config/scheduler.py, config/lora.py, config/model.py, config/vllm.py, engine/arg_utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.model.multimodal_checks import media_are_off
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model


def check_bounds(values: Mapping[str, Any], model: Model) -> Iterator[Problem]:
    """Refuse numbers above the option that bounds them.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
    """
    length = integer(values, "max-model-len", model.architecture.context)
    bounds = [
        ("long-prefill-token-threshold", "max-model-len", length),
        ("max-num-active-seqs", "max-num-seqs", integer(values, "max-num-seqs")),
    ]
    for name, other, bound in bounds:
        number = integer(values, name)
        if number is not None and bound is not None and 0 < bound < number:
            consequence = f"it is above {other}={bound}: {EXITS}"
            yield of_option(name, number, consequence, f"set it to {bound} or less, or remove it.")
    adapters, kept = integer(values, "max-loras", 1), integer(values, "max-cpu-loras")
    if values.get("enable-lora") is True and adapters is not None and kept is not None and kept < adapters:
        consequence = f"it is below max-loras={adapters}, of which each needs its place in host memory: {EXITS}"
        yield of_option("max-cpu-loras", kept, consequence, f"set it to {adapters} or more, or remove it.")


def check_kinds(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], *, tpu: bool
) -> Iterator[Problem]:
    """Refuse options that are made for another kind of model or device.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        environment: variables of the container.
        tpu: whether tpu-inference serves the model.
    """
    if values.get("model-impl") == "terratorch":
        consequence = f"TerraTorch does not have {model.id}: {EXITS}"
        yield of_option("model-impl", "terratorch", consequence, "remove it.")
    elif values.get("model-impl") == "transformers" and not tpu and not media_are_off(values):
        consequence = f"transformers' model does not say how long the clips of {model.id} are: {EXITS}"
        repair = "remove it, or set language-model-only: true."
        yield of_option("model-impl", "transformers", consequence, repair)
    kda, only = values.get("kda-prefill-backend"), {"fused": "AMD GPUs", **({"flashkda": "NVIDIA GPUs"} if tpu else {})}
    if isinstance(kda, str) and kda in only:
        yield of_option("kda-prefill-backend", kda, f"it runs on {only[kda]} only: {EXITS}", "remove it.")
    if values.get("enable-return-routed-experts") is True:
        yield from _routed_experts(values, model, environment, tpu=tpu)
    yield from _transfer(values, model, environment, tpu=tpu)
    yield from _outputs(values)
    kernels = values.get("kernel-config")
    tuned = "enable-flashinfer-autotune"
    if values.get(tuned) is not None and isinstance(kernels, dict) and "enable_flashinfer_autotune" in kernels:
        consequence = "kernel-config sets it too; vLLM refuses both together (mutually exclusive)."
        yield of_option(tuned, values[tuned], consequence, "remove one of them.")


def _outputs(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Switches of structured outputs that one backend has and another does not."""
    config = values.get("structured-outputs-config")
    config = config if isinstance(config, dict) else {}
    backend = config.get("backend", "auto")
    for key, backends in (
        ("disable_any_whitespace", ("xgrammar", "guidance")),
        ("disable_additional_properties", ("guidance",)),
    ):
        if config.get(key) is True and backend not in backends:
            consequence = f"the backend {backend} does not have it: {EXITS}"
            repair = f"set backend to {' or '.join(backends)}, or remove it."
            yield of_option(f"structured-outputs-config.{key}", True, consequence, repair)


def _routed_experts(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], *, tpu: bool
) -> Iterator[Problem]:
    name = "enable-return-routed-experts"
    if not model.architecture.experts:
        yield of_option(name, True, f"{model.id} has no experts: {EXITS}", "remove it.")
    elif not tpu and environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0":
        consequence = f"the model runner of VLLM_USE_V2_MODEL_RUNNER=0 does not return them: {EXITS}"
        yield of_option(name, True, consequence, "remove the variable from bezel:variables.")
    elif values.get("enable-prefix-caching") is False:
        yield of_option(name, True, f"it needs enable-prefix-caching: {EXITS}", "remove one of them.")


def _transfer(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], *, tpu: bool
) -> Iterator[Problem]:
    transfer = values.get("kv-transfer-config")
    connector = transfer.get("kv_connector") if isinstance(transfer, dict) else None
    if connector is None or tpu:
        return
    name = "kv-transfer-config.kv_connector"
    if connector == "HiSparseConnector":
        consequence = f"{model.id} has no index of sparse attention: {EXITS}"
        yield of_option(name, connector, consequence, "choose another connector, or remove it.")
        return
    moves = "expandable_segments:True" in environment.get("PYTORCH_CUDA_ALLOC_CONF", "")
    if moves and not (values.get("enable-cumem-allocator") or values.get("enable-sleep-mode")):
        consequence = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True moves the memory that a connector has "
        consequence += f"registered: {EXITS}"
        yield of_option(name, connector, consequence, "remove the variable from bezel:variables.")
