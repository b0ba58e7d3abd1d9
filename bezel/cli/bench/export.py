"""`bezel bench export`: writes a result as CSV, or in the format of `vllm bench serve`, for tools that read these."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.bench.result.document import Cell, Result
    from bezel.pulumi_engine.project import Project


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench export`."""
    parser.add_argument("result", type=Path, metavar="RESULT.json", help="what `bezel bench` wrote")
    parser.add_argument(
        "--format", choices=("csv", "vllm"), default="csv", help="a row a cell, or one cell's JSON (default: csv)"
    )
    parser.add_argument("--cell", metavar="ID", help="of --format vllm, where the result has several")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it there instead of printing it")


def run(project: Project, options: argparse.Namespace) -> int:
    """Convert the result, and write or print it.

    Raises:
        UserError: The result cannot be read, or has no such cell, or no samples.
    """
    from bezel.bench.result.document import load

    del project
    result = load(options.result)
    text = _vllm(result, options.result, options.cell) if options.format == "vllm" else _csv(result, options.cell)
    if options.out is None:
        sys.stdout.write(text)
        return 0
    from bezel.atomic_write import write_whole

    try:
        write_whole(options.out, text.encode())
    except OSError as error:
        raise UserError(f"--out {options.out} cannot be written ({error.strerror}). Name another place.") from None
    return 0


def _csv(result: Result, cell: str | None) -> str:
    from bezel.bench.report.export import as_csv

    return as_csv(result if cell is None else result.model_copy(update={"cells": [_cell(result, cell)]}))


def _vllm(result: Result, path: Path, name: str | None) -> str:
    from bezel.bench.report.export import as_vllm
    from bezel.bench.result.sample_file import read_samples

    cell = _cell(result, name)
    if result.samples is None:
        raise UserError(
            f"{path} names no file of samples, which this shape lists one by one. Measure again with --out."
        )
    samples = read_samples(path.with_name(result.samples.file), result.samples.sha256)
    if cell.id not in samples:
        raise UserError(
            f"cell {cell.id} is {cell.state} and has no samples ({cell.reason}). Name one that was measured."
        )
    return json.dumps(as_vllm(result, cell, *samples[cell.id]), allow_nan=False) + "\n"


def _cell(result: Result, name: str | None) -> Cell:
    cells = {cell.id: cell for cell in result.cells}
    if name is None and len(cells) == 1:
        return result.cells[0]
    if name not in cells:
        asked = f"--cell {name}: there is no such cell" if name else f"the result has {len(cells)} cells"
        raise UserError(f"{asked}. Name one with --cell: {', '.join(cells)}.")
    return cells[name]
