"""Bytes and parameters of a checkpoint from the types and shapes of its tensors, as safetensors headers give them.

Owns what a tensor is: a weight, a packed one with the bits of its form, a scale beside one, a part that vLLM does not
load with the model (a tied head that is stored all the same, layers of multi-token prediction). Leaves the form of
quantised weights to bezel_catalog.architectures.quantisation.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError
from bezel_catalog.architectures.configuration import read_configuration
from bezel_catalog.architectures.experts import read_experts
from bezel_catalog.architectures.quantisation import read_form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel_catalog.architectures.configuration import Configuration

# Bits of one element by the name of its type in a safetensors header.
ELEMENT_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E8M0": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "F64": 64,
    "I64": 64,
    "U64": 64,
    "C64": 64,
}
_SERVED_BITS = 16
"""Bits of a weight that a file holds in more: vLLM serves float32 in 16 bits unless dtype is set."""
_WIDE = ("F32", "F64")
_EXPERT = re.compile(r"(?:^|\.)experts\.|(?:^|\.)(?:moe|ffn|feed_forward)\.(?:gate|up|down)_proj\.weight$")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
_DRAFT = re.compile(r"^(?:model\.)?mtp(?:_layers|_block)?\.|^(?:model\.)?mtp\b|\.mtp\.")
_LOOKED_UP = "embed_tokens_per_layer"
_HEAD = re.compile(r"^(?:language_model\.|model\.)?lm_head\.weight$")


class TensorError(UserError, ValueError):
    """The tensors of a checkpoint cannot be weighed."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the tensors of a checkpoint weigh.

    `bytes` are those of the tensors that vLLM loads, as the files hold them; `draft_bytes` those of its layers of
    multi-token prediction, which are loaded only to draft, and `skipped_bytes` those that nothing loads. `parameters`
    counts the numbers that the loaded tensors stand for, packed ones unpacked, scales left out; `active_parameters`
    those that one token passes through. `resident_bytes` is what the loaded tensors take once they are served, since
    float32 is served in 16 bits. `encoding` is the form of most of them, e.g. bf16, fp8 or w4a16, and `method` the name
    of the quantisation in the configuration.
    """

    bytes: int
    parameters: int
    active_parameters: int
    encoding: str
    method: str | None = None
    draft_bytes: int = 0
    skipped_bytes: int = 0
    resident_bytes: int = 0


def weigh(config: Mapping[str, Any], tensors: Mapping[str, tuple[str, Sequence[int]]]) -> Weights:
    """What the tensors of a checkpoint weigh.

    Args:
        config: the content of config.json.
        tensors: type and shape of each tensor by its name, as in the headers of all its safetensors files.

    Raises:
        ConfigError: it is not the configuration of a model.
        TensorError: there is no tensor, or one of a type that safetensors does not have.
    """
    part, form = read_configuration(config), read_form(config)
    if not tensors:
        raise TensorError(Problem("tensors", None, "no file lists any, so nothing can be loaded.", "copy the files."))
    loaded = drafts = skipped = resident = parameters = active = 0
    bytes_by_type: dict[str, int] = {}
    share = read_experts(part, 1).active_share
    for name, (kind, shape) in tensors.items():
        size = tensor_bytes(name, kind, shape)
        if _is_draft(part, name):
            drafts += size
            continue
        if _HEAD.search(name) and part.get("tie_word_embeddings", default=False) is True:
            skipped += size
            continue
        loaded += size
        numbers = form.numbers(name, kind, math.prod(shape), ELEMENT_BITS[kind])
        wide = kind in _WIDE and bool(numbers) and not form.method
        resident += math.prod(shape) * _SERVED_BITS // 8 if wide else size
        parameters += numbers
        if _LOOKED_UP not in name:
            active += round(numbers * share) if _EXPERT.search(name) else numbers
        if numbers:
            bytes_by_type[kind] = bytes_by_type.get(kind, 0) + size
    most = max(bytes_by_type, key=lambda kind: bytes_by_type[kind], default="")
    return Weights(
        bytes=loaded,
        parameters=parameters,
        active_parameters=active,
        encoding=form.encoding(most),
        method=form.method or None,
        draft_bytes=drafts,
        skipped_bytes=skipped,
        resident_bytes=resident,
    )


def tensor_bytes(name: str, kind: str, shape: Sequence[int]) -> int:
    """Bytes of one tensor.

    Raises:
        TensorError: safetensors has no such type.
    """
    if kind not in ELEMENT_BITS:
        repair = f"choose a checkpoint whose tensors are of {', '.join(ELEMENT_BITS)}."
        raise TensorError(Problem(f"tensor {name}", kind, "safetensors has no such type.", repair))
    return -(-math.prod(shape) * ELEMENT_BITS[kind] // 8)


def _is_draft(part: Configuration, name: str) -> bool:
    """Whether a tensor belongs to multi-token prediction: its own name, or a layer behind the last one."""
    if _DRAFT.search(name):
        return True
    layer = _LAYER.search(name)
    if layer is None or not part.values.get("num_nextn_predict_layers"):
        return False
    count = part.get("num_hidden_layers")
    return isinstance(count, int) and int(layer[1]) >= count
