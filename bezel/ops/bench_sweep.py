"""`bezel bench sweep`: throughput over contexts and users of one server, whole or as far as it needs to be known.

Owns the order: reach the server, learn what bounds it, sweep, conclude, write. Beside FILE.json lie its journal and
the samples of its cells, from which the same command goes on after a kill. Leaves out what is asked and concluded
(`bezel.bench.sweep`) and how a cell is measured (`bezel.ops.bench_cells`).
"""

from __future__ import annotations

import secrets
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.ops.bench_cells import common_arguments, in_a_folder, measuring, numbers, reached_arm, unmakable, write
from bezel.ops.bench_target import reach
from bezel.told import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.bench.cell import MeasuredCell
    from bezel.bench.result import Result
    from bezel.bench.sweep.budget import Limits
    from bezel.bench.sweep.grid import Grid
    from bezel.bench.sweep.run import Progress, Sweep
    from bezel.ops.bench_cells import Arm
    from bezel.ops.bench_line import Line
    from bezel.ops.project import Project

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
    parser.add_argument("--max-minutes", type=float, metavar="M", help="of measuring, all runs of this sweep together")
    parser.add_argument("--max-usd", type=float, metavar="USD", help="at the server's price for the same time")
    parser.add_argument(
        "--metric",
        choices=("requests_per_second", "output_tokens_per_second", "input_tokens_per_second"),
        default="output_tokens_per_second",
        help="that the surface is of (default: output_tokens_per_second)",
    )


def run(project: Project, options: argparse.Namespace) -> int:
    """Sweep, write, print. Exit code 1: no cell is ok, or the server was lost.

    Raises:
        UserError: Nothing can be measured, or the journal is of another sweep.
    """
    from bezel.bench.sweep.run import LOST
    from bezel.ops.bench_line import Line

    in_a_folder(options.out)
    grid = _grid(options)
    reached = reach(project, options)
    show = Line(sys.stderr)
    try:
        arm = reached_arm(project, options, reached, grid.wanted((len(grid.contexts) - 1, 0)), "a sweep", show)
        result = _swept(options, _sweep(options, grid, arm), arm, show)
    except KeyboardInterrupt:
        show.end()
        sys.stderr.write("the same command goes on from here\n")
        raise
    finally:
        show.end()
    if options.json:
        sys.stdout.write(result.as_json())
    else:
        from bezel.ops.bench_grid import grid_table

        sys.stdout.write(f"{grid_table(result, options.metric)}\nwritten: {options.out}\n")
    lost = any(LOST in note for note in result.notes)
    return 0 if not lost and any(cell.state == "ok" for cell in result.cells) else 1


def _grid(options: argparse.Namespace) -> Grid:
    from bezel.bench.sweep.grid import CONTEXTS, USERS, Grid

    return Grid(
        numbers(options.contexts, "--contexts") if options.contexts else CONTEXTS,
        numbers(options.users, "--users") if options.users else USERS,
        output_tokens=options.output_tokens,
        requests_per_user=options.requests_per_user,
        seed=options.seed,
    )


def _sweep(options: argparse.Namespace, grid: Grid, arm: Arm) -> Sweep:
    """The sweep that the options ask for, within what the server allows.

    Raises:
        UserError: A limit cannot be kept.
    """
    from bezel.bench.sweep.budget import Limits
    from bezel.bench.sweep.grid import Bounds, refusals
    from bezel.bench.sweep.run import Sweep

    platform, usd_per_hour = arm.server.manifest.platform, arm.server.manifest.price.usd_per_hour
    if options.max_usd is not None and usd_per_hour is None and options.max_minutes is None:
        raise UserError(
            f"--max-usd {options.max_usd:g}: what the server costs is not known, so the limit cannot be kept. "
            "Give --usd-per-hour, or --max-minutes."
        )
    known = platform.instances is not None and platform.concurrency is not None
    bounds = Bounds(
        arm.server.served.max_model_len,
        arm.server.kv_cache_tokens,
        (platform.instances or 0) * (platform.concurrency or 0) if known else None,
        unmakable([grid.wanted((row, 0)) for row in range(len(grid.contexts))], options, arm),
    )
    limits = Limits(
        seconds=None if options.max_minutes is None else options.max_minutes * 60,
        usd=options.max_usd,
        usd_per_hour=usd_per_hour,
        requests=None if options.full else int(grid.full_requests(refusals(grid, bounds)) * options.share / 100),
    )
    return Sweep(grid, bounds, limits, options.metric, None if options.full else options.error / 100)


def _swept(options: argparse.Namespace, sweep: Sweep, arm: Arm, show: Line) -> Result:
    from bezel.bench.result import Result
    from bezel.bench.sample_file import read_samples, write_samples
    from bezel.bench.sweep.conclude import conclude
    from bezel.bench.sweep.journal import Journal
    from bezel.bench.sweep.run import run_sweep

    parts = _beside(options.out, ".cells")
    parts.mkdir(exist_ok=True)

    def keep(found: MeasuredCell) -> None:
        if found.samples is not None:
            write_samples(parts / f"{found.cell.id}.npz", {found.cell.id: (found.samples, found.began)})

    def progress(now: Progress) -> None:
        show.prefix = f"{progress_bar(sweep, now)} "

    notes: dict[str, None] = {}
    measure = measuring(lambda _: arm, options, keep, notes, show)
    with Journal(_beside(options.out, ".journal"), _settings(sweep, arm, options)) as journal:
        if journal.taken:
            sys.stderr.write(f"goes on after {len(journal.taken)} cells that were measured before\n")
        ended = run_sweep(sweep, measure, journal, time.monotonic, progress, secrets.token_hex(4))
    told = conclude(ended)
    result = Result(
        kind="sweep",
        nature="simulated" if arm.reached.simulated else "measured",
        manifest=arm.server.manifest,
        cells=told.cells,
        inferred=told.inferred,
        findings=told.findings,
        notes=[*told.notes, *notes],
    )
    files = [parts / f"{cell.id}.npz" for cell in told.cells if cell.requests]
    samples = {name: one for file in files if file.exists() for name, one in read_samples(file).items()}
    return write(result, samples, options.out)


def progress_bar(sweep: Sweep, now: Progress) -> str:
    """How far a sweep is: what is done, what is known, time and cost so far and at most to come."""
    limits = sweep.limits
    shares = [now.measured / max(1, now.measured + now.open)]
    if limits.requests:
        shares.append(now.sent / limits.requests)
    if (left := limits.seconds_left(now.seconds)) is not None:
        shares.append(now.seconds / max(now.seconds + left, 1e-9))
    filled = min(_BAR, round(_BAR * max(shares)))
    error = "" if now.error is None else f", error {now.error:.1%}"
    ahead = "" if now.seconds_left is None else f"; at most {_amount(now.seconds_left, limits)} left"
    bar = f"[{'#' * filled}{'.' * (_BAR - filled)}] {now.measured} cells{error}, {_amount(now.seconds, limits)}{ahead}"
    return bar if now.place is None else f"{bar} | {sweep.grid.told(now.place)}:"


def _amount(seconds: float, limits: Limits) -> str:
    usd = limits.cost(seconds)
    return f"{seconds / 60:.1f} min" + ("" if usd is None else f" {usd:.2f} USD")


def _settings(sweep: Sweep, arm: Arm, options: argparse.Namespace) -> dict[str, Any]:
    """What makes cells comparable; limits, error and metric may change from one run of a sweep to the next."""
    served = arm.server.served
    return {
        "url": arm.reached.target.url,
        "model": arm.reached.target.model,
        "endpoint": arm.reached.target.endpoint,
        **asdict(sweep.grid),
        "vllm_version": served.vllm_version,
        "max_model_len": served.max_model_len,
        "kv_cache_tokens": arm.server.kv_cache_tokens,
        "deadline": options.deadline,
        "workers": options.workers,
    }


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f"{out.stem}{suffix}")
