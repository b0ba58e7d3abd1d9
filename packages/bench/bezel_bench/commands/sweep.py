"""`bezel bench sweep`: measures throughput over contexts and users of one server, on the full grid or where needed.

Owns the order: reach the server, read its limits, sweep, summarize, write. The journal and the samples of the cells
are beside FILE.json; the same command continues from them after a kill. Leaves out the choice of cells and the
conclusions (`bezel_bench.sweep`) and how a cell is measured (`bezel_bench.commands.measure.cell_runner`).
"""

import argparse
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from typing import Literal

from bezel_base import ending_signals
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.status_line import StatusLine
from bezel_base.text.counting import format_count
from bezel_bench.commands.measure.cell_runner import (
    Variant,
    infeasible_contexts,
    load_of,
    measuring,
    numbers,
    variant_of,
)
from bezel_bench.commands.measure.checkpoint import ResultFiles, check_out, finish
from bezel_bench.commands.measure.limits import amount, check_limits, limits_of, settings_of
from bezel_bench.commands.measure.target import reach
from bezel_bench.commands.measure.usage import as_usage, check_options, draft_target
from bezel_bench.commands.measure.with_platform import with_platform_series
from bezel_bench.commands.render.tables import grid_blocks
from bezel_bench.commands.targets import Targets
from bezel_bench.result.document import Result
from bezel_bench.sweep.grid import CONTEXTS, USERS, Bounds, Grid, refusals
from bezel_bench.sweep.measurement.run_once import INTERRUPTED
from bezel_bench.sweep.run import Ended, Progress, Sweep, run_sweep
from bezel_bench.sweep.summarize import conclude

_BAR = 12


def run(targets: Targets, options: argparse.Namespace) -> Literal[0, 1, 130]:
    """Sweep, write, print; return the exit code.

    Raises:
        UserError: Nothing can be measured, or the journal is of another sweep.
    """
    grid = grid_of(options)
    check_out(options.out, force=options.force)
    reached = reach(targets, options)
    show, files = StatusLine(sys.stderr), ResultFiles(options.out, targets.typed, force=options.force)
    try:
        variant = variant_of(targets, options, reached, grid.request((len(grid.contexts) - 1, 0)), "a sweep", show)
        ended, result = _run_sweep(options, _sweep(options, grid, variant), variant, files, show)
        if ended.reason != INTERRUPTED:
            result = with_platform_series(result, targets, options, reached.outputs, show)
    except KeyboardInterrupt:
        show.end()
        files.print_continuation()
        raise
    finally:
        show.end()
    finish(result, files, options, partial(grid_blocks, metric=options.metric))
    if ended.early:
        files.print_continuation()
        return ending_signals.INTERRUPTED if ended.reason == INTERRUPTED else 1
    return 0 if any(cell.state == "ok" for cell in result.cells) else 1


def grid_of(options: argparse.Namespace) -> Grid:
    """The grid that the options describe.

    Raises:
        OptionsError: They are wrong.
        LoadError: A cell of it cannot be sent.
    """
    check_options(options)
    with as_usage():
        if not 0 < options.share <= 100:
            problem = Problem("--share", f"{options.share:g}", "expected a percentage.", "give more than 0, up to 100.")
            raise UserError(problem)
        grid = _grid(options)
        check_limits(options)
        load_of(grid.request((0, 0)), options, draft_target(options))
    return grid


def _grid(options: argparse.Namespace) -> Grid:
    return Grid(
        numbers(options.contexts, "--contexts") if options.contexts else CONTEXTS,
        numbers(options.users, "--users") if options.users else USERS,
        output_tokens=options.output_tokens,
        requests_per_user=options.requests_per_user,
        seed=options.seed,
    )


def _sweep(options: argparse.Namespace, grid: Grid, variant: Variant) -> Sweep:
    """The sweep that the options describe, within the server's limits.

    Raises:
        UserError: A limit cannot be kept.
    """
    manifest = variant.server.manifest
    platform, limits = manifest.platform, limits_of(options, manifest.price.usd_per_hour)
    is_capacity_known = platform.instances is not None and platform.concurrency is not None
    bounds = Bounds(
        variant.server.max_model_len,
        variant.server.kv_cache_tokens,
        (platform.instances or 0) * (platform.concurrency or 0) if is_capacity_known else None,
        infeasible_contexts([grid.request((row, 0)) for row in range(len(grid.contexts))], options, variant),
    )
    if not options.full:
        share = options.share / 100
        limits = replace(limits, requests=int(grid.full_requests(refusals(grid, bounds)) * share))
    return Sweep(grid, bounds, limits, options.metric, options.full)


def _run_sweep(
    options: argparse.Namespace, sweep: Sweep, variant: Variant, files: ResultFiles, show: StatusLine
) -> tuple[Ended, Result]:
    def progress(now: Progress) -> None:
        show.prefix = f"{progress_bar(sweep, now)} "

    with files.ledger({**settings_of(variant, options), **asdict(sweep.grid)}) as ledger:
        measure = measuring(lambda _: variant, options, files.keep, ledger.note, show)
        ended = run_sweep(sweep, measure, ledger, time.monotonic, progress)
    conclusion = conclude(ended)
    return ended, Result(
        kind="sweep",
        nature="simulated" if variant.reached.simulated else "measured",
        manifest=variant.server.manifest,
        cells=conclusion.cells,
        inferred=conclusion.inferred,
        findings=conclusion.findings,
        notes=[*conclusion.notes, *ledger.notes],
    )


def progress_bar(sweep: Sweep, now: Progress) -> str:
    """Render a sweep's progress: cells done, time and cost so far and at most to come."""
    limits = sweep.limits
    shares = [now.measured / max(1, now.measured + now.open)]
    if limits.requests:
        shares.append(now.sent / limits.requests)
    if (left := limits.seconds_left(now.seconds)) is not None:
        shares.append(now.seconds / max(now.seconds + left, 1e-9))
    filled = min(_BAR, round(_BAR * max(shares)))
    ahead = "" if now.seconds_left is None else f"; at most {amount(now.seconds_left, limits)} left"
    bar = (
        f"[{'#' * filled}{'.' * (_BAR - filled)}] {format_count(now.measured, 'cells')}, "
        f"{amount(now.seconds, limits)}{ahead}"
    )
    return bar if now.place is None else f"{bar} | {sweep.grid.describe(now.place)}:"
