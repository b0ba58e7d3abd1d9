"""Measurement of the cells of sweeps, searches and comparisons on real servers.

Owns the load of such a cell (a closed or an open loop, unique prompts) and the options that all three share. Leaves
out how a load is measured: `bezel.bench.cell.cell`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bezel.cli.bench.measure.target import target_arguments
from bezel.cli.bench.measure.variant import Variant
from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from bezel.bench.cell.cell import MeasuredCell
    from bezel.bench.load.plan import Load
    from bezel.bench.result.columns import Columns
    from bezel.bench.result.document import Cell, Result, Slo
    from bezel.bench.sweep.cell_request import CellWanted, Measure
    from bezel.cli.bench.measure.checkpoint import ResultFiles
    from bezel.cli.bench.measure.target import TargetConnection
    from bezel.cli.bench.render.status_line import Line
    from bezel.pulumi_engine.project import Project


_LEAST_SECONDS = 1.0  # for a load: the time limit may be reached while its server starts


def common_arguments(parser: argparse.ArgumentParser, *, target_required: bool = True) -> None:
    """The options that sweeps, searches and comparisons share, those of the server included."""
    target_arguments(parser, required=target_required)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the prompts' words (default: 0)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that send (default: 1)")
    parser.add_argument("--deadline", type=float, default=300.0, metavar="S", help="of one request (default: 300)")
    parser.add_argument("--json", action="store_true", help="print the result instead of a table")


def reached_arm(
    project: Project, options: argparse.Namespace, reached: TargetConnection, wanted: CellWanted, title: str, show: Line
) -> Variant:
    """A reached server with its manifest and its vocabulary; `wanted` is any of its cells."""
    from bezel.bench.prompts.prompts import learn
    from bezel.cli.bench.measure.manifest import view

    show("asks the server what it is, and what it counts as a token")
    server = view(project, options, reached, title=f"{reached.target.model}: {title}")
    return Variant(reached, server, learn(load_of(wanted, options, reached), reached.ask))


def load_of(wanted: CellWanted, options: argparse.Namespace, reached: TargetConnection) -> Load:
    """The load of a cell.

    Raises:
        UserError: It cannot be sent; the text lists every problem.
    """
    from bezel.bench.load.plan import Closed, Load, Poisson, PromptPlan, Stop
    from bezel.bench.load.plan_rules import checked

    pattern = Closed(wanted.users or 1) if wanted.rate is None else Poisson(wanted.rate)
    return checked(
        Load(
            reached.target,
            pattern,
            Stop(wanted.requests, wanted.deadline_seconds),
            PromptPlan(
                "unique", wanted.context_tokens, wanted.output_tokens, seed=wanted.seed, run=wanted.run or wanted.id
            ),
            deadline_seconds=min(options.deadline, wanted.deadline_seconds or options.deadline),
            workers=options.workers,
        )
    )


def measuring(
    arm_of: Callable[[CellWanted], Variant],
    options: argparse.Namespace,
    keep: Callable[[MeasuredCell], None],
    note: Callable[[str], None],
    show: Callable[[str], None],
    slos: Sequence[Slo] = (),
) -> Measure:
    """Return the function that measures a cell.

    Args:
        arm_of: Returns the server of a cell, ready for requests.
        options: `workers` and `deadline`.
        keep: Stores each cell with its samples; called before the cell is returned.
        note: Takes notes about the prompts for the result's reader; called before `keep`.
        show: Takes progress messages.
        slos: Limits that a request must keep to count for goodput.
    """
    from bezel.bench.cell.measure import measure_load

    def measure(wanted: CellWanted) -> Cell:
        begun = time.monotonic()
        arm = arm_of(wanted)
        if wanted.deadline_seconds is not None:  # starting the server has used part of it
            left = wanted.deadline_seconds - (time.monotonic() - begun)
            wanted = replace(wanted, deadline_seconds=max(_LEAST_SECONDS, left))
        found, told = measure_load(
            wanted.id,
            load_of(wanted, options, arm.reached),
            arm.server,
            arm.reached.headers,
            show,
            vocabulary=arm.vocabulary,
            variant=wanted.variant,
            repeat=wanted.repeat,
            slos=slos,
        )
        for text in told:
            note(text)
        keep(found)
        return found.cell

    return measure


def infeasible_contexts(wanted: Iterable[CellWanted], options: argparse.Namespace, arm: Variant) -> dict[int, str]:
    """Return contexts without possible prompts, with reasons: from the shortest up to the first possible one."""
    from bezel.bench.prompts.prompts import make_prompts

    found: dict[int, str] = {}
    for one in sorted(wanted, key=lambda each: each.context_tokens):
        load = load_of(replace(one, deadline_seconds=None), options, arm.reached)
        try:
            make_prompts(load, arm.reached.ask, arm.vocabulary)
        except UserError as error:
            found[one.context_tokens] = f"no such prompt can be made: {error}"
        else:
            break
    return found


def write(result: Result, samples: Mapping[str, tuple[Columns, int]], out: Path) -> Result:
    """Write a result and, beside it, its samples: these first, so that no result names a missing file.

    Raises:
        UserError: They cannot be written.
    """
    from bezel.bench.result.document import save
    from bezel.bench.result.sample_file import samples_path, write_samples

    try:
        file = write_samples(samples_path(out), samples) if samples else None
        whole = result.model_copy(update={"samples": file})
        save(whole, out)
    except OSError as error:
        raise UserError(f"--out {out} cannot be written ({error}): name another place.") from None
    return whole


def finished(result: Result, beside: ResultFiles, options: argparse.Namespace, figures: Sequence[str]) -> None:
    """Write and print the result of a search or a comparison; `figures` are the figures to print."""
    from bezel.cli.bench.render.brief import brief

    if options.out:
        result = write(result, beside.samples(result.cells), options.out)
    if options.json:
        sys.stdout.write(result.as_json())
        return
    sys.stdout.write(brief(result, figures))
    if options.out:
        sys.stdout.write(f"\nwritten: {options.out}\n")


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Parse an option's list of integers above 0, e.g. "1,2,4"; sorted, without repetitions.

    Raises:
        UserError: The text is no such list.
    """
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise UserError(f"{option} {text!r} is no list of numbers above 0. Write e.g. {option} 1,8,64.")
    return found
