"""Run of a command that measures one server at several loads, each chosen by those before: `goodput`, `rates`.

Owns the order: check, reach the server, measure within the limits, compose the result, write, print. Leaves out the
choice of the loads (`bezel_bench.sweep`) and how one is measured (`.cell_runner`).
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from bezel_base import ending_signals
from bezel_base.terminal.blocks import Block
from bezel_base.terminal.status_line import StatusLine
from bezel_bench.commands.measure.cell_runner import load_of, measuring, variant_of
from bezel_bench.commands.measure.checkpoint import ResultFiles, check_out, finish
from bezel_bench.commands.measure.limits import amounts, check_limits, limits_of, settings_of
from bezel_bench.commands.measure.target import reach
from bezel_bench.commands.measure.usage import as_usage, draft_target
from bezel_bench.commands.measure.with_platform import with_platform_series
from bezel_bench.commands.targets import Targets
from bezel_bench.result.document import Finding, Result, Slo
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.goodput import Found
from bezel_bench.sweep.measurement.budget import notes
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, Once
from bezel_bench.sweep.rates import Rated

Outcome = TypeVar("Outcome", bound=Found | Rated)


@dataclass(frozen=True)
class SeveralLoads(Generic[Outcome]):
    """What a command measures.

    Attributes:
        kind: Kind of the result.
        title: What is measured, for the result's title.
        requests: Loads that must be possible; the first one shows how the server counts tokens.
        settings: Settings that fix the loads, beside those of the server.
        slos: Limits that a request must keep to count for goodput.
        measure: Measures the loads, and shows each.
        conclude: Returns the conclusion.
        blocks: Returns the text of the result.
    """

    kind: Literal["goodput", "rates"]
    title: str
    requests: Sequence[CellRequest]
    settings: Mapping[str, Any]
    slos: Sequence[Slo]
    measure: Callable[[Once, Callable[[str], None]], Outcome]
    conclude: Callable[[Outcome], Finding]
    blocks: Callable[[Result], Iterable[Block]]


def measure_loads(targets: Targets, options: argparse.Namespace, loads: SeveralLoads[Outcome]) -> Literal[0, 1, 130]:
    """Measure, write, print; return the exit code, 1 where a load is missing.

    Raises:
        UserError: Nothing can be measured.
    """
    with as_usage():
        check_limits(options)
        for request in loads.requests:
            load_of(request, options, draft_target(options))
    check_out(options.out, force=options.force)
    reached = reach(targets, options)
    show, files = StatusLine(sys.stderr), ResultFiles(options.out, targets.typed, force=options.force)
    try:
        variant = variant_of(targets, options, reached, loads.requests[0], loads.title, show)
        limits = limits_of(options, variant.server.manifest.price.usd_per_hour)
        with files.ledger({**settings_of(variant, options), **loads.settings}) as ledger:

            def progress(text: str) -> None:
                show.prefix = f"{amounts(ledger.spent_seconds, limits)} | {text}: "

            measure = measuring(lambda _: variant, options, files.keep, ledger.note, show, loads.slos)
            outcome = loads.measure(Once(measure, ledger, limits, time.monotonic), progress)
        result = Result(
            kind=loads.kind,
            nature="simulated" if reached.simulated else "measured",
            manifest=variant.server.manifest,
            cells=outcome.cells,
            findings=[loads.conclude(outcome)],
            notes=[*notes(limits, outcome.lost_seconds), *ledger.notes],
        )
        if outcome.ended != INTERRUPTED:
            result = with_platform_series(result, targets, options, reached.outputs, show)
    finally:
        show.end()
    finish(result, files, options, loads.blocks)
    if outcome.is_complete:
        return 0
    files.print_continuation()
    return ending_signals.INTERRUPTED if outcome.ended == INTERRUPTED else 1
