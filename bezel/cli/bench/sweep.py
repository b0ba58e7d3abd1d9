"""`bezel bench sweep`: measures throughput over contexts and users of one server, on the full grid or where needed.

Owns the order: reach the server, read its limits, sweep, summarize, write. The journal and the samples of the cells
are beside FILE.json; the same command continues from them after a kill. Leaves out the choice of cells and the
conclusions (`bezel.bench.sweep`) and how a cell is measured (`bezel.cli.bench.measure.cell_runner`).
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.cli.bench.measure.cell_runner import (
    common_arguments,
    infeasible_contexts,
    measuring,
    numbers,
    reached_arm,
    write,
)
from bezel.cli.bench.measure.checkpoint import ResultFiles, amount, limit_arguments, limits_of, settings_of
from bezel.cli.bench.measure.target import reach
from bezel.cli.bench.out_file import check_out
from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.bench.result.document import Result
    from bezel.bench.sweep.grid import Grid
    from bezel.bench.sweep.run import Ended, Progress, Sweep
    from bezel.cli.bench.measure.variant import Variant
    from bezel.cli.bench.render.status_line import Line
    from bezel.pulumi_engine.project import Project

_BAR = 12


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench sweep`."""
    common_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE.json", help="the result; its journal beside it"
    )
    parser.add_argument("--contexts", default="", metavar="N,...", help="prompt tokens (default: 13, 4 to 16384)")
    parser.add_argument("--users", default="", metavar="N,...", help="(default: 12, 1 to 2048)")
    parser.add_argument("--output-tokens", type=int, default=128, metavar="N", help="of every answer (default: 128)")
    parser.add_argument(
        "--requests-per-user", type=int, default=3, metavar="N", help="of a cell (default: 3, fewer are not steady)"
    )
    parser.add_argument("--full", action="store_true", help="ask every cell that can be, infer nothing")
    parser.add_argument(
        "--error", type=float, default=3.0, metavar="PERCENT", help="known well enough: median error (default: 3)"
    )
    parser.add_argument(
        "--share", type=float, default=25.0, metavar="PERCENT", help="at most, of a full sweep's requests (default: 25)"
    )
    limit_arguments(parser)
    parser.add_argument(
        "--metric",
        choices=("requests_per_second", "output_tokens_per_second", "input_tokens_per_second"),
        default="output_tokens_per_second",
        help="that the surface is of (default: output_tokens_per_second)",
    )


def run(project: Project, options: argparse.Namespace) -> int:
    """Sweep, write, print. Exit code 1: no cell is ok, or the server was lost; 130: it was interrupted.

    Raises:
        UserError: Nothing can be measured, or the journal is of another sweep.
    """
    from bezel.bench.sweep.run_once import INTERRUPTED
    from bezel.cli.bench.render.status_line import Line

    check_out(options.out)
    for option, value in (("--error", options.error), ("--share", options.share)):
        if not 0 < value <= 100:
            raise UserError(f"{option} {value:g} is no percentage to be kept. Give one above 0, up to 100.")
    grid = _grid(options)
    reached = reach(project, options)
    show, beside = Line(sys.stderr), ResultFiles(options.out)
    try:
        arm = reached_arm(project, options, reached, grid.wanted((len(grid.contexts) - 1, 0)), "a sweep", show)
        ended, result = _swept(options, _sweep(options, grid, arm), arm, beside, show)
    except KeyboardInterrupt:
        show.end()
        beside.goes_on()
        raise
    finally:
        show.end()
    if options.json:
        sys.stdout.write(result.as_json())
    else:
        from bezel.cli.bench.render.grid import grid_table

        sys.stdout.write(f"{grid_table(result, options.metric)}\nwritten: {options.out}\n")
    if ended.early:
        beside.goes_on()
        return 130 if ended.reason == INTERRUPTED else 1
    return 0 if any(cell.state == "ok" for cell in result.cells) else 1


def _grid(options: argparse.Namespace) -> Grid:
    from bezel.bench.sweep.grid import CONTEXTS, USERS, Grid

    return Grid(
        numbers(options.contexts, "--contexts") if options.contexts else CONTEXTS,
        numbers(options.users, "--users") if options.users else USERS,
        output_tokens=options.output_tokens,
        requests_per_user=options.requests_per_user,
        seed=options.seed,
    )


def _sweep(options: argparse.Namespace, grid: Grid, arm: Variant) -> Sweep:
    """The sweep that the options describe, within the server's limits.

    Raises:
        UserError: A limit cannot be kept.
    """
    from bezel.bench.sweep.grid import Bounds, refusals
    from bezel.bench.sweep.run import Sweep

    manifest = arm.server.manifest
    platform, limits = manifest.platform, limits_of(options, manifest.price.usd_per_hour)
    known = platform.instances is not None and platform.concurrency is not None
    bounds = Bounds(
        arm.server.served.max_model_len,
        arm.server.kv_cache_tokens,
        (platform.instances or 0) * (platform.concurrency or 0) if known else None,
        infeasible_contexts([grid.wanted((row, 0)) for row in range(len(grid.contexts))], options, arm),
    )
    if not options.full:
        share = options.share / 100
        limits = replace(limits, requests=int(grid.full_requests(refusals(grid, bounds)) * share))
    return Sweep(grid, bounds, limits, options.metric, None if options.full else options.error / 100)


def _swept(
    options: argparse.Namespace, sweep: Sweep, arm: Variant, beside: ResultFiles, show: Line
) -> tuple[Ended, Result]:
    from bezel.bench.result.document import Result
    from bezel.bench.sweep.run import run_sweep
    from bezel.bench.sweep.summarize import conclude

    def progress(now: Progress) -> None:
        show.prefix = f"{progress_bar(sweep, now)} "

    with beside.ledger({**settings_of(arm, options), **asdict(sweep.grid)}) as ledger:
        measure = measuring(lambda _: arm, options, beside.keep, ledger.note, show)
        ended = run_sweep(sweep, measure, ledger, time.monotonic, progress)
    told = conclude(ended)
    result = Result(
        kind="sweep",
        nature="simulated" if arm.reached.simulated else "measured",
        manifest=arm.server.manifest,
        cells=told.cells,
        inferred=told.inferred,
        findings=told.findings,
        notes=[*told.notes, *ledger.notes],
    )
    return ended, write(result, beside.samples(told.cells), options.out)


def progress_bar(sweep: Sweep, now: Progress) -> str:
    """Render a sweep's progress: cells done and known, time and cost so far and at most to come."""
    limits = sweep.limits
    shares = [now.measured / max(1, now.measured + now.open)]
    if limits.requests:
        shares.append(now.sent / limits.requests)
    if (left := limits.seconds_left(now.seconds)) is not None:
        shares.append(now.seconds / max(now.seconds + left, 1e-9))
    filled = min(_BAR, round(_BAR * max(shares)))
    error = "" if now.error is None else f", error {now.error:.1%}"
    ahead = "" if now.seconds_left is None else f"; at most {amount(now.seconds_left, limits)} left"
    bar = f"[{'#' * filled}{'.' * (_BAR - filled)}] {now.measured} cells{error}, {amount(now.seconds, limits)}{ahead}"
    return bar if now.place is None else f"{bar} | {sweep.grid.told(now.place)}:"
