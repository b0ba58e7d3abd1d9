"""Compilation and CUDA graphs: names, sizes and switches with which vLLM 0.32.0 does not start.

Sources: config/compilation.py, config/vllm.py (_set_cudagraph_sizes, __post_init__), engine/arg_utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option, one_of
from bezel_catalog import closest
from bezel_catalog.option_values import as_int
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

_CONFIG, _SIZES, _LARGEST = "compilation-config", "cudagraph-capture-sizes", "max-cudagraph-capture-size"
_MODES = {
    "mode": ("NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE"),
    "cudagraph_mode": ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"),
}
_AT_LEAST_ONE = (
    "encoder_cudagraph_token_budgets",
    "decoder_replay_cudagraph_capture_sizes",
    "compile_ranges_endpoints",
)
_ITEMS = ("encoder_cudagraph_max_vision_items_per_batch", "encoder_cudagraph_max_frames_per_batch")


def check_compilation(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse settings of compilation and CUDA graphs that end the start.

    Args:
        values: of the options, by option name.
    """
    config = values.get(_CONFIG)
    config = config if isinstance(config, dict) else {}
    for key, names in _MODES.items():
        name = config.get(key)
        if isinstance(name, str) and name.upper() not in names:
            yield of_option(
                f"{_CONFIG}.{key}",
                name,
                f"vLLM does not know this mode: {EXITS}",
                one_of(names, closest(name.upper(), names)),
            )
    mode = config.get("mode")
    if isinstance(mode, int) and not 0 <= mode < len(_MODES["mode"]):
        repair = f"write one of {', '.join(_MODES['mode'])}."
        yield of_option(f"{_CONFIG}.mode", mode, f"vLLM's modes are 0 to 3: {EXITS}", repair)
    yield from _operations(config.get("custom_ops"))
    yield from _numbers(config)
    if values.get("language-model-only") is True and config.get("cudagraph_mm_encoder") is True:
        consequence = f"language-model-only leaves no encoder whose graphs could be captured: {EXITS}"
        yield of_option(f"{_CONFIG}.cudagraph_mm_encoder", True, consequence, "remove one of the two.")
    yield from _sizes(values, config)


def _numbers(config: Mapping[str, Any]) -> Iterator[Problem]:
    """Sizes and budgets of graphs, each within its bound."""
    least = dict.fromkeys(_AT_LEAST_ONE, 1)
    if config.get("cudagraph_mm_encoder") is True:
        least |= dict.fromkeys(_ITEMS, 0)
    for key, bound in least.items():
        for number in (as_int(one) for one in _as_list(config.get(key))):
            if number is not None and number < bound:
                repair = f"write {bound} or more."
                yield of_option(f"{_CONFIG}.{key}", number, f"vLLM expects at least {bound}: {EXITS}", repair)
    for size in _as_list(config.get("compile_sizes")):
        if isinstance(size, str) and size != "cudagraph_capture_sizes":
            repair = "write numbers, or cudagraph_capture_sizes."
            yield of_option(f"{_CONFIG}.compile_sizes", size, f"vLLM does not know this size: {EXITS}", repair)


def _operations(custom: object) -> Iterator[Problem]:
    """Operations of their own: one base mode, and no operation both on and off."""
    if not isinstance(custom, list):
        return
    operations = [str(word) for word in custom]
    key = f"{_CONFIG}.custom_ops"
    for word in operations:
        if word not in ("all", "none") and (len(word) < 2 or word[0] not in "+-"):
            yield of_option(key, word, f"vLLM cannot read it: {EXITS}", "write all, none, +NAME or -NAME.")
    if {"all", "none"} <= set(operations):
        yield of_option(key, operations, f"vLLM takes one of all and none: {EXITS}", "remove one of them.")
    twice = sorted(
        {word[1:] for word in operations if word[0] == "+"} & {word[1:] for word in operations if word[0] == "-"}
    )
    if twice:
        yield of_option(key, operations, f"{', '.join(twice)} would be both on and off: {EXITS}", "remove one of them.")


def _sizes(values: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Problem]:
    for option, key in ((_SIZES, "cudagraph_capture_sizes"), (_LARGEST, "max_cudagraph_capture_size")):
        if values.get(option) is not None and config.get(key) is not None:
            consequence = f"compilation-config sets {key} too; vLLM refuses both together (mutually exclusive)."
            yield of_option(option, values[option], consequence, "remove one of them.")
            return
    if _without_graphs(values, config):
        return
    written = values.get(_SIZES, config.get("cudagraph_capture_sizes"))
    where = _SIZES if values.get(_SIZES) is not None else f"{_CONFIG}.cudagraph_capture_sizes"
    largest = as_int(values.get(_LARGEST, config.get("max_cudagraph_capture_size")))
    if largest is not None and largest < 1:
        option = _LARGEST if values.get(_LARGEST) is not None else f"{_CONFIG}.max_cudagraph_capture_size"
        yield of_option(option, largest, f"vLLM needs a size of at least 1: {EXITS}", "write 1 or more.")
        return
    sizes = [size for size in (as_int(one) for one in _as_list(written)) if size is not None]
    if written is not None and not _as_list(written):
        yield of_option(where, written, f"vLLM needs a size: {EXITS}", "write e.g. [1, 2, 4, 8], or remove it.")
        return
    if sizes and min(sizes) < 1:
        consequence = f"no step has {min(sizes)} tokens, and vLLM cannot make its graph."
        yield of_option(where, written, consequence, "write sizes of 1 or more.")
        return
    batched = integer(values, "max-num-batched-tokens")
    if sizes and largest is not None:
        valid = max((size for size in sizes if batched is None or size <= batched), default=0)
        if largest != valid:
            consequence = f"the largest of the sizes that fit a step is {valid}, and vLLM takes no other: {EXITS}"
            option = _LARGEST if values.get(_LARGEST) is not None else f"{_CONFIG}.max_cudagraph_capture_size"
            yield of_option(option, largest, consequence, "remove it.")
    elif sizes and batched is not None and min(sizes) > batched and _whole_steps(values, config):
        consequence = f"a step holds {batched} tokens, so no size is left, and the graphs of whole steps need one: "
        consequence += EXITS
        yield of_option(where, written, consequence, f"write a size of at most {batched}, or remove it.")


def _whole_steps(values: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether graphs of whole steps are captured by TRITON_ATTN, which alone asks for a size."""
    attention = values.get("attention-config")
    configured_backend = attention.get("backend") if isinstance(attention, dict) else None
    backend = str(values.get("attention-backend") or configured_backend or "auto").upper()
    mode = config.get("cudagraph_mode")
    return backend in ("AUTO", "TRITON_ATTN") and not (isinstance(mode, str) and mode.upper() == "PIECEWISE")


def _without_graphs(values: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    mode = config.get("cudagraph_mode")
    return values.get("enforce-eager") is True or (isinstance(mode, str) and mode.upper() == "NONE")


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else ([] if value is None else [value])
