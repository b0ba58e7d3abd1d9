"""Form of a measurement for a pipe: a few arrays. Each sample by itself would take 15 µs to pickle and to read."""

from __future__ import annotations

import operator
from array import array
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from bezel_bench.result.sample import ClientHealth, Measured, Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = [field.name for field in fields(Sample)]
# The numbers of a sample before its two texts and after them; the last field is its chunks.
_HEAD = _NAMES[: _NAMES.index("failure")]
_TAIL = _NAMES[_NAMES.index("detail") + 1 : -1]


class Packed(NamedTuple):
    """A measurement, its samples by field.

    Attributes:
        head: The fields of `_HEAD`, sample by sample; `tail` those of `_TAIL`.
        failures: The failure of each sample, and `details` its message.
        counts: The number of chunks of each sample.
        chunks: The chunks of all samples.
        began: As of the measurement, like `ended` and `client`.
    """

    head: array[int]
    tail: array[int]
    failures: list[str]
    details: list[str]
    counts: array[int]
    chunks: array[int]
    began: int
    ended: int
    client: ClientHealth


def pack(measured: Measured) -> Packed:
    """Return a measurement with its samples by field."""
    samples, chunks = measured.samples, array("q")
    for sample in samples:
        chunks.extend(sample.chunks)
    return Packed(
        _table(_HEAD, samples),
        _table(_TAIL, samples),
        [sample.failure for sample in samples],
        [sample.detail for sample in samples],
        array("q", [len(sample.chunks) for sample in samples]),
        chunks,
        *(measured.began, measured.ended, measured.client),
    )


def _table(names: Sequence[str], samples: Sequence[Sample]) -> array[int]:
    """Return some fields of samples, sample by sample."""
    table = array("q")
    for row in map(operator.attrgetter(*names), samples):
        table.extend(row)
    return table


def unpack(packed: Packed) -> Measured:
    """Return the measurement that `pack` was given."""
    heads, tails, begin, samples = iter(packed.head), iter(packed.tail), 0, []
    rows = zip(
        zip(*[heads] * len(_HEAD), strict=True),
        zip(*[tails] * len(_TAIL), strict=True),
        packed.failures,
        packed.details,
        packed.counts,
        strict=True,
    )
    for head, tail, failure, detail, count in rows:
        chunks = packed.chunks[begin : begin + count]
        samples.append(Sample(*head, failure, detail, *tail, chunks))  # type: ignore[call-arg]  # as many as fields
        begin += count
    return Measured(samples, packed.began, packed.ended, packed.client)
