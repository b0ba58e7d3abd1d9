"""`bezel bench rates`: measures a server at several rates, from the throughput of one user to the highest.

Leaves out the choice of rates and the conclusion (`bezel_bench.sweep.rates`) and how a load is measured
(`.measure.cell_runner`).
"""

import argparse
import math
import sys
import time
from typing import Any, Literal

from bezel_base import ending_signals
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.status_line import StatusLine
from bezel_bench.commands.goodput import read_slos
from bezel_bench.commands.measure.cell_runner import Variant, load_of, measuring, variant_of
from bezel_bench.commands.measure.checkpoint import (
    ResultFiles,
    amounts,
    check_limits,
    check_out,
    finish,
    limits_of,
    settings_of,
)
from bezel_bench.commands.measure.target import reach
from bezel_bench.commands.measure.usage import as_usage, check_options, draft_target
from bezel_bench.commands.render.tables import rate_blocks
from bezel_bench.commands.targets import Targets
from bezel_bench.result.document import Result, Slo
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.measurement.budget import notes
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, Once
from bezel_bench.sweep.rates import REQUESTS, RatePlan, conclude, measure_rates


def run(targets: Targets, options: argparse.Namespace) -> Literal[0, 1, 130]:
    """Measure, write, print; return the exit code, 1 where a load is missing.

    Raises:
        UserError: Nothing can be measured.
    """
    check_options(options)
    with as_usage():
        plan, slos = plan_of(options)
        check_limits(options)
        for request in (plan.of_users(plan.users), plan.of_rate(plan.rates[-1] if plan.rates else 1.0)):
            load_of(request, options, draft_target(options))
    check_out(options.out, force=options.force)
    reached = reach(targets, options)
    show, files = StatusLine(sys.stderr), ResultFiles(options.out, targets.typed, force=options.force)
    try:
        variant = variant_of(targets, options, reached, plan.of_users(1), "rates", show)
        limits = limits_of(options, variant.server.manifest.price.usd_per_hour)
        with files.ledger(_settings(plan, variant, options)) as ledger:

            def progress(text: str) -> None:
                show.prefix = f"{amounts(ledger.spent_seconds, limits)} | {text}: "

            measure = measuring(lambda _: variant, options, files.keep, ledger.note, show, slos)
            outcome = measure_rates(plan, Once(measure, ledger, limits, time.monotonic), progress)
    finally:
        show.end()
    result = Result(
        kind="rates",
        nature="simulated" if reached.simulated else "measured",
        manifest=variant.server.manifest,
        cells=outcome.cells,
        findings=[conclude(plan, outcome)],
        notes=[*notes(limits, outcome.lost_seconds), *ledger.notes],
    )
    finish(result, files, options, rate_blocks)
    if not outcome.ended:
        return 0
    files.print_continuation()
    return ending_signals.INTERRUPTED if outcome.ended == INTERRUPTED else 1


def _settings(plan: RatePlan, variant: Variant, options: argparse.Namespace) -> dict[str, Any]:
    """Settings that make runs comparable and fix the rates."""
    names = ("input_tokens", "output_tokens", "seed", "rates", "steps", "users", "arrivals", "seconds")
    return {**settings_of(variant, options), **{name: getattr(options, name) for name in names}, "slo": plan.limits}


def plan_of(options: argparse.Namespace) -> tuple[RatePlan, list[Slo]]:
    """The rates that the options describe, and the limits as limits of one request.

    Raises:
        UserError: An option is wrong.
    """
    problems = []
    if not 0 < options.seconds < math.inf:
        problems.append(Problem("--seconds", f"{options.seconds:g}", "a load needs some time.", "give more than 0."))
    if options.steps < 2:
        consequence = "a range has its lowest and its highest rate."
        problems.append(Problem("--steps", options.steps, consequence, "give 2 or more, or --rates."))
    if options.users < 2:
        consequence = "expected the users that show the highest throughput."
        problems.append(Problem("--users", options.users, consequence, "give 2 or more."))
    try:
        rates = tuple(sorted({float(part) for part in options.rates.split(",")})) if options.rates else ()
    except ValueError:
        rates = (0.0,)
    if rates and not (0 < rates[0] <= rates[-1] < math.inf):
        consequence = "expected a list of requests per second above 0."
        problems.append(Problem("--rates", options.rates, consequence, "write e.g. --rates 1,2,4."))
    if problems:
        raise UserError(*problems)
    limits, slos, requests = read_slos(options.slo)
    request = CellRequest(
        options.input_tokens,
        options.output_tokens,
        max(REQUESTS, requests),
        seed=options.seed,
        evenly=options.arrivals == "constant",
    )
    return RatePlan(request, rates, options.steps, options.users, options.seconds, limits), slos
