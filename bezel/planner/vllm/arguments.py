"""Arguments of `vllm serve`, composed from the catalogue's defaults and the stack file.

Owns the defaults, the merging of both, and their one spelling (`--flag=value`). Values are parsed once, for
every rule, and become words again in `flags_of` alone. Leaves checks to bezel.planner.vllm.option_checks (one option at
a time) and bezel.planner.vllm.argument_conflicts (combinations).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.base.deployment import PlannedOption
from bezel.planner.vllm.model.pooling import pooling_defaults
from bezel_catalog.option_values import as_structure
from bezel_catalog.vllm.typed_values import SWITCHES, typed_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_catalog import Model, VllmOptions

PORT = 8080
NODE_PORT = 8000
MOUNT_PATH = "/mnt/models"
DEFAULT_MODEL_LEN = 32_768
DEFAULT_UTILIZATION = 0.92
DEFAULT_SEQS = 8
DEFAULT_BATCHED_TOKENS = 4096
_GEMMA4 = {
    "disable-chunked-mm-input": True,
    "enable-auto-tool-choice": True,
    "tool-call-parser": "gemma4",
    "reasoning-parser": "gemma4",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One option.

    Attributes:
        name: the option's own name.
        written: what the stack file or the catalogue has, for words and messages.
        value: what vLLM reads (`typed_value`), for rules; None where its parser refuses what is written.
        from_stack: whether the stack file sets it, else it is a default.
    """

    name: str
    written: object
    value: Any
    from_stack: bool


def leased_options(model: Model, *, devices: int, tpu: bool) -> dict[str, object]:
    """Default options of a model on a leased machine; the stack file overrides them.

    Args:
        model: the checkpoint.
        devices: chips or GPUs that share the model.
        tpu: whether they are TPU chips: options that Google did not verify there are omitted, and the plugin's own
            variables, which vLLM itself does not know, must not stop the server.
    """
    options = default_options(model, loading={}) | {"port": NODE_PORT, "tensor-parallel-size": devices}
    if tpu:
        options.pop("reasoning-parser", None)
        del options["fail-on-environ-validation"]
    return options


def default_options(model: Model, *, loading: Mapping[str, object]) -> dict[str, object]:
    """Default options of a model on one GPU; the stack file overrides them.

    The parsers are those of Gemma 4, or those that the row of a project's model names, since its chat template calls
    for them: with a wrong one the server does not start, or returns calls as text.

    Args:
        model: the checkpoint.
        loading: the options of its way of loading weights.
    """
    return {
        "port": PORT,
        "served-model-name": model.id,
        "dtype": _dtype(model),
        "max-model-len": min(DEFAULT_MODEL_LEN, model.architecture.context),
        "gpu-memory-utilization": DEFAULT_UTILIZATION,
        "max-num-seqs": DEFAULT_SEQS,
        "max-num-batched-tokens": DEFAULT_BATCHED_TOKENS,
        **loading,
        **pooling_defaults(model, min(DEFAULT_MODEL_LEN, model.architecture.context), DEFAULT_BATCHED_TOKENS),
        **(_GEMMA4 if model.is_gemma4 else _parsers(model)),
        # An unknown VLLM_* variable becomes an error instead of a warning that is easily missed.
        "fail-on-environ-validation": True,
    }


def _parsers(model: Model) -> dict[str, object]:
    """The options of the parsers that a row names."""
    tools = model.files.tool_call_parser if model.files else ""
    thoughts = model.files.reasoning_parser if model.files else ""
    options: dict[str, object] = {"enable-auto-tool-choice": True, "tool-call-parser": tools} if tools else {}
    return options | ({"reasoning-parser": thoughts} if thoughts else {})


def _dtype(model: Model) -> str:
    """The number format that the layers compute in: float16 where the model was made in it, as many of AWQ are."""
    return "float16" if "float16" in (model.config.get("dtype"), model.config.get("torch_dtype")) else "bfloat16"


def chosen_arguments(chosen: Mapping[str, object], options: VllmOptions) -> dict[str, Argument | None]:
    """The stack file's options by their own names; None for one that drops a default.

    Names missing from the option list stay unchanged, for the checks to report.
    """
    arguments: dict[str, Argument | None] = {}
    for written, value in chosen.items():
        name, switched = canonical(written, value, options)
        arguments[name] = None if switched is None else _argument(name, switched, options, from_stack=True)
    return arguments


def merge(
    defaults: Mapping[str, object], chosen: Mapping[str, Argument | None], options: VllmOptions
) -> dict[str, Argument]:
    """The defaults overlaid with the stack file's options (`chosen_arguments`), by the option's own name."""
    planned = {
        name: _argument(name, value, options, from_stack=False)
        for name, value in defaults.items()
        if name not in chosen
    }
    merged = {name: planned.get(name) or chosen[name] for name in (*defaults, *chosen)}
    return {name: argument for name, argument in merged.items() if argument is not None}


def _argument(name: str, written: object, options: VllmOptions, *, from_stack: bool) -> Argument:
    match = options.find(f"--{name}")
    # What an option means that the release does not have is not known: it is refused by its name.
    return Argument(name, written, typed_value(match[0], written) if match else None, from_stack)


def typed_values(arguments: Mapping[str, Argument | None]) -> dict[str, Any]:
    """The values as vLLM reads them, by option name; None for one that its parser refuses."""
    return {name: argument.value for name, argument in arguments.items() if argument}


def canonical(written: str, value: object, options: VllmOptions) -> tuple[str, object]:
    """The option's own name for a spelling of the stack file; a negated switch the switch with its opposite."""
    plain = written.strip().lstrip("-").replace("_", "-")
    match = options.find(f"--{plain}") or options.find(f"-{plain}")
    if match is None:
        return plain, value
    option, negated = match
    if option.kind in SWITCHES:
        switched = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
        return option.name, not switched if negated and isinstance(switched, bool) else switched
    return option.name, as_structure(value)


def planned_options(arguments: Mapping[str, Argument], options: VllmOptions) -> dict[str, PlannedOption]:
    """The options as the plan carries them, in the order of their names.

    The stack file's order has no effect: files with the same settings give the same revision.

    Raises:
        ValueError: the release does not have an option; the checks refuse it before.
    """
    return {
        name: PlannedOption(arguments[name].value, flags_of(arguments[name], options)) for name in sorted(arguments)
    }


def flags_of(argument: Argument, options: VllmOptions) -> tuple[tuple[str, ...], ...]:
    """The flags of one option, each with its values; none for a switch without a negation that is off.

    Raises:
        ValueError: the release does not have it.
    """
    name, value = argument.name, argument.written
    match = options.find(f"--{name}")
    if match is None:
        raise ValueError(f"{name} is not an option of vLLM {options.version}")
    option = match[0]
    if option.kind in SWITCHES:
        flag = option.flags[0] if value else option.negation
        return ((flag,),) if flag else ()
    if isinstance(value, list) and option.kind == "values" and len(value) != 1:
        return ((f"--{name}", *map(as_word, value)),)
    parts = value if isinstance(value, list) and option.kind in ("append", "values") else [value]
    return tuple((f"--{name}", as_word(part)) for part in parts)


def as_word(value: object) -> str:
    """A value as the parser reads it: text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
