"""Conflicts between vLLM's arguments: its parser accepts them, its engine refuses them or behaves differently.

Owns rules over several arguments, the model and the GPU, each observed on the real parser and engine. Leaves single
options to bezel.planner.vllm.option_checks and memory to bezel.planner.rules.memory_checks.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option, setting
from bezel.planner.vllm.arguments import MOUNT_PATH, typed_values
from bezel.planner.vllm.late_values import check_values
from bezel.planner.vllm.speculation_checks import check_speculation
from bezel_base.errors import Problem
from bezel_catalog import models
from bezel_catalog.vllm.typed_values import AUTO_LENGTH, integer, real_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog import Model, VllmOptions

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# Options that vLLM refuses without another one.
NEEDS = {
    "enable-log-outputs": "enable-log-requests",
    "collect-detailed-traces": "otlp-traces-endpoint",
    "mamba-ssu-algorithm": "mamba-backend",
    "numa-bind-cpus": "numa-bind",
    "numa-bind-nodes": "numa-bind",
    "enable-elastic-ep": "enable-eplb",
    "enable-eplb": "enable-expert-parallel",
}
_TRANSFER = ("kv_connector", "kv_role")
# The only all-to-all backends whose exchange with the experts overlaps with computing.
_OVERLAPPING = ("deepep_low_latency", "deepep_high_throughput", "nixl_ep")
_TENSOR = "tensor-parallel-size"
_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "prefill-context-parallel-size")
_QUANTIZATION = {"w4a16": "compressed-tensors", "fp8": "compressed-tensors"}


def check_conflicts(
    arguments: Mapping[str, Argument],
    model: Model,
    accelerator: str | None,
    *,
    devices: int = 1,
    environment: Mapping[str, str],
    options: VllmOptions,
    copies_at: str = MOUNT_PATH,
    own_image: bool = False,
) -> Iterator[Problem]:
    """Every combination of arguments that cannot work.

    Args:
        arguments: by option name.
        model: the checkpoint.
        accelerator: its name in the stack file; None where it is unknown.
        devices: GPUs or chips of one machine, which share the model.
        environment: of the container, without secrets.
        options: the recorded list of the pinned release.
        copies_at: prefix of the bucket's folders for vLLM, "" where it takes hub ids.
        own_image: whether the image is not vLLM's own.
    """
    values = typed_values(arguments)
    yield from _lengths(arguments.get("max-model-len"), model, environment)
    yield from _batches(values)
    yield from _parallelism(values, accelerator, devices) if accelerator else ()
    yield from _needs(values, model)
    yield from _without(values, model)
    yield from _quantization(values, model)
    yield from check_values(
        values, on_tpu=accelerator is not None and accelerator.startswith("v6e"), own_image=own_image
    )
    yield from check_speculation(values, model, options, copies_at)
    yield from _offline(values, environment, copies_at)


def check_served(model: Model, accelerator: str, refused_as: str) -> Iterator[Problem]:
    """Refuse a checkpoint that by the catalogue does not run on this hardware, whatever its memory.

    Args:
        model: the checkpoint.
        accelerator: its name in the stack file.
        refused_as: name of the hardware in the catalogue's refusals.
    """
    if reason := model.refused_on(refused_as):
        others = [
            f"model: {other.id}"
            for other in models().values()
            if other.architecture == model.architecture and not other.refused_on(refused_as)
        ]
        repair = f"choose {', or '.join(others) or 'another accelerator'}."
        yield Problem(setting("model"), model.id, f"it does not run on {accelerator}: {reason}.", repair)


def _lengths(argument: Argument | None, model: Model, environment: Mapping[str, str]) -> Iterator[Problem]:
    if argument is None:
        return
    name, context, written, length = argument.name, model.architecture.context, argument.written, argument.value
    if length == AUTO_LENGTH:
        yield of_option(
            name,
            written,
            "the engine would choose the length by the free memory, so the memory fit could not be planned.",
            f"write a number of tokens, at most {context}.",
        )
    elif length is not None and length > context:
        ends = "vLLM refuses more and exits while it starts."
        if environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "").strip().lower() in ("1", "true"):
            ends = "it starts by VLLM_ALLOW_LONG_MAX_MODEL_LEN, and what it answers to longer prompts is noise."
        consequence = f"{model.id} was made for {context} tokens; {ends}"
        yield of_option(name, written, consequence, f"set it to {context} or less.")
    elif length is not None and length < 1:
        yield of_option(name, written, "no request would fit.", "write a number of tokens, e.g. 32768.")


def _batches(values: Mapping[str, Any]) -> Iterator[Problem]:
    batched, seqs = integer(values, "max-num-batched-tokens"), integer(values, "max-num-seqs")
    length, share = integer(values, "max-model-len"), real_number(values, "gpu-memory-utilization")
    if batched is not None and seqs is not None and batched < seqs:
        yield of_option(
            "max-num-batched-tokens",
            batched,
            f"it is below max-num-seqs={seqs}; vLLM refuses it, as each sequence needs one token a step.",
            f"set it to {seqs} or more, e.g. 4096.",
        )
    chunked = values.get("enable-chunked-prefill") is not False
    if not chunked and batched is not None and length is not None and batched < length:
        yield of_option(
            "enable-chunked-prefill",
            False,
            f"a prompt of max-model-len={length} tokens must then fit one step of "
            f"max-num-batched-tokens={batched}; vLLM refuses it.",
            f"remove it, or set max-num-batched-tokens to {length}.",
        )
    if share is not None and not 0 < share <= 1:
        yield of_option(
            "gpu-memory-utilization",
            values["gpu-memory-utilization"],
            "it is a share of the GPU's memory, above 0 and at most 1; vLLM refuses it.",
            "set it to e.g. 0.92.",
        )


def _parallelism(values: Mapping[str, Any], accelerator: str, devices: int) -> Iterator[Problem]:
    needed = math.prod(max(1, integer(values, name) or 1) for name in _PARALLEL)
    there = f"an instance with {accelerator} has 1 GPU" if devices == 1 else f"{accelerator} has {devices}"
    for name in _PARALLEL:
        size, limit = integer(values, name), devices if name == _TENSOR else 1
        if size is not None and size > limit:
            consequence = (
                f"the options ask for {needed} devices, and {there}: {EXITS}"
                if needed > devices
                else "memory and speed are planned for one model that all devices share: they would not be known."
            )
            yield of_option(name, size, consequence, "remove it.")
    size = integer(values, "tensor-parallel-size", 1)
    parts = integer(values, "decode-context-parallel-size")
    if parts and size and size % parts:
        consequence = f"tensor-parallel-size={size}, which divides the cache, is not a multiple of it; {EXITS}"
        yield of_option("decode-context-parallel-size", parts, consequence, "remove it.")
    used = size and math.prod(max(1, integer(values, name) or 1) for name in _PARALLEL if name != _TENSOR) * size
    if devices > 1 and size is not None and used is not None and 0 < used < devices:
        yield of_option(
            "tensor-parallel-size",
            size,
            f"{devices - used} of the {devices} devices of {accelerator} would be paid for and stay idle.",
            "remove it: all devices then share the model.",
        )


def _needs(values: Mapping[str, Any], model: Model) -> Iterator[Problem]:
    if values.get("enable-auto-tool-choice") is True and not values.get("tool-call-parser"):
        yield of_option(
            "enable-auto-tool-choice",
            True,
            "it needs tool-call-parser; vLLM exits with a TypeError.",
            f"set tool-call-parser{': gemma4' if model.is_gemma4 else ''}, or enable-auto-tool-choice: false.",
        )
    for name, other in NEEDS.items():
        if values.get(name) and not values.get(other):
            consequence = f"it needs {other}, without which vLLM exits while it starts."
            yield of_option(name, values[name], consequence, f"set {other} too, or remove it.")


def _without(values: Mapping[str, Any], model: Model) -> Iterator[Problem]:
    """Options for a capability that the model lacks, or whose name is empty."""
    if values.get("enable-expert-parallel") is True and not model.architecture.experts:
        yield of_option("enable-expert-parallel", True, f"{model.id} has no experts; {EXITS}", "remove it.")
    if values.get("disable-sliding-window") is True and model.is_gemma4:
        consequence = f"Gemma 4 cannot be configured without its window; {EXITS}"
        yield of_option("disable-sliding-window", True, consequence, "remove it.")
    if values.get("config-format") == "mistral" and model.files is None:
        consequence = f"{model.id} has a config.json and no params.json; {EXITS}"
        yield of_option("config-format", "mistral", consequence, "remove it.")
    halves = "enable-dbo" if values.get("enable-dbo") is True else "ubatch-size"
    if (halves == "enable-dbo" or (integer(values, halves) or 0) > 1) and (
        values.get("all2all-backend") not in _OVERLAPPING
    ):
        consequence = f"a batch is computed in parts only with all2all-backend {' or '.join(_OVERLAPPING)}; {EXITS}"
        yield of_option(halves, values[halves], consequence, "remove it.")
    transfer = values.get("kv-transfer-config")
    if isinstance(transfer, dict) and (missing := [key for key in _TRANSFER if not transfer.get(key)]):
        yield of_option(
            "kv-transfer-config",
            transfer,
            f"{' and '.join(missing)} must be set; {EXITS}",
            f"add {' and '.join(missing)} to it, or remove it.",
        )


def _quantization(values: Mapping[str, Any], model: Model) -> Iterator[Problem]:
    unplanned = "weights that are quantized while they load need an amount of memory that cannot be planned."
    stored = "remove it, or choose a checkpoint that is stored so."
    if (config := values.get("quantization-config")) is not None:
        yield of_option("quantization-config", config, unplanned, stored)
    written, stored_method = values.get("quantization"), _stored_method(model)
    # A method may have several kernels: vLLM serves weights of `awq` as `awq_marlin`, too.
    if written is None or written == stored_method or (model.files and str(written).startswith(f"{stored_method}_")):
        return
    if stored_method:
        consequence = f"{model.id} is stored as {stored_method}; the engine refuses another method."
    elif written in _QUANTIZATION.values():
        consequence = f"{model.id} is not quantized: the engine looks for a scheme that it does not have and crashes."
    else:
        consequence = unplanned
    yield of_option("quantization", written, consequence, stored)


def _stored_method(model: Model) -> str | None:
    """The method by which the checkpoint is quantized, as its configuration names it; None for a plain one."""
    if model.files is None:
        return _QUANTIZATION.get(model.encoding)
    quantization = model.config.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    return str(method) if method else None


def named_models(values: Mapping[str, Any]) -> dict[str, str]:
    """Models, tokenizers and configurations that the arguments name beside the model, by option."""
    config = values.get("speculative-config")
    draft = {"speculative-config.model": config.get("model")} if isinstance(config, dict) else {}
    named = {name: values.get(name) for name in ("tokenizer", "hf-config-path", "spec-model")} | draft
    return {name: value for name, value in named.items() if isinstance(value, str)}


def _offline(values: Mapping[str, Any], environment: Mapping[str, str], copies_at: str) -> Iterator[Problem]:
    if environment.get("HF_HUB_OFFLINE") != "1":
        return
    for name, value in named_models(values).items():
        if _HUB_ID.fullmatch(value) and value != "ngram":
            yield of_option(
                name,
                value,
                "it names a model on the hub, but the service reads from the bucket only (HF_HUB_OFFLINE=1): "
                "vLLM does not find it and exits while it starts.",
                f"copy {value} into the bucket and write {copies_at}/{value.rsplit('/', 1)[-1]}.",
            )
