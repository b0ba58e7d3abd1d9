"""Headers of safetensors files: what the format allows is read, everything else is refused with its reason."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.model_sources.tensor_headers import LONGEST_HEADER, HeaderError, header_end, read_header
from tests.support.model_sources.tiny import safetensors, with_header

SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)
TENSORS = st.dictionaries(st.text(min_size=1, max_size=8), st.tuples(st.sampled_from(["BF16", "F32", "U8"]), SHAPES))


def read(content: bytes) -> dict[str, tuple[str, tuple[int, ...]]]:
    end = header_end(content[:8], len(content))
    return read_header(content[8:end], len(content) - end)


@pytest.mark.slow
@given(TENSORS)
def test_header_gives_dtype_and_shape_of_each_tensor(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    assert read(safetensors(tensors)) == tensors


def row(begin: int, end: int, shape: tuple[int, ...] = (2,), dtype: str = "BF16") -> dict[str, object]:
    return {"dtype": dtype, "shape": [*shape], "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has 0 bytes"),
        (struct.pack("<Q", 100 * 10**9) + b"{}", "claims a header of 100000000000 bytes; the format allows"),
        (struct.pack("<Q", LONGEST_HEADER) + b"{}", "and has 10 bytes in all"),
        (struct.pack("<Q", 2) + b"{x", "not JSON"),
        (struct.pack("<Q", 2) + b"[]", "not a JSON object"),
        (struct.pack("<Q", 3000) + b"[" * 3000, "not JSON"),
        (with_header({"a": row(0, 4), "b": row(2, 6)}, bytes(6)), "b begins at 2 and overlaps"),
        (with_header({"a": row(0, 4), "b": row(6, 10)}, bytes(10)), "b begins at 6 and leaves a gap"),
        (with_header({"a": row(0, 4)}, bytes(8)), "has 8 bytes of data, and its tensors take 4"),
        (with_header({"a": row(0, 8)}, bytes(8)), "gives a 8 bytes, and BF16 of [2] takes 4"),
        (with_header({"a": row(4, 0)}, bytes(4)), "not numbers of the format"),
        (with_header({"a": {**row(0, 4), "shape": [-2]}}, bytes(4)), "not numbers of the format"),
        (with_header({"a": {**row(0, 4), "shape": [2.0]}}, bytes(4)), "not numbers of the format"),
        (with_header({"a": row(0, 4, dtype="Q9")}, bytes(4)), "in an unknown dtype, 'Q9'"),
        (with_header({"a": []}, bytes(4)), "has no description of a"),
    ],
)
def test_header_outside_of_the_format_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(HeaderError) as refused:
        read(content)
    assert reason in str(refused.value)
