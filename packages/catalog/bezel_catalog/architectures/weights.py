"""Bytes and parameters of a checkpoint from the types and shapes of its tensors, as safetensors headers give them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Bits of one element by the name of its type in a safetensors header.
ELEMENT_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
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


@dataclass(frozen=True, slots=True)
class Weights:
    """What the tensors of a checkpoint weigh.

    `bytes` are those of the tensors in the files. `parameters` counts the numbers that they stand for, packed ones
    unpacked, scales left out; `active_parameters` those that one token passes through. `encoding` is the form of most
    of them, e.g. bf16, fp8 or w4a16.
    """

    bytes: int
    parameters: int
    active_parameters: int
    encoding: str


def weigh(config: Mapping[str, Any], tensors: Mapping[str, tuple[str, Sequence[int]]]) -> Weights:
    """What the tensors of a checkpoint weigh.

    Args:
        config: the content of config.json.
        tensors: type and shape of each tensor by its name, as in the headers of all its safetensors files.

    Raises:
        ValueError: a type is none of safetensors'.
    """
    total = sum(_tensor_bytes(*tensor) for tensor in tensors.values())
    parameters = sum(math.prod(shape) for _, shape in tensors.values())
    return Weights(total, parameters, parameters, str(config.get("torch_dtype") or config.get("dtype") or "unknown"))


def _tensor_bytes(kind: str, shape: Sequence[int]) -> int:
    if kind not in ELEMENT_BITS:
        raise ValueError(kind)
    return math.prod(shape) * ELEMENT_BITS[kind] // 8
