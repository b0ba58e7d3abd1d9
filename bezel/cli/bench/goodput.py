"""`bezel bench goodput`: searches the highest load of one server that still keeps given limits.

Leaves out the search (`bezel.bench.sweep.goodput`) and how a load is measured (`bezel.cli.bench.measure.cell_runner`).
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.cli.bench.measure.cell_runner import common_arguments, finished, measuring, reached_arm
from bezel.cli.bench.measure.checkpoint import ResultFiles, amounts, limit_arguments, limits_of, settings_of
from bezel.cli.bench.measure.target import reach
from bezel.cli.bench.out_file import check_out
from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.bench.result.document import Slo
    from bezel.bench.sweep.goodput import Search
    from bezel.cli.bench.measure.variant import Variant
    from bezel.pulumi_engine.project import Project

_SLO = re.compile(r"(ttft|ttfc|tpot|e2e)_(mean|p50|p90|p99)=([0-9.]+)(ms|s)?")
# For a percentile: twice the fewest requests that define it.
_LEAST = {"mean": 30, "p50": 30, "p90": 50, "p99": 200}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench goodput`."""
    common_arguments(parser)
    parser.add_argument(
        "--slo", action="append", required=True, metavar="FIGURE=TIME", help="e.g. ttft_p99=500ms; may be repeated"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--users", metavar="LOW:HIGH", help="closed loop (default: 1:256)")
    which.add_argument("--rate", metavar="LOW:HIGH", help="open loop, requests a second, Poisson: 0.5:50")
    parser.add_argument("--step", type=float, default=10.0, metavar="PERCENT", help="from load to load (default: 10)")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="of --rate, at least (default: 30)")
    parser.add_argument("--runs", type=int, default=16, metavar="N", help="at most (default: 16)")
    parser.add_argument("--input-tokens", type=int, default=512, metavar="N", help="of a prompt (default: 512)")
    parser.add_argument("--output-tokens", type=int, default=128, metavar="N", help="of an answer (default: 128)")
    limit_arguments(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE.json", help="write the result; its journal and samples beside it"
    )


def run(project: Project, options: argparse.Namespace) -> int:
    """Search, write, print. Exit code 0: the search found an edge, or that there is none; 1: it was inconclusive.

    Raises:
        UserError: Nothing can be measured.
    """
    from bezel.bench.result.document import Result
    from bezel.bench.sweep.budget import notes
    from bezel.bench.sweep.goodput import conclude, search
    from bezel.bench.sweep.run_once import Once
    from bezel.cli.bench.render.status_line import Line

    if options.out:
        check_out(options.out)
    plan, slos = plan_of(options)
    reached = reach(project, options)
    show = Line(sys.stderr)
    beside = ResultFiles(options.out)
    try:
        arm = reached_arm(project, options, reached, plan.at(0, 0), "the highest load within limits", show)
        limits = limits_of(options, arm.server.manifest.price.usd_per_hour)
        with beside.ledger(_settings(plan, arm, options)) as ledger:

            def progress(text: str) -> None:
                show.prefix = f"{amounts(ledger.spent, limits)} | {text}: "

            measure = measuring(lambda _: arm, options, beside.keep, ledger.note, show, slos)
            found = search(plan, Once(measure, ledger, limits, time.monotonic), progress, options.runs)
    finally:
        show.end()
    result = Result(
        kind="goodput",
        nature="simulated" if reached.simulated else "measured",
        manifest=arm.server.manifest,
        cells=found.cells,
        findings=[conclude(plan, found)],
        notes=[*notes(limits, found.lost_seconds), *ledger.notes],
    )
    offered = ["offered_requests_per_second"] if plan.wanted.rate is not None else []
    finished(result, beside, options, [*plan.limits, "goodput", *offered, "requests_per_second"])
    if not found.ended:
        return 0
    beside.goes_on()
    return 1


def _settings(plan: Search, arm: Variant, options: argparse.Namespace) -> dict[str, Any]:
    """Settings that make runs comparable and fix the order of the search."""
    return {
        **settings_of(arm, options),
        "input_tokens": options.input_tokens,
        "output_tokens": options.output_tokens,
        "seed": options.seed,
        "slo": plan.limits,
        plan.unit: [plan.levels[0], plan.levels[-1]],
        "step": options.step,
        "seconds": options.seconds,
    }


def plan_of(options: argparse.Namespace) -> tuple[Search, list[Slo]]:
    """The search that the options describe, and its limits as limits of one request.

    Raises:
        UserError: An option is wrong.
    """
    from bezel.bench.result.document import Slo
    from bezel.bench.sweep.cell_request import CellWanted
    from bezel.bench.sweep.goodput import Search, levels

    limits: dict[str, float] = {}
    slos: dict[str, Slo] = {}
    least = 0
    for text in options.slo:
        match = _SLO.fullmatch(text)
        if match is None or float(match[3]) <= 0:
            raise UserError(
                f"--slo {text!r} is no limit: write ttft, ttfc, tpot or e2e, then _mean, _p50, _p90 or _p99, "
                "then the most: ttft_p99=500ms."
            )
        milliseconds = float(match[3]) * (1000 if match[4] == "s" else 1)
        limits[f"{match[1]}_{match[2]}"] = milliseconds
        slos[match[1]] = Slo(metric=match[1], limit_ms=milliseconds)
        least = max(least, _LEAST[match[2]])
    by_rate = options.rate is not None
    if options.runs < 1:
        raise UserError(f"--runs {options.runs}: nothing would be measured. Give 1 or more.")
    text = options.rate or options.users or "1:256"
    try:
        lowest, highest = (float(part) for part in text.split(":"))
    except ValueError:
        option = "--rate" if by_rate else "--users"
        raise UserError(f"{option} {text!r} is no range of loads. Write LOW:HIGH, e.g. {option} 1:256.") from None
    wanted = CellWanted(
        options.input_tokens,
        options.output_tokens,
        least,
        users=None if by_rate else 1,
        rate=1.0 if by_rate else None,
        seed=options.seed,
    )
    loads = levels(lowest, highest, options.step / 100, whole=not by_rate)
    return Search(wanted, loads, limits, seconds=options.seconds), list(slos.values())
