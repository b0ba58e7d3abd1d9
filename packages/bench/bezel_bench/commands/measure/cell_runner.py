"""Measurement of the cells of sweeps, searches and comparisons on real servers.

Owns the load of such a cell: a closed or an open loop, unique prompts. Leaves out how a load is measured:
`bezel_bench.cell.cell`.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bezel_base.errors import Problem, UserError, one_line
from bezel_base.terminal.status_line import StatusLine
from bezel_bench.cell.cell import MeasuredCell, measure_load
from bezel_bench.cell.plan import ServerView
from bezel_bench.commands.measure.manifest import view
from bezel_bench.commands.measure.target import TargetConnection
from bezel_bench.commands.targets import Targets
from bezel_bench.load.plan import Closed, Constant, Load, Pattern, Poisson, PromptPlan, Stop, Target
from bezel_bench.load.plan_rules import check_load
from bezel_bench.prompts.prompts import learn, make_prompts
from bezel_bench.prompts.token_calibration import Vocabulary
from bezel_bench.result.document import Cell, Slo
from bezel_bench.sweep.cell_request import CellRequest, Measure

_MIN_SECONDS = 1.0  # for a load: the time limit may be reached while its server starts


@dataclass(frozen=True)
class Variant:
    """A server that cells are measured on, with its manifest and vocabulary."""

    reached: TargetConnection
    server: ServerView
    vocabulary: Vocabulary


def variant_of(
    targets: Targets,
    options: argparse.Namespace,
    reached: TargetConnection,
    request: CellRequest,
    title: str,
    show: StatusLine,
) -> Variant:
    """The variant of a reached server; `request` is any of its cells."""
    show("reads the server's manifest, and calibrates its token counts")
    server = view(targets, options, reached, title=f"{reached.target.model}: {title}")
    return Variant(reached, server, learn(load_of(request, options, reached.target), reached.ask))


def load_of(request: CellRequest, options: argparse.Namespace, target: Target) -> Load:
    """The load of a cell.

    Raises:
        UserError: It cannot be sent; the error has every problem.
    """
    seconds = request.deadline_seconds
    pattern: Pattern = Closed(request.users or 1)
    if request.rate is not None:
        pattern = (Constant if request.evenly else Poisson)(request.rate)
    return check_load(
        Load(
            target,
            pattern,
            Stop(request.requests, seconds),
            PromptPlan(
                "unique",
                request.context_tokens,
                request.output_tokens,
                seed=request.seed,
                run=request.run or request.id,
            ),
            deadline_seconds=min(options.deadline, seconds or options.deadline),
            workers=options.workers,
        )
    )


def measuring(
    variant_for: Callable[[CellRequest], Variant],
    options: argparse.Namespace,
    keep: Callable[[MeasuredCell], None],
    note: Callable[[str], None],
    show: Callable[[str], None],
    slos: Sequence[Slo] = (),
) -> Measure:
    """Return the function that measures a cell.

    Args:
        variant_for: Returns the server of a cell, ready for requests.
        options: `workers` and `deadline`.
        keep: Stores each cell with its samples; called before the cell is returned.
        note: Takes notes about the prompts for the result's reader; called before `keep`.
        show: Takes progress messages.
        slos: Limits that a request must keep to count for goodput.
    """

    def measure(request: CellRequest) -> Cell:
        begun = time.monotonic()
        variant = variant_for(request)
        if request.deadline_seconds is not None:  # starting the server has used part of it
            left = request.deadline_seconds - (time.monotonic() - begun)
            request = replace(request, deadline_seconds=max(_MIN_SECONDS, left))
        measured, notes = measure_load(
            request.id,
            load_of(request, options, variant.reached.target),
            variant.server,
            variant.reached.headers,
            show,
            vocabulary=variant.vocabulary,
            variant=request.variant,
            repeat=request.repeat,
            slos=slos,
        )
        for text in notes:
            note(text)
        keep(measured)
        return measured.cell

    return measure


def infeasible_contexts(cells: Iterable[CellRequest], options: argparse.Namespace, variant: Variant) -> dict[int, str]:
    """Return contexts without possible prompts, with reasons: from the shortest up to the first possible one."""
    reasons: dict[int, str] = {}
    for cell in sorted(cells, key=lambda cell: cell.context_tokens):
        load = load_of(replace(cell, deadline_seconds=None), options, variant.reached.target)
        try:
            make_prompts(load, variant.reached.ask, variant.vocabulary)
        except UserError as error:
            reasons[cell.context_tokens] = f"such a prompt cannot be made: {one_line(error)}"
        else:
            break
    return reasons


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Parse an option's list of integers above 0, e.g. "1,2,4"; sorted, without repetitions.

    Raises:
        UserError: The text is another one.
    """
    try:
        values = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        values = ()
    if not values or values[0] < 1:
        raise UserError(Problem(option, text, "expected a list of integers above 0.", f"write e.g. {option} 1,8,64."))
    return values
