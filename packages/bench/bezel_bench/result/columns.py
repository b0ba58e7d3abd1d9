"""Samples as columns: one array a field, so that a million requests are counted in milliseconds.

Owns the conversion and the selection of rows. Leaves every definition of a figure to bezel_bench.metrics.definitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bezel_bench.result.sample import INSTANTS, KINDS, Sample

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FIELDS = (
    *("index", "worker", "user", "turn", "group"),
    *INSTANTS,
    *("status", "prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "asked_tokens"),
)
_CODES = {kind: code for code, kind in enumerate(("", *KINDS))}


@dataclass(frozen=True, slots=True)
class Columns:
    """Requests by field; instants in nanoseconds (0: not reached), counts -1 where the server did not report them.

    Attributes:
        fields: One array of int64 for each of `FIELDS`.
        failure: Each request's index in `("", *KINDS)`: 0 is a success.
        chunks: The instants of all chunks with a token, request by request.
        chunk_counts: The number of chunks of each request.
    """

    fields: dict[str, Ints]
    failure: Ints
    chunks: Ints
    chunk_counts: Ints

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Columns":
        """Convert samples to columns, in their order."""
        size = len(samples)
        return cls(
            {name: np.fromiter((getattr(sample, name) for sample in samples), np.int64, size) for name in FIELDS},
            np.fromiter((_CODES[sample.failure] for sample in samples), np.int64, size),
            np.frombuffer(b"".join(sample.chunks.tobytes() for sample in samples), np.int64),
            np.fromiter((len(sample.chunks) for sample in samples), np.int64, size),
        )

    def __len__(self) -> int:
        return len(self.failure)

    def __getitem__(self, name: str) -> Ints:
        return self.fields[name]

    def where(self, chosen: Flags | Ints) -> "Columns":
        """Return the rows of a mask, or of indices in that order."""
        rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        ends = np.cumsum(self.chunk_counts)
        counts = self.chunk_counts[rows]
        # The index of each chosen chunk: the beginning of its row, plus its offset in the row.
        begins = np.repeat(ends[rows] - counts, counts)
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return Columns(
            {name: values[rows] for name, values in self.fields.items()},
            self.failure[rows],
            self.chunks[begins + steps],
            counts,
        )

    def by_end(self) -> "Columns":
        """Return all rows, in the order in which they ended."""
        return self.where(np.argsort(self["done"], kind="stable"))

    def good(self) -> "Columns":
        """Return the requests that succeeded."""
        return self.where(self.failure == 0)

    def gaps(self) -> Ints:
        """Return nanoseconds between neighbouring chunks of one request, request by request."""
        if len(self.chunks) == 0:
            return self.chunks
        ends = np.cumsum(self.chunk_counts)
        begins = ends[self.chunk_counts > 0] - self.chunk_counts[self.chunk_counts > 0]
        inside = np.ones(len(self.chunks), np.bool_)
        inside[begins] = False
        return np.diff(self.chunks, prepend=self.chunks[0])[inside]

    def failures(self) -> dict[str, int]:
        """Return the number of failures, by kind."""
        counts = np.bincount(self.failure, minlength=len(_CODES))
        return {kind: int(counts[code]) for kind, code in _CODES.items() if kind and counts[code]}
