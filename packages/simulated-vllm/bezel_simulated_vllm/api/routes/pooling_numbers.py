"""Numbers of a model that pools: pseudo-random vectors and probabilities, and their forms in an answer."""

from __future__ import annotations

import math
import struct
from typing import Any

from bezel_simulated_vllm.scheduling.fake_text import chance

_ORDERS = {"native": "=", "big": ">", "little": "<"}


def unit_vector(key: int, width: int) -> list[float]:
    """Return a vector of length 1."""
    numbers = [chance(key, index) - 0.5 for index in range(width)]
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def class_probabilities(key: int, labels: int) -> list[float]:
    """Return the probabilities of the classes; of a single one its own, by a sigmoid."""
    if labels == 1:
        return [chance(key, 0)]
    weights = [math.exp(2 * chance(key, index)) for index in range(labels)]
    return [weight / sum(weights) for weight in weights]


def octets_of(numbers: list[Any], kind: str = "float32", order: str = "native") -> bytes:
    """Return numbers, or vectors one after the other, as octets.

    Args:
        numbers: numbers or vectors.
        kind: `embed_dtype` of the request.
        order: `endianness` of the request.
    """
    flat = [number for row in numbers for number in row] if numbers and isinstance(numbers[0], list) else numbers
    mark = _ORDERS[order]
    match kind:
        case "float16":
            return struct.pack(f"{mark}{len(flat)}e", *flat)
        case "bfloat16":  # the upper half of a float32
            halves = [struct.unpack(">HH", struct.pack(">f", number))[0] for number in flat]
            return struct.pack(f"{mark}{len(flat)}H", *halves)
        case "fp8_e5m2":  # the upper half of a float16
            return bytes(struct.pack(">e", number)[0] for number in flat)
        case "fp8_e4m3":
            return bytes(map(_e4m3, flat))
    return struct.pack(f"{mark}{len(flat)}f", *flat)


def packed_bits(vector: list[float], *, signed: bool) -> list[int]:
    """Return a vector as octets with a bit for each number that is not negative, the first one highest."""
    octets = [
        sum(1 << (7 - bit) for bit, number in enumerate(vector[at : at + 8]) if number >= 0)
        for at in range(0, len(vector), 8)
    ]
    return [octet - 128 if signed else octet for octet in octets]


def _e4m3(number: float) -> int:
    """Return a number of at most 1 as an octet of 4 bits of exponent with a bias of 7, and 3 of mantissa."""
    sign = 0x80 if number < 0 else 0
    mantissa, exponent = math.frexp(abs(number))
    if exponent < -5:
        return sign | int(abs(number) * 512)
    return sign | (exponent + 6) << 3 | int((mantissa * 2 - 1) * 8)
