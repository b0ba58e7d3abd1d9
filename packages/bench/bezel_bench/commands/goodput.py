"""`bezel bench goodput`: searches the highest load of one server that still keeps given limits.

Leaves out the search (`bezel_bench.sweep.goodput`) and how a load is measured (`.measure.several_loads`).
"""

import argparse
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

from bezel_base.errors import Problem, UserError
from bezel_bench.commands.measure.limits import milliseconds_of
from bezel_bench.commands.measure.several_loads import SeveralLoads, measure_loads
from bezel_bench.commands.measure.usage import as_usage, check_options
from bezel_bench.commands.render.tables import search_blocks
from bezel_bench.commands.targets import Targets
from bezel_bench.result.document import Slo
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.goodput import Search, conclude, levels, search

_SLO = re.compile(r"(ttft|ttfc|tpot|e2e)_(mean|p50|p90|p99)=(.*)")
# For a percentile: twice the fewest requests that define it.
_MIN_REQUESTS = {"mean": 30, "p50": 30, "p90": 50, "p99": 200}


def run(targets: Targets, options: argparse.Namespace) -> Literal[0, 1, 130]:
    """Search, write, print; return the exit code, 0 also where the search found that there is no edge.

    Raises:
        UserError: Nothing can be measured.
    """
    check_options(options)
    with as_usage():
        plan, slos = plan_of(options)
    # These fix the order of the search.
    fixing = {name: getattr(options, name) for name in ("input_tokens", "output_tokens", "seed", "step", "seconds")}
    offered = ["offered_requests_per_second"] if plan.request.rate is not None else []
    loads = SeveralLoads(
        kind="goodput",
        title="the highest load within limits",
        requests=(plan.at(0, 0),),
        settings={**fixing, "slo": plan.limits, plan.unit: [plan.levels[0], plan.levels[-1]]},
        slos=slos,
        measure=partial(search, plan, most_runs=options.runs),
        conclude=partial(conclude, plan),
        blocks=partial(search_blocks, figures=[*plan.limits, "goodput", *offered, "requests_per_second"]),
    )
    return measure_loads(targets, options, loads)


def plan_of(options: argparse.Namespace) -> tuple[Search, list[Slo]]:
    """The search that the options describe, and its limits as limits of one request.

    Raises:
        UserError: An option is wrong.
    """
    limits, slos, requests = read_slos(options.slo)
    by_rate = options.rate is not None
    if not 0 < options.seconds < math.inf:
        raise UserError(Problem("--seconds", f"{options.seconds:g}", "a load needs some time.", "give more than 0."))
    option, text = ("--rate", options.rate) if by_rate else ("--users", options.users or "1:256")
    try:
        lowest, highest = (float(part) for part in text.split(":"))
    except ValueError:
        lowest = highest = math.nan
    if math.isnan(lowest + highest) or (not by_rate and (lowest % 1 or highest % 1)):
        repair = f"write LOW:HIGH, e.g. {option} 1:256."
        raise UserError(Problem(option, text, "expected a range of loads.", repair))
    request = CellRequest(
        options.input_tokens,
        options.output_tokens,
        requests,
        users=None if by_rate else 1,
        rate=1.0 if by_rate else None,
        seed=options.seed,
    )
    loads = levels(lowest, highest, options.step / 100, whole=not by_rate)
    return Search(request, loads, limits, seconds=options.seconds), slos


def read_slos(texts: Sequence[str]) -> tuple[dict[str, float], list[Slo], int]:
    """The limits in milliseconds by figure, as limits of one request, and the fewest requests that define the figures.

    Args:
        texts: Limits as FIGURE=TIME.

    Raises:
        UserError: One of them is wrong, or given twice.
    """
    limits: dict[str, float] = {}
    slos: dict[str, Slo] = {}
    requests = 0
    for text in texts:
        match = _SLO.fullmatch(text)
        try:
            milliseconds = milliseconds_of(match[3] if match else "")
        except ValueError:
            match = None
        if match is None:
            repair = "write ttft, ttfc, tpot or e2e, then _mean, _p50, _p90 or _p99, then =LIMIT: ttft_p99=500ms."
            raise UserError(Problem("--slo", text, "expected a limit.", repair))
        if f"{match[1]}_{match[2]}" in limits:
            raise UserError(Problem("--slo", text, "the figure is limited twice, and one would be lost.", "give one."))
        limits[f"{match[1]}_{match[2]}"] = milliseconds
        # A single request has no percentile: the widest of a figure's limits holds for it.
        widest = max(milliseconds, slos[match[1]].limit_ms if match[1] in slos else 0.0)
        slos[match[1]] = Slo(metric=match[1], limit_ms=widest)
        requests = max(requests, _MIN_REQUESTS[match[2]])
    return limits, list(slos.values()), requests
