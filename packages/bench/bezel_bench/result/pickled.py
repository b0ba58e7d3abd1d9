"""Pickled form of many samples: a few arrays, where each sample by itself would take 15 µs to pickle and to read.

A worker's samples go to its parent in this form (`bezel_bench.result.sample.Measured`).
"""

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
    """Samples by field.

    Attributes:
        head: The fields of `_HEAD`, sample by sample; `tail` those of `_TAIL`.
        failures: The failure of each sample, and `details` its message.
        counts: The number of chunks of each sample.
        chunks: The chunks of all samples.
    """

    head: array[int]
    tail: array[int]
    failures: list[str]
    details: list[str]
    counts: array[int]
    chunks: array[int]


def pack(samples: Sequence[Sample]) -> Packed:
    """Return samples by field."""
    chunks = array("q")
    for sample in samples:
        chunks.extend(sample.chunks)
    return Packed(
        _table(_HEAD, samples),
        _table(_TAIL, samples),
        [sample.failure for sample in samples],
        [sample.detail for sample in samples],
        array("q", [len(sample.chunks) for sample in samples]),
        chunks,
    )


def _table(names: Sequence[str], samples: Sequence[Sample]) -> array[int]:
    """Return some fields of samples, sample by sample."""
    table = array("q")
    for row in map(operator.attrgetter(*names), samples):
        table.extend(row)
    return table


def unpack(packed: Packed) -> list[Sample]:
    """Return the samples that `pack` was given."""
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
    return samples


def measured_of(packed: Packed, began: int, ended: int, client: ClientHealth) -> Measured:
    """Return a measurement whose samples are packed."""
    return Measured(unpack(packed), began, ended, client)
