"""Options of multimodal input against Gemma 4's processor and against each other.

Owns the processor, its cache and the encoder. Leaves the tokens of items to multimodal_checks, limits
to bezel.planner.vllm.late_values. Sources: vLLM 0.32.0's config/multimodal.py, config/vllm.py and
model_executor/models/gemma4_mm.py, transformers' image_processing_gemma4.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.model.multimodal_checks import item_tokens
from bezel_catalog.vllm.multimodal import multimodal_tokens
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

_DEVICE = re.compile(r"(cpu|cuda|xpu|xla|tpu|meta|mps|hip|hpu|mtia)(:\d+)?")
_KWARGS = "mm-processor-kwargs"
_SCALES = ("mm-encoder-fp8-scale-path", "mm-encoder-fp8-scale-save-path")
_SHM_MIB = 128  # the default of mm-shm-cache-max-object-size-mb


def check_processor(
    values: Mapping[str, Any], model: Model, backends: Collection[str], *, tpu: bool
) -> Iterator[Problem]:
    """Refuse values that the processor or the encoder cannot have.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        backends: names of attention backends that the release has.
        tpu: whether tpu-inference serves it.
    """
    if "image" not in model.architecture.modalities:
        return  # vLLM reads none of these options for a text model
    kwargs = values.get(_KWARGS)
    kwargs = kwargs if isinstance(kwargs, dict) else {}
    if model.is_gemma4 and item_tokens(values, model):
        profiled = not tpu and values.get("skip-mm-profiling") is not True
        # The length of audio is asked of the processor, which is therefore made in any case.
        yield from _soft_tokens(kwargs, profiled=profiled, made=profiled or "audio" in model.architecture.modalities)
    yield from _device(kwargs, "tpu" if tpu else "cuda")
    if values.get("mm-processor-cache-type") != "shm":
        size = integer(values, "mm-shm-cache-max-object-size-mb")
        if size not in (None, _SHM_MIB):
            consequence = f"it is a size of the cache in shared memory, and mm-processor-cache-type is lru; {EXITS}"
            yield of_option(
                "mm-shm-cache-max-object-size-mb", size, consequence, "remove it, or set mm-processor-cache-type: shm."
            )
    yield from _encoder(values, backends)


def _soft_tokens(kwargs: Mapping[str, Any], *, profiled: bool, made: bool) -> Iterator[Problem]:
    choices = multimodal_tokens().image_token_choices
    inner = kwargs.get("images_kwargs")
    inner = inner.get("max_soft_tokens") if isinstance(inner, dict) else None
    top, repair = kwargs.get("max_soft_tokens"), f"write one of {', '.join(map(str, choices))}."
    fails = "every request with an image fails."
    if top is not None:
        if not _is_choice(top, choices):
            consequence = f"Gemma 4's image processor cannot be made with it; {EXITS if made else fails}"
            yield of_option(f"{_KWARGS}.max_soft_tokens", top, consequence, repair)
    elif inner is not None and not _is_choice(inner, choices):
        ends = f"the longest item is processed at start; {EXITS}" if profiled else fails
        yield of_option(f"{_KWARGS}.images_kwargs.max_soft_tokens", inner, f"no image has this size: {ends}", repair)


def _is_choice(value: object, choices: Collection[int]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in choices


def _device(kwargs: Mapping[str, Any], accelerator: str) -> Iterator[Problem]:
    device, repair = kwargs.get("device"), "remove it: images are prepared on the CPU."
    if isinstance(device, str) and not _DEVICE.fullmatch(device):
        yield of_option(f"{_KWARGS}.device", device, f"torch has no such device; {EXITS}", repair)
    elif isinstance(device, int) or (isinstance(device, str) and device.partition(":")[0] == accelerator):
        consequence = f"the accelerator also runs the language model, so it may not prepare images; {EXITS}"
        yield of_option(f"{_KWARGS}.device", device, consequence, repair)


def _encoder(values: Mapping[str, Any], backends: Collection[str]) -> Iterator[Problem]:
    scales = [name for name in _SCALES if values.get(name) is not None]
    if scales and values.get("mm-encoder-attn-dtype") != "fp8":
        consequence = f"it needs mm-encoder-attn-dtype: fp8; {EXITS}"
        yield of_option(scales[0], values[scales[0]], consequence, "add it, or remove the path.")
    elif len(scales) > 1:
        consequence = f"scales are either read or saved, and {_SCALES[0]} is set too; {EXITS}"
        yield of_option(scales[1], values[scales[1]], consequence, "remove one of them.")
    backend = values.get("mm-encoder-attn-backend")
    if isinstance(backend, str) and backends and backend.upper() not in backends:
        consequence = f"vLLM has no such attention backend; {EXITS}"
        yield of_option("mm-encoder-attn-backend", backend, consequence, "remove it: vLLM chooses one.")
