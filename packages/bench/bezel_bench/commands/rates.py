"""`bezel bench rates`: measures a server at several rates, from the throughput of one user to the highest.

Leaves out the choice of rates and the conclusion (`bezel_bench.sweep.rates`) and how a load is measured
(`.measure.several_loads`).
"""

import argparse
import math
from functools import partial
from typing import Literal

from bezel_base.errors import Problem, UserError
from bezel_bench.commands.goodput import read_slos
from bezel_bench.commands.measure.several_loads import SeveralLoads, measure_loads
from bezel_bench.commands.measure.usage import as_usage, check_options
from bezel_bench.commands.render.tables import rate_blocks
from bezel_bench.commands.targets import Targets
from bezel_bench.result.document import Slo
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.rates import REQUESTS, RatePlan, conclude, measure_rates

_FIXING = ("input_tokens", "output_tokens", "seed", "rates", "steps", "users", "arrivals", "seconds")
_MOST_STEPS = 1000


def run(targets: Targets, options: argparse.Namespace) -> Literal[0, 1, 130]:
    """Measure, write, print; return the exit code, 1 where a load is missing.

    Raises:
        UserError: Nothing can be measured.
    """
    check_options(options)
    with as_usage():
        plan, slos = plan_of(options)
    highest = plan.of_rate(plan.rates[-1] if plan.rates else 1.0)
    loads = SeveralLoads(
        kind="rates",
        title="rates",
        requests=(plan.of_users(1), plan.of_users(plan.users), highest),
        settings={**{name: getattr(options, name) for name in _FIXING}, "slo": plan.limits},
        slos=slos,
        measure=partial(measure_rates, plan),
        conclude=partial(conclude, plan),
        blocks=rate_blocks,
    )
    return measure_loads(targets, options, loads)


def plan_of(options: argparse.Namespace) -> tuple[RatePlan, list[Slo]]:
    """The rates that the options describe, and the limits as limits of one request.

    Raises:
        UserError: An option is wrong.
    """
    problems = []
    if not 0 < options.seconds < math.inf:
        problems.append(Problem("--seconds", f"{options.seconds:g}", "a load needs some time.", "give more than 0."))
    if not 2 <= options.steps <= _MOST_STEPS:
        consequence = "a range has its lowest and its highest rate, and each rate is a load."
        problems.append(Problem("--steps", options.steps, consequence, f"give 2 to {_MOST_STEPS}, or --rates."))
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
