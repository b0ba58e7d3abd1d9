"""Read answers with the engine that this Python imports: one line of JSON an answer in, one with its sample out.

An answer is `pieces` (Latin-1) with `at`, their instants, which are read as from the engine's own buffer; or without,
then they come over a socket, each read alone, and instants are shown by their order. The first line out is the engine.
"""

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3] / "packages" / "bench" / "tests"))

import bezel_bench
from bench_support.turned_loop import hear
from bezel_bench.client.response_buffer import ResponseBuffer
from bezel_bench.result.sample import INSTANTS, Sample


def read(pieces: list[bytes], instants: list[int], *, keeps: bool) -> tuple[Sample, str]:
    """The sample and the text of pieces with instants."""
    buffer = ResponseBuffer(Sample(0, status=200), b"", keeps=keeps)
    for at, piece in zip(instants, pieces, strict=True):
        if not (buffer.alike and buffer.alike.event(at, piece)) and buffer.keep(at, piece):
            buffer.read()
    buffer.at = instants[-1] + 1
    buffer.read()
    return buffer.sample, buffer.text


def row_of(sample: Sample, *, order: bool) -> dict[str, Any]:
    """All fields; instants by their order alone if asked for."""
    row = {field.name: getattr(sample, field.name) for field in fields(Sample)} | {"chunks": [*sample.chunks]}
    if order:
        places = {at: place for place, at in enumerate(sorted({0, *(row[name] for name in INSTANTS), *row["chunks"]}))}
        row |= {name: places[row[name]] for name in INSTANTS} | {"chunks": [places[at] for at in row["chunks"]]}
    return row


print(bezel_bench.ENGINE, flush=True)
for line in sys.stdin:
    answer = json.loads(line)
    parts = [piece.encode("latin-1") for piece in answer["pieces"]]
    if "at" in answer:
        result = [
            [row_of(made, order=False), text]
            for made, text in (read(parts, answer["at"], keeps=keeps) for keeps in (False, True))
        ]
    else:
        result = [[row_of(hear(*parts, close=True), order=True), ""]]
    print(json.dumps(result), flush=True)
