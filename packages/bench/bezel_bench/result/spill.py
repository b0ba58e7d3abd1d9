"""Spill file of a running load, which survives a kill: one line a request, written as it ends.

Owns the file's shape. It is not a result: a reader loads it once (`read_spilled`) and either makes a result of it or
discards it. Lines go to the kernel once a second or when there are many, so that a kill loses at most a second and the
sender is delayed by microseconds; a line torn by a kill is left out.
"""

import contextlib
import os
from array import array
from dataclasses import fields
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final

import orjson

from bezel_bench.result.sample import ClientHealth, Measured, Sample

_EVERY_NS: Final = 1_000_000_000
_MAX_BYTES: Final = 65_536
_NAMES: Final = tuple(field.name for field in fields(Sample) if field.name != "chunks")


def line_of(sample: Sample) -> bytes:
    """Return a sample as one line of JSON: its fields in their order, then the instants of its chunks."""
    # Named one by one: `attrgetter` takes twice as long.
    values = [
        sample.index, sample.worker, sample.user, sample.turn, sample.group,
        sample.planned, sample.begun, sample.sent, sample.departed,
        sample.first_after, sample.first, sample.first_content, sample.last, sample.done,
        sample.status, sample.failure, sample.detail,
        sample.prompt_tokens, sample.output_tokens, sample.cached_tokens, sample.reasoning_tokens, sample.asked_tokens,
        sample.chunks.tolist(),
    ]  # fmt: skip
    return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)


def sample_of(row: list[Any]) -> Sample:
    """Return the sample of a parsed line.

    Raises:
        ValueError: The row has another number of fields.
    """
    *values, chunks = row
    return Sample(**dict(zip(_NAMES, values, strict=True)), chunks=array("q", chunks))


class Spill:
    """The spill file of one sender."""

    def __init__(self, path: Path) -> None:
        """Create the file anew.

        Raises:
            OSError: It cannot be written.
        """
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self._lines: list[bytes] = []
        self._size = self._written = 0

    def begin(self, began: int) -> None:
        """Note when the clock started."""
        os.write(self._file, orjson.dumps({"began": began}) + b"\n")
        self._written = began

    def add(self, sample: Sample) -> None:
        """Store a request that has ended."""
        line = line_of(sample)
        self._lines.append(line)
        self._size += len(line)
        now = monotonic_ns()
        if self._size >= _MAX_BYTES or now - self._written >= _EVERY_NS:
            self._write(now)

    def close(self) -> None:
        """Close the file; a caller that has the samples itself removes it."""
        self._write(0)
        os.close(self._file)

    def _write(self, now: int) -> None:
        # A full disk loses the spilled samples, and not the run.
        with contextlib.suppress(OSError):
            os.write(self._file, b"".join(self._lines))
        self._lines.clear()
        self._size, self._written = 0, now


def read_spilled(paths: list[Path]) -> Measured | None:
    """Read the samples that the senders of one load had spilled; None where there is no request."""
    samples: list[Sample] = []
    begins: list[int] = []
    for path in paths:
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(record, dict):
                begins.append(record["began"])
            else:
                samples.append(sample_of(record))
    if not samples:
        return None
    began, ended = min(begins), max(sample.done for sample in samples)
    health = ClientHealth(workers=len(paths), wall_seconds=(ended - began) / 1e9, interrupted=True)
    return Measured(sorted(samples, key=lambda sample: sample.index), began, ended, health)
