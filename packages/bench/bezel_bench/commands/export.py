"""`bezel bench export`: writes a result as CSV, OpenMetrics or `vllm bench serve` has it; its requests; its options."""

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Literal

import yaml

from bezel_base.command_line.exits import write_output
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.commands.targets import Targets
from bezel_bench.metrics.request_rows import COLUMNS, request_rows
from bezel_bench.report.export import as_csv, as_vllm, of_stage
from bezel_bench.report.open_metrics import as_open_metrics
from bezel_bench.result.columns import Columns
from bezel_bench.result.document import Cell, Result, load
from bezel_bench.result.sample_file import read_samples


def run(_: Targets, options: argparse.Namespace) -> Literal[0]:
    """Convert the result, and write or print it.

    Raises:
        UserError: The result cannot be read, or has no such cell, or no samples.
    """
    result = load(options.result)
    if options.format == "config":
        text = _config(result, options.result)
    elif options.format.startswith("requests"):
        text = _requests(result, options.result, options.cell, as_lines=options.format == "requests-jsonl")
    elif options.format == "vllm":
        text = _vllm(result, options.result, options.cell)
    else:
        cells = result.cells if options.cell is None else [_cell_or_stage(result, options.cell)]
        selected = result.model_copy(update={"cells": cells})
        text = as_csv(selected) if options.format == "csv" else as_open_metrics(selected)
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_output("--out", options.out, text)
    return 0


def _config(result: Result, path: Path) -> str:
    if not result.manifest.options:
        consequence = "the result keeps no options: it was measured with the defaults, or by an earlier version."
        raise UserError(Problem(str(path), None, consequence, "see `command` in its manifest."))
    return yaml.safe_dump(result.manifest.options, sort_keys=False, allow_unicode=True)


def _samples(result: Result, path: Path) -> dict[str, tuple[Columns, int]]:
    if result.samples is None:
        consequence = "it names no file of samples, which this format lists one by one."
        raise UserError(Problem(str(path), None, consequence, "measure again with --out."))
    return read_samples(path.with_name(result.samples.file), result.samples.sha256)


def _requests(result: Result, path: Path, name: str | None, *, as_lines: bool) -> str:
    """The requests of all cells, or of one or a stage, as CSV or as lines of JSON."""
    samples, stages = _samples(result, path), _stages(result)
    if name in stages:
        cell, number = stages[name]
        rows, began = samples[cell.id]
        cells, samples = [cell], {cell.id: (of_stage(cell, number, rows, began)[1], began)}
    else:
        cells = result.cells if name is None else [_cell(result, name)]
    measured = [cell for cell in cells if cell.id in samples]
    listed = (row for cell in measured for row in request_rows(cell, *samples[cell.id], gaps=as_lines))
    if as_lines:
        return "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in listed)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()


def _vllm(result: Result, path: Path, name: str | None) -> str:
    stages = _stages(result)
    cell, number = stages[name] if name in stages else (_cell(result, name), 1)
    if len(cell.stages) > 1 and name not in stages:
        consequence = f"its load has {len(cell.stages)} stages, and this format has the figures of one level."
        choices = ", ".join(part.id for part in cell.parts())
        raise UserError(Problem("--cell", name or cell.id, consequence, f"choose a stage: {choices}."))
    samples = _samples(result, path)
    if cell.id not in samples:
        consequence = f"the cell is {cell.state} and has no samples ({cell.reason})."
        raise UserError(Problem("--cell", cell.id, consequence, "choose a cell that was measured."))
    rows, began = samples[cell.id]
    if cell.stages:
        stage, stage_rows, most = of_stage(cell, number, rows, began)
        return json.dumps(as_vllm(result, stage, stage_rows, began, most), allow_nan=False) + "\n"
    return json.dumps(as_vllm(result, cell, rows, began), allow_nan=False) + "\n"


def _stages(result: Result) -> dict[str, tuple[Cell, int]]:
    """Return the stages of all cells by their ids, as the CSV has them: the cell and the number."""
    return {
        part.id: (cell, number) for cell in result.cells if cell.stages for number, part in enumerate(cell.parts(), 1)
    }


def _cell_or_stage(result: Result, name: str) -> Cell:
    stages = _stages(result)
    if name not in stages:
        return _cell(result, name)
    cell, number = stages[name]
    # The server's metrics are of the whole load.
    return cell.parts()[number - 1].model_copy(update={"server_series": None})


def _cell(result: Result, name: str | None) -> Cell:
    cells = {cell.id: cell for cell in result.cells}
    if name is None and len(cells) == 1:
        return result.cells[0]
    if name not in cells:
        consequence = "there is no such cell." if name else f"the result has {format_count(len(cells), 'cells')}."
        choices = ", ".join([*cells, *_stages(result)])
        raise UserError(Problem("--cell", name or NOT_SET, consequence, f"choose one of {choices}."))
    return cells[name]
