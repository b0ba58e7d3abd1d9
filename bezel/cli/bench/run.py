"""`bezel bench run`: measures one load, once or several times, on one server, and writes figures and checks to a file.

Owns the order: reach the server, plan, make prompts, measure each repeat, compose the result. Leaves out the
definitions of figures (`bezel.bench.metrics.definitions`), their validity (`bezel.bench.validity.checks`) and the
printed table (`bezel.cli.bench.render.table`).
"""

from __future__ import annotations

import functools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bezel.cli.bench.measure.cell_runner import write
from bezel.cli.bench.measure.checkpoint import ResultFiles
from bezel.cli.bench.measure.load_options import load_arguments, load_of
from bezel.cli.bench.measure.target import reach, renewals, target_arguments
from bezel.cli.bench.out_file import check_out
from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from bezel.bench.load.plan import Bodies, Load, TokenSource
    from bezel.bench.result.document import Cell, Finding, Result, Slo
    from bezel.bench.result.sample import Measured
    from bezel.bench.sweep.journal import Ledger
    from bezel.cli.bench.measure.target import TargetConnection
    from bezel.cli.bench.render.status_line import Line
    from bezel.pulumi_engine.project import Project

# Figures whose spread over the repeats is reported.
_REPEATED = (
    *("requests_per_second", "output_tokens_per_second", "input_tokens_per_second"),
    *("ttft_p50", "tpot_p50", "e2e_p50"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench run`."""
    target_arguments(parser)
    load_arguments(parser)
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="measure the load so often (default: 1)")
    parser.add_argument(
        "--slo", action="append", default=[], metavar="METRIC=MS", help="limit for goodput, e.g. ttft=500; repeatable"
    )
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the result, and its samples beside it")
    parser.add_argument("--json", action="store_true", help="print the result instead of a table")


class LoadSender(Protocol):
    """Sender of the load in place of this process."""

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        """Do what `bezel.bench.client.load_engine.run_load` does."""

    def told(self, result: Result) -> Result:
        """Return the result with its client and notes on the sender."""


def run(project: Project, options: argparse.Namespace) -> int:
    """Measure, write, print. Exit code 0: every cell is ok; 1: one failed or is missing, and the table shows why.

    Raises:
        UserError: Nothing could be measured.
    """
    return run_by(project, options)


def run_by(project: Project, options: argparse.Namespace, way: LoadSender | None = None) -> int:
    """Do what `run` does, with the load sent by `way`, or by this process where it is None."""
    from bezel.cli.bench.render.status_line import Line

    slos = [_slo(text) for text in options.slo]
    if options.repeats < 1:
        raise UserError(f"--repeats {options.repeats} measures nothing. Give 1 or more.")
    if options.out:
        check_out(options.out)
    reached = reach(project, options)
    load = load_of(options, reached.target)
    show, beside = Line(sys.stderr), ResultFiles(options.out)
    with beside.ledger(_settings(load, options)) as ledger:
        # Cells of an earlier process used the prompts of that process.
        load = replace(load, prompts=replace(load.prompts, run=options.run_id or ledger.run))
        try:
            result, early = _measure(project, options, reached, load, slos, show, way, beside, ledger)
        except BaseException:
            beside.forget(unless_kept=True)
            raise
        finally:
            show.end()
    if options.out:
        result = write(result, beside.samples(result.cells), options.out)
        if early:
            beside.goes_on()
        else:
            beside.forget()
    if options.json:
        sys.stdout.write(result.as_json())
    else:
        from bezel.cli.bench.render.table import table

        sys.stdout.write(table(result))
        if options.out:
            sys.stdout.write(f"\nwritten: {options.out}, samples in {result.samples.file if result.samples else '-'}\n")
    return 0 if not early and all(cell.state == "ok" for cell in result.cells) else 1


def _measure(
    project: Project,
    options: argparse.Namespace,
    reached: TargetConnection,
    load: Load,
    slos: Sequence[Slo],
    show: Line,
    way: LoadSender | None,
    beside: ResultFiles,
    ledger: Ledger,
) -> tuple[Result, bool]:
    """The result, and whether it ended before every repeat was measured."""
    from bezel.bench.cell.measure import measure_load
    from bezel.bench.client.load_engine import run_load
    from bezel.bench.prompts.prompts import learn
    from bezel.bench.sweep.journal import Taken
    from bezel.cli.bench.measure.killed_run import attempted, keep_killed
    from bezel.cli.bench.measure.manifest import view

    show("asks the server what it is, and what it counts as a token")
    server = view(project, options, reached, title=f"{load.target.model}: one load")
    vocabulary = None if load.prompts.kind == "file" else learn(load, reached.ask)
    known = {one.cell.id: one.cell for one in ledger.taken}
    cells: list[Cell] = []
    ended = ""
    for repeat in range(options.repeats):
        # Each repeat has its own prompts, else the prefix cache would distort it; and its own arrivals.
        own = f"{load.prompts.run}/{repeat}" if repeat else load.prompts.run
        of_repeat = replace(load, prompts=replace(load.prompts, run=own, seed=load.prompts.seed + repeat))
        if options.repeats > 1:
            show.prefix = f"repeat {repeat + 1} of {options.repeats}: "
        name = f"run-r{repeat}" if options.repeats > 1 else "run"
        if name in known:
            cells.append(known[name])
            continue
        before, again = ledger.begin(name, None), bool(options.run_id)
        if before:
            last = attempted(of_repeat, before - 1, again=again)
            keep_killed(beside, name, before, last, server, vocabulary, slos, simulated=reached.simulated)
        begun = time.monotonic()
        try:
            measured, told = measure_load(
                name,
                attempted(of_repeat, before, again=again),
                server,
                reached.headers,
                show,
                vocabulary=vocabulary,
                repeat=repeat,
                slos=slos,
                send=way.send if way else functools.partial(run_load, spill=beside.spill(name)),
            )
        except UserError as error:
            if not cells:
                raise
            ended = f"{name} could not be measured: {error}"
            break
        for text in told:
            ledger.note(text)
        beside.keep(measured)
        beside.clear(name)
        cells.append(measured.cell)
        if measured.cell.client and measured.cell.client.interrupted:
            ended = "It was interrupted."
            break
        ledger.end(Taken(measured.cell, time.monotonic() - begun))
    # Late import: the load is sent before the modules that describe it are imported.
    from bezel.bench.result.document import Result

    result = Result(
        kind="run",
        nature="simulated" if reached.simulated else "measured",
        manifest=server.manifest,
        cells=cells,
        findings=_repeats(cells),
        notes=[*([ended] if ended else []), *ledger.notes, *renewals(reached.headers)],
    )
    return way.told(result) if way else result, bool(ended)


def _settings(load: Load, options: argparse.Namespace) -> dict[str, Any]:
    """Settings that make loads the same: every one but the repeats and the name that separates their prompts."""
    from bezel.bench.load.plan import to_json

    sent = replace(load, prompts=replace(load.prompts, run=options.run_id))
    return {"load": json.loads(to_json(sent)), "slo": sorted(options.slo)}


def _repeats(cells: Sequence[Cell]) -> list[Finding]:
    """Findings over the repeats: mean and interval of the main figures, over the cells that are ok."""
    from bezel.bench.metrics.statistics import CONFIDENCE, of_repeats
    from bezel.bench.result.document import Finding

    good = [cell for cell in cells if cell.state == "ok"]
    findings = []
    for name in _REPEATED:
        values = [value for cell in good if (value := cell.value(name)) is not None]
        interval = of_repeats(values)
        if interval is None:
            continue
        mean, unit = sum(values) / len(values), good[0].metrics[name].unit
        findings.append(
            Finding(
                name=f"repeats of {name}",
                text=f"{name}: {mean:.4g} {unit} over {len(values)} repeats, {CONFIDENCE:.0%} interval "
                f"{max(0.0, interval[0]):.4g} to {interval[1]:.4g}",
                numbers={"mean": mean, "low": max(0.0, interval[0]), "high": interval[1], "repeats": len(values)},
                cells=[cell.id for cell in good],
            )
        )
    return findings


def _slo(text: str) -> Slo:
    from bezel.bench.result.document import Slo

    name, _, limit = text.partition("=")
    try:
        return Slo(metric=name, limit_ms=float(limit))
    except ValueError:
        raise UserError(
            f"--slo {text!r} is no limit. Write METRIC=MILLISECONDS with ttft, ttfc, tpot, e2e or itl_max: ttft=500."
        ) from None
