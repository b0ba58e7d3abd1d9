"""`bezel bench ab`: servers, or settings of one, against each other with the same prompts in turns.

An arm is a server that runs (`--arm NAME=URL`, `--arm NAME=STACK`), or a value of a setting (`--vary KEY=A,B,C`) for
which `--start COMMAND` makes one: the shell runs it with {KEY} in it replaced, and in its environment as KEY in upper
case. It either stays and is the server, and is ended before the next arm, or ends with 0 once the server is deployed.
Each turn starts its arm anew, as turns alternate: that is what keeps an hour's drift out of a difference.

Leaves out the order of turns and the statistics (`bezel.bench.sweep.ab`).
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.ops.bench_cells import Arm, common_arguments, finished, in_a_folder, measuring, reached_arm
from bezel.ops.bench_target import reach
from bezel.told import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.bench.cell import MeasuredCell
    from bezel.bench.sweep.wanted import CellWanted
    from bezel.ops.bench_line import Line
    from bezel.ops.project import Project


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench ab`."""
    common_arguments(parser, target_required=False)
    arms = parser.add_argument_group("what is compared, the first one with each other")
    arms.add_argument("--arm", action="append", default=[], metavar="NAME=URL|STACK", help="a server; two or more")
    arms.add_argument("--vary", metavar="KEY=A,B,...", help="a setting with its values, each an arm: spec_tokens=0,2,3")
    arms.add_argument("--start", metavar="COMMAND", help="makes the server of --url for a value: './serve.sh {KEY}'")
    arms.add_argument(
        "--start-seconds", type=float, default=1800.0, metavar="S", help="until it must be healthy (default: 1800)"
    )
    parser.add_argument("--rounds", type=int, default=6, metavar="N", help="turns of each arm (default: 6)")
    parser.add_argument("--users", type=int, default=8, metavar="N", help="closed loop (default: 8)")
    parser.add_argument("--requests", type=int, metavar="N", help="of a turn (default: 10 of each user)")
    parser.add_argument("--input-tokens", type=int, default=512, metavar="N", help="of a prompt (default: 512)")
    parser.add_argument("--output-tokens", type=int, default=256, metavar="N", help="of an answer (default: 256)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the result, and its samples beside it")


def run(project: Project, options: argparse.Namespace) -> int:
    """Compare, write, print. Exit code 1: an arm has no turn that is ok.

    Raises:
        UserError: Nothing can be compared.
    """
    from bezel.bench.result import Result
    from bezel.bench.sweep.ab import FIGURES, Comparison, checked, compare, conclude
    from bezel.bench.sweep.wanted import CellWanted
    from bezel.ops.bench_line import Line

    if options.out:
        in_a_folder(options.out)
    wanted = CellWanted(
        options.input_tokens,
        options.output_tokens,
        options.requests or 10 * options.users,
        users=options.users,
        seed=options.seed,
    )
    what = places(options)
    plan = checked(Comparison(tuple(what), wanted, options.rounds))
    show = Line(sys.stderr)
    kept: dict[str, MeasuredCell] = {}
    notes: dict[str, None] = {}
    seen: dict[str, Arm] = {}

    def keep(one: MeasuredCell) -> None:
        kept[one.cell.id] = one

    def progress(text: str) -> None:
        show.prefix = f"{text}: "

    arm_of, stop = _arms(project, options, what, wanted, seen, show)
    try:
        cells = compare(plan, measuring(arm_of, options, keep, notes, show), progress, secrets.token_hex(4))
    finally:
        stop()
        show.end()
    first = seen[plan.arms[0]] if plan.arms[0] in seen else next(iter(seen.values()))
    result = Result(
        kind="ab",
        nature="simulated" if any(arm.reached.simulated for arm in seen.values()) else "measured",
        manifest=first.server.manifest,
        variants={name: arm.server.served for name, arm in seen.items()},
        cells=cells,
        findings=conclude(plan, cells),
        notes=[*(f"{name} is {place}." for name, place in what.items() if name != place), *notes],
    )
    finished(result, kept, options, FIGURES)
    return 0 if all(any(cell.state == "ok" for cell in cells if cell.variant == arm) for arm in plan.arms) else 1


def places(options: argparse.Namespace) -> dict[str, str]:
    """Each arm's name with what it is: a URL, a stack, or a setting's value.

    Raises:
        UserError: It is not said, or twice.
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


def _arms(
    project: Project,
    options: argparse.Namespace,
    what: dict[str, str],
    wanted: CellWanted,
    seen: dict[str, Arm],
    show: Line,
) -> tuple[Callable[[str], Arm], Callable[[], None]]:
    """What gives an arm's server, ready to be asked, and what ends the last one."""
    title = f"{', '.join(what)} against each other"
    if options.arm:

        def running(name: str) -> Arm:
            if name not in seen:
                url = what[name] if "://" in what[name] else None
                mine = argparse.Namespace(**{**vars(options), "url": url, "stack": None if url else what[name]})
                seen[name] = reached_arm(project, mine, reach(project, mine), wanted, title, show)
            return seen[name]

        return running, lambda: None

    from bezel.ops.bench_start import Started

    started = Started(options.start, options.url, options.start_seconds, show)

    def fresh(name: str) -> Arm:
        key, _, value = name.partition("=")
        started.anew(key, value)
        seen[name] = reached_arm(project, options, reach(project, options), wanted, title, show)
        return seen[name]

    return fresh, started.end
