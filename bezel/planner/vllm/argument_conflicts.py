"""Conflicts between vLLM's arguments: its parser accepts them, its engine refuses them or acts otherwise.

Owns rules over several arguments, the model and the GPU, each observed on the real parser and engine. Leaves single
options to bezel.planner.vllm.option_checks and memory to bezel.planner.rules.memory_checks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.catalog import models
from bezel.errors import Problem
from bezel.planner.base.option_values import as_float, as_int, human_int
from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.arguments import MOUNT_PATH
from bezel.planner.vllm.speculation_checks import check_speculation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Model, VllmOptions
    from bezel.planner.vllm.arguments import Argument

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# Options that name a model or a tokenizer, which would be fetched from the hub.
_LOADED = ("tokenizer", "hf-config-path", "spec-model")
# Options that vLLM refuses without another one.
_NEEDS = {
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
_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "prefill-context-parallel-size")
_QUANTIZATION = {"w4a16": "compressed-tensors"}


def check_traps(
    arguments: Mapping[str, Argument],
    model: Model,
    accelerator: str | None,
    *,
    devices: int = 1,
    environment: Mapping[str, str],
    options: VllmOptions,
    copies_at: str = MOUNT_PATH,
) -> list[Problem]:
    """Every combination of arguments that cannot work.

    Args:
        arguments: by option name.
        model: the checkpoint.
        accelerator: its name in the stack file; None where it is unknown.
        devices: GPUs or chips of one machine, which share the model.
        environment: of the container, without secrets.
        options: the recorded list of the pinned release.
        copies_at: prefix of the bucket's folders for vLLM, "" where it takes hub ids.
    """
    values = {name: argument.value for name, argument in arguments.items()}
    return [
        *_lengths(values, model),
        *_batches(values),
        *_utilization(values),
        *(_parallelism(values, accelerator, devices) if accelerator else ()),
        *_tools(values),
        *_needs(values),
        *_without(values, model),
        *_quantization(values, model),
        *check_speculation(values, model, options, copies_at),
        *_offline(values, environment, copies_at),
    ]


def check_served(model: Model, accelerator: str, refused_as: str) -> list[Problem]:
    """Refuse a checkpoint that by the catalogue does not run on this hardware, whatever its memory.

    Args:
        model: the checkpoint.
        accelerator: its name in the stack file.
        refused_as: name of the hardware in the catalogue's refusals.
    """
    reason = model.refused_on(refused_as)
    if reason is None:
        return []
    others = [
        other.id
        for other in models().values()
        if other.architecture == model.architecture and not other.refused_on(refused_as)
    ]
    return [
        Problem(
            setting("model"),
            model.id,
            f"it does not run on {accelerator}: {reason}.",
            f"choose {', or '.join(f'model: {name}' for name in others)}." if others else "choose another accelerator.",
        )
    ]


def _lengths(values: Mapping[str, Any], model: Model) -> list[Problem]:
    if "max-model-len" not in values:
        return []
    written, context = values["max-model-len"], model.architecture.context
    length = human_int(written)
    if written == "auto" or length == -1:
        return [
            of_option(
                "max-model-len",
                written,
                "the engine would choose the length by the memory it finds, and what fits could not be planned.",
                f"write a number of tokens, at most {context}.",
            )
        ]
    if length is not None and length > context:
        return [
            of_option(
                "max-model-len",
                written,
                f"{model.id} was made for {context} tokens; vLLM refuses more and exits while it starts.",
                f"set it to {context} or less.",
            )
        ]
    if length is not None and length < 1:
        return [of_option("max-model-len", written, "no request would fit.", "write a number of tokens, e.g. 32768.")]
    return []


def _batches(values: Mapping[str, Any]) -> list[Problem]:
    batched, seqs = human_int(values.get("max-num-batched-tokens")), as_int(values.get("max-num-seqs"))
    length = human_int(values.get("max-model-len"))
    problems = []
    if batched is not None and seqs is not None and batched < seqs:
        problems.append(
            of_option(
                "max-num-batched-tokens",
                batched,
                f"it is below max-num-seqs={seqs}; vLLM refuses it, as each sequence needs one token a step.",
                f"set it to {seqs} or more, e.g. 4096.",
            )
        )
    if (
        values.get("enable-chunked-prefill") is False
        and batched is not None
        and length is not None
        and batched < length
    ):
        problems.append(
            of_option(
                "enable-chunked-prefill",
                "false",
                f"a prompt of max-model-len={length} tokens must then fit one step of "
                f"max-num-batched-tokens={batched}; vLLM refuses it.",
                f"remove it, or set max-num-batched-tokens to {length}.",
            )
        )
    return problems


def _utilization(values: Mapping[str, Any]) -> list[Problem]:
    share = as_float(values.get("gpu-memory-utilization"))
    if share is None or 0 < share <= 1:
        return []
    return [
        of_option(
            "gpu-memory-utilization",
            values["gpu-memory-utilization"],
            "it is a share of the GPU's memory, above 0 and at most 1; vLLM refuses it.",
            "set it to e.g. 0.92.",
        )
    ]


def _parallelism(values: Mapping[str, Any], accelerator: str, devices: int) -> list[Problem]:
    problems = []
    for name in _PARALLEL:
        size, most = as_int(values.get(name)), devices if name == "tensor-parallel-size" else 1
        if size is not None and size > most:
            problems.append(
                of_option(
                    name,
                    size,
                    f"an instance with {accelerator} has {devices} GPU: the engine would wait for others and fail."
                    if devices == 1
                    else f"the {devices} devices of {accelerator} share the model by tensor-parallel-size: the engine "
                    "would wait for others and fail.",
                    "remove it.",
                )
            )
    size = as_int(values.get("tensor-parallel-size", 1))
    shares = as_int(values.get("decode-context-parallel-size"))
    if shares and size and size % shares:
        problems.append(
            of_option(
                "decode-context-parallel-size",
                shares,
                f"the cache is divided among the {size} of tensor-parallel-size, which is no multiple of it; vLLM "
                "exits while it starts.",
                "remove it.",
            )
        )
    if devices > 1 and size is not None and 0 < size < devices:
        problems.append(
            of_option(
                "tensor-parallel-size",
                size,
                f"{devices - size} of the {devices} devices of {accelerator} would be paid for and stay idle.",
                "remove it: all devices then share the model.",
            )
        )
    return problems


def _tools(values: Mapping[str, Any]) -> list[Problem]:
    if values.get("enable-auto-tool-choice") is True and not values.get("tool-call-parser"):
        return [
            of_option(
                "enable-auto-tool-choice",
                "true",
                "it needs tool-call-parser; vLLM exits with a TypeError.",
                "set tool-call-parser: gemma4, or enable-auto-tool-choice: false.",
            )
        ]
    return []


def _needs(values: Mapping[str, Any]) -> list[Problem]:
    return [
        of_option(
            name,
            values[name],
            f"it needs {other}, without which vLLM exits while it starts.",
            f"set {other} too, or remove it.",
        )
        for name, other in _NEEDS.items()
        if values.get(name) and not values.get(other)
    ]


def _without(values: Mapping[str, Any], model: Model) -> list[Problem]:
    """Options for a capability that the model lacks, or whose name is empty."""
    problems = []
    if values.get("enable-expert-parallel") is True and not model.architecture.experts:
        problems.append(
            of_option(
                "enable-expert-parallel", True, f"{model.id} has no experts; vLLM exits while it starts.", "remove it."
            )
        )
    if values.get("disable-sliding-window") is True:
        problems.append(
            of_option(
                "disable-sliding-window",
                True,
                "the configuration of Gemma 4 takes no model without its window; vLLM exits while it starts.",
                "remove it.",
            )
        )
    if values.get("config-format") == "mistral":
        problems.append(
            of_option(
                "config-format",
                "mistral",
                f"{model.id} has a config.json and no params.json; vLLM exits while it starts.",
                "remove it.",
            )
        )
    halves = "enable-dbo" if values.get("enable-dbo") is True else "ubatch-size"
    if (halves == "enable-dbo" or (as_int(values.get(halves)) or 0) > 1) and (
        values.get("all2all-backend") not in _OVERLAPPING
    ):
        problems.append(
            of_option(
                halves,
                values[halves],
                f"a batch is computed in parts only with all2all-backend {' or '.join(_OVERLAPPING)}; vLLM exits while "
                "it starts.",
                "remove it.",
            )
        )
    transfer = values.get("kv-transfer-config")
    if isinstance(transfer, dict) and (missing := [key for key in _TRANSFER if not transfer.get(key)]):
        problems.append(
            of_option(
                "kv-transfer-config",
                transfer,
                f"it names no {' and no '.join(missing)}, without which vLLM exits while it starts.",
                f"add {' and '.join(missing)} to it, or remove it.",
            )
        )
    return problems


def _quantization(values: Mapping[str, Any], model: Model) -> list[Problem]:
    written, own = values.get("quantization"), _QUANTIZATION.get(model.encoding)
    if written is None or written == own:
        return []
    if own:
        consequence = f"{model.id} is stored as {own}; the engine refuses another method."
    elif written in _QUANTIZATION.values():
        consequence = f"{model.id} is not quantized: the engine looks for a scheme in it that is not there and crashes."
    else:
        consequence = "weights quantized while they load take another size than the catalogue's: it cannot be planned."
    return [of_option("quantization", written, consequence, "remove it, or choose a checkpoint that is stored so.")]


def _offline(values: Mapping[str, Any], environment: Mapping[str, str], copies_at: str) -> list[Problem]:
    if environment.get("HF_HUB_OFFLINE") != "1":
        return []
    config = values.get("speculative-config")
    named = {name: values[name] for name in _LOADED if name in values}
    if isinstance(config, dict) and "model" in config:
        named["speculative-config.model"] = config["model"]
    return [
        of_option(
            name,
            value,
            "it names a model on the hub, but the service reads from the bucket only (HF_HUB_OFFLINE=1): "
            "vLLM does not find it and exits while it starts.",
            f"copy {value} into the bucket and write {copies_at}/{value.rsplit('/', 1)[-1]}.",
        )
        for name, value in named.items()
        if isinstance(value, str) and _HUB_ID.fullmatch(value) and value != "ngram"
    ]
