"""`bezel bench ab`: compares servers, or settings of one server, in turns with the same prompts.

An arm is a running server (`--arm NAME=URL`, `--arm NAME=STACK`), or a value of a setting (`--vary KEY=A,B,C`) whose
server `--start COMMAND` starts: the shell runs the command with {KEY} replaced by the value, which is also in its
environment as KEY in upper case. The command either stays, is the server and is ended before the next arm, or exits
with 0 once the server is deployed. Turns alternate and each starts its arm anew, so that an hour's drift does not
show as a difference.

Leaves out the order of turns and the statistics (`bezel.bench.sweep.ab`), and how an arm is reached or started
(`bezel.cli.bench.measure.variants`).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.cli.argparser import above_zero
from bezel.cli.bench.measure.cell_runner import common_arguments, finished, measuring
from bezel.cli.bench.measure.checkpoint import ResultFiles, amounts, limit_arguments, limits_of
from bezel.cli.bench.out_file import check_out
from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel.bench.result.document import Result
    from bezel.bench.sweep.ab import Compared, Comparison
    from bezel.bench.sweep.cell_request import CellWanted
    from bezel.bench.sweep.run_once import Once
    from bezel.cli.bench.measure.variant import Variant
    from bezel.pulumi_engine.project import Project


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench ab`."""
    common_arguments(parser, target_required=False)
    arms = parser.add_argument_group("what is compared, the first one with each other")
    arms.add_argument("--arm", action="append", default=[], metavar="NAME=URL|STACK", help="a server; two or more")
    arms.add_argument("--vary", metavar="KEY=A,B,...", help="a setting with its values, each an arm: spec_tokens=0,2,3")
    arms.add_argument("--start", metavar="COMMAND", help="makes the server of --url for a value: './serve.sh {KEY}'")
    arms.add_argument(
        "--start-seconds", type=above_zero, default=1800.0, metavar="S", help="until it must be healthy (default: 1800)"
    )
    parser.add_argument("--rounds", type=int, default=6, metavar="N", help="turns of each arm (default: 6)")
    parser.add_argument("--users", type=int, default=8, metavar="N", help="closed loop (default: 8)")
    parser.add_argument("--requests", type=int, metavar="N", help="of a turn (default: 10 of each user)")
    parser.add_argument("--input-tokens", type=int, default=512, metavar="N", help="of a prompt (default: 512)")
    parser.add_argument("--output-tokens", type=int, default=256, metavar="N", help="of an answer (default: 256)")
    limit_arguments(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE.json", help="write the result; its journal and samples beside it"
    )


def run(project: Project, options: argparse.Namespace) -> int:
    """Compare the arms, write and print the result. Exit code 1: an arm has no turn that is ok.

    Raises:
        UserError: Nothing can be compared.
    """
    from bezel.bench.sweep.ab import FIGURES, Comparison, checked, compare
    from bezel.bench.sweep.cell_request import CellWanted
    from bezel.bench.sweep.journal import Server
    from bezel.bench.sweep.run_once import Once
    from bezel.cli.bench.measure.variants import arms_of
    from bezel.cli.bench.render.status_line import Line

    if options.out:
        check_out(options.out)
    wanted = CellWanted(
        options.input_tokens,
        options.output_tokens,
        options.requests or 10 * options.users,
        users=options.users,
        seed=options.seed,
    )
    what = places(options)
    plan = checked(Comparison(tuple(what), wanted, options.rounds))
    show, beside = Line(sys.stderr), ResultFiles(options.out)
    try:
        arms = arms_of(project, options, what, wanted, show)
        limits = limits_of(options, arms.usd_per_hour)
        with beside.ledger(_settings(plan, what, options)) as ledger:

            def progress(text: str) -> None:
                show.prefix = f"{amounts(ledger.spent, limits)} | {text}: "

            def arm_of(cell: CellWanted) -> Variant:
                arm = arms.ready(cell)
                ledger.meet(cell.variant, Server(arm.server.manifest, arm.reached.simulated))
                return arm

            measure = measuring(arm_of, options, beside.keep, ledger.note, show)
            once = Once(measure, ledger, limits, time.monotonic)
            try:
                compared = compare(plan, once, progress)
            finally:
                arms.end()
    finally:
        show.end()
    if not compared.cells:
        raise UserError(f"nothing was measured: {compared.ended}.")
    finished(_result(plan, what, compared, once), beside, options, FIGURES)
    if compared.ended:
        beside.goes_on()
    measured = {cell.variant for cell in compared.cells if cell.state == "ok"}
    return 0 if measured == set(plan.arms) else 1


def _result(plan: Comparison, what: Mapping[str, str], compared: Compared, once: Once) -> Result:
    from bezel.bench.result.document import Result
    from bezel.bench.sweep.ab import conclude
    from bezel.bench.sweep.budget import notes

    # Servers of this process and of earlier ones: an arm whose turns are all known is not started again.
    servers = once.ledger.servers
    first = servers.get(plan.arms[0]) or next(iter(servers.values()))
    return Result(
        kind="ab",
        nature="simulated" if any(one.simulated for one in servers.values()) else "measured",
        manifest=first.manifest,
        variants={name: one.manifest.served_by for name, one in servers.items()},
        cells=compared.cells,
        findings=conclude(plan, compared.cells),
        notes=[
            *(f"{name} is {place}." for name, place in what.items() if name != place),
            *compared.notes,
            *notes(once.limits, once.lost_seconds),
            *once.ledger.notes,
        ],
    )


def _settings(plan: Comparison, what: Mapping[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Settings that make turns comparable, with the rounds: adding some until a difference shows finds it by chance."""
    return {
        "arms": dict(what),
        "start": options.start,
        "url": options.url,
        "model": options.model,
        "endpoint": options.endpoint,
        "input_tokens": plan.wanted.context_tokens,
        "output_tokens": plan.wanted.output_tokens,
        "requests": plan.wanted.requests,
        "users": plan.wanted.users,
        "seed": plan.wanted.seed,
        "rounds": plan.rounds,
        "deadline": options.deadline,
        "workers": options.workers,
    }


def places(options: argparse.Namespace) -> dict[str, str]:
    """Map each arm's name to its URL, its stack, or the setting's value.

    Raises:
        UserError: An option is incomplete or belongs to the other form, or two arms share a server or a name.
    """
    if bool(options.arm) == bool(options.vary):
        raise UserError("say what is compared: --arm NAME=URL twice or more, or --vary KEY=A,B with --start and --url.")
    if options.vary:
        key, _, values = options.vary.partition("=")
        if not key.isidentifier() or not values or not options.start or not options.url:
            raise UserError(
                f"--vary {options.vary}: a server has to be started with each value. Write --vary KEY=A,B,... "
                "--start 'COMMAND with {KEY}' --url where it then answers."
            )
        return {f"{key}={value}": f"{key}={value}" for value in values.split(",")}
    if options.start or options.url or options.stack:
        raise UserError("--arm names the servers: --start, --url and --stack belong to --vary.")
    pairs = [text.partition("=") for text in options.arm]
    if wrong := [name + sign + place for name, sign, place in pairs if not (name and place)]:
        raise UserError(f"--arm {wrong[0]!r}: write NAME=URL or NAME=STACK.")
    addresses = [place.rstrip("/") for _, _, place in pairs]
    if len(set(addresses)) < len(addresses) or len({name for name, _, _ in pairs}) < len(pairs):
        raise UserError(
            "--arm: two arms are one server or have one name. One server would find the prompts of its first turn in "
            "its cache at the second."
        )
    return {name: place for (name, _, _), place in zip(pairs, addresses, strict=True)}
