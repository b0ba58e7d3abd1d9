"""Samples as columns: one array a field, so that a million requests are counted in milliseconds.

Owns the conversion and the selection of rows. Leaves every definition of a figure to bezel_bench.metrics.definitions.
"""

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bezel_bench.result.sample import CANCELLED, INSTANTS, KINDS, Sample

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FIELDS = (
    *("index", "worker", "user", "turn", "group"),
    *INSTANTS,
    *("status", "prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "asked_tokens"),
)
_VALUES = operator.attrgetter(*FIELDS)
_CODES = {kind: code for code, kind in enumerate(("", *KINDS))}


class Columns:
    """Requests by field; instants in nanoseconds (0: not reached), counts -1 where the server did not report them.

    Attributes:
        fields: One array of int64 for each of `FIELDS`.
        failure: Each request's index in `("", *KINDS)`: 0 is a success.
        chunk_counts: The number of chunks of each request.
    """

    def __init__(
        self,
        fields: Mapping[str, Ints],
        failure: Ints,
        chunks: Ints,
        chunk_counts: Ints,
        *,
        chunk_places: Ints | None = None,
    ) -> None:
        """Take arrays as they are.

        Args:
            fields: As of the attributes; so are `failure` and `chunk_counts`.
            failure: See above.
            chunks: The instants of all chunks with a token, request by request.
            chunk_counts: See above.
            chunk_places: The place of each request's first chunk in `chunks`, where that holds others, too.
        """
        self.fields, self.failure, self.chunk_counts = fields, failure, chunk_counts
        self._chunks, self._is_part = chunks, chunk_places is not None
        self._places = np.cumsum(chunk_counts) - chunk_counts if chunk_places is None else chunk_places

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Columns":
        """Convert samples to columns, in their order."""
        size, values = len(samples), itertools.chain.from_iterable(map(_VALUES, samples))
        table = np.fromiter(values, np.int64, size * len(FIELDS)).reshape(size, len(FIELDS)).T.copy()
        codes = map(_CODES.__getitem__, map(operator.attrgetter("failure"), samples))
        chunks = [sample.chunks for sample in samples]
        return cls(
            dict(zip(FIELDS, table, strict=True)),
            np.fromiter(codes, np.int64, size),
            np.frombuffer(b"".join(chunks), np.int64),
            np.fromiter(map(len, chunks), np.int64, size),
        )

    def __len__(self) -> int:
        return len(self.failure)

    def __getitem__(self, name: str) -> Ints:
        return self.fields[name]

    @functools.cached_property
    def chunks(self) -> Ints:
        """Return the instants of all chunks with a token, request by request."""
        return self._chunks[self._chunk_places(self.chunk_counts)] if self._is_part else self._chunks

    @functools.cached_property
    def successes(self) -> "Columns":
        """Return the requests that succeeded, in the order in which they ended."""
        rows = np.flatnonzero(self.failure == 0)
        return self.where(rows[np.argsort(self["done"][rows], kind="stable")])

    def where(self, chosen: Flags | Ints) -> "Columns":
        """Return the rows of a mask, or of indices in that order."""
        rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        fields = {name: values[rows] for name, values in self.fields.items()}
        return Columns(
            fields, self.failure[rows], self._chunks, self.chunk_counts[rows], chunk_places=self._places[rows]
        )

    def cancellations(self) -> Flags:
        """Return which requests the client ended as the load asks for."""
        is_cancelled: Flags = self.failure == _CODES[CANCELLED]
        return is_cancelled

    def good(self) -> "Columns":
        """Return the requests that succeeded."""
        return self.where(self.failure == 0)

    def gaps(self) -> Ints:
        """Return nanoseconds between neighbouring chunks of one request, request by request."""
        return np.diff(self._chunks)[self._chunk_places(np.maximum(self.chunk_counts - 1, 0))]

    def _chunk_places(self, counts: Ints) -> Ints:
        """Return the places of the first chunks of each request, so many of each."""
        places = np.repeat(self._places - np.cumsum(counts) + counts, counts)
        places += np.arange(len(places))
        return places

    def failures(self) -> dict[str, int]:
        """Return the number of failures, by kind."""
        counts = np.bincount(self.failure, minlength=len(_CODES))
        return {kind: int(counts[code]) for kind, code in _CODES.items() if kind and counts[code]}
