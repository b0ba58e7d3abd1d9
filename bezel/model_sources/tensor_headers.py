"""Headers of safetensors files: the names, dtypes and shapes of their tensors, without the tensors. Pure.

The format: eight bytes with the header's length, little-endian, then the header as JSON, then the data, which the
tensors fill without a gap. Source: huggingface/safetensors, README.md (Format) and safetensors/src/tensor.rs
(MAX_HEADER_SIZE, Metadata::validate).
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from bezel_base.json_documents import read_json

LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000
"""Bytes of a header at most: safetensors' own limit."""
_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}

Tensor = tuple[str, tuple[int, ...]]
"""Dtype, as safetensors names it, and shape."""


class HeaderError(ValueError):
    """A file is not in the format; the text says why, as the rest of a sentence about the file."""


def header_end(start: bytes, size: int) -> int:
    """Return where the data of a file begins.

    Args:
        start: The first eight bytes of the file.
        size: Bytes of the whole file.

    Raises:
        HeaderError: No header of this length fits.
    """
    if len(start) < LENGTH_BYTES:
        raise HeaderError(f"has {len(start)} bytes, fewer than the length of a header takes")
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if length > LONGEST_HEADER:
        raise HeaderError(f"claims a header of {length} bytes; the format allows {LONGEST_HEADER}")
    if LENGTH_BYTES + length > size:
        raise HeaderError(f"claims a header of {length} bytes and has {size} bytes in all")
    return LENGTH_BYTES + length


def read_header(header: bytes, data_bytes: int) -> dict[str, Tensor]:
    """Return the tensors of a file by name.

    Args:
        header: The header's JSON.
        data_bytes: Bytes of the file behind the header.

    Raises:
        HeaderError: The header is not JSON of the format, or its tensors do not fill the data exactly.
    """
    try:
        content = read_json(header)
    except ValueError:
        raise HeaderError("has a header that is not JSON") from None
    if not isinstance(content, dict):
        raise HeaderError("has a header that is not a JSON object")
    tensors: dict[str, Tensor] = {}
    places = []
    for name, row in content.items():
        if name == "__metadata__":
            continue
        dtype, shape, begin, end = _tensor(name, row)
        expected = prod(shape) * _BITS[dtype]
        if expected % 8 or expected // 8 != end - begin:
            raise HeaderError(f"gives {name} {end - begin} bytes, and {dtype} of {list(shape)} takes {expected / 8:g}")
        tensors[name] = dtype, shape
        places.append((begin, end, name))
    at = 0
    for begin, end, name in sorted(places):
        if begin != at:
            word = "overlaps the tensor before it" if begin < at else "leaves a gap before it"
            raise HeaderError(f"has wrong offsets: {name} begins at {begin} and {word}, which ends at {at}")
        at = end
    if at != data_bytes:
        raise HeaderError(f"has {data_bytes} bytes of data, and its tensors take {at}")
    return tensors


def _tensor(name: str, row: Any) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(row, Mapping):
        raise HeaderError(f"has no description of {name[:100]}")
    dtype, shape, offsets = row.get("dtype"), _counts(row.get("shape")), _counts(row.get("data_offsets"))
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise HeaderError(f"has {name[:100]} in an unknown dtype, {str(dtype)[:40]!r}")
    if shape is None or offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise HeaderError(f"has a shape or offsets of {name[:100]} that are not numbers of the format")
    return dtype, shape, offsets[0], offsets[1]


def _counts(value: Any) -> tuple[int, ...] | None:
    is_list = isinstance(value, list) and all(type(number) is int and 0 <= number < 2**63 for number in value)
    return tuple(value) if is_list else None
