"""`bezel bench ab`: compares servers, or settings of one server, in turns with the same prompts.

A variant is a running server (`--arm NAME=URL`, `--arm NAME=STACK`), or a value of a setting (`--vary KEY=A,B,C`) whose
server `--start COMMAND` starts: the shell runs the command with {KEY} replaced by the value, which is also in its
environment as KEY in upper case. The command either stays, is the server and is ended before the next variant, or exits
with 0 once the server is deployed. Turns alternate and each starts its variant anew, so that an hour's drift does not
show as a difference.

Leaves out the order of turns and the statistics (`bezel_bench.sweep.ab`), and how a variant is reached or started
(`bezel_bench.commands.measure.variants`).
"""

import argparse
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from bezel_base import ending_signals
from bezel_base.console import note
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.terminal.status_line import StatusLine
from bezel_bench.commands.measure.cell_runner import Variant, load_of, measuring
from bezel_bench.commands.measure.checkpoint import ResultFiles, check_out, finish
from bezel_bench.commands.measure.limits import amounts, check_limits, limits_of
from bezel_bench.commands.measure.usage import as_usage, check_options, draft_target
from bezel_bench.commands.measure.variants import variants_of
from bezel_bench.commands.measure.with_platform import with_platform_series
from bezel_bench.commands.render.tables import search_blocks
from bezel_bench.commands.targets import Targets
from bezel_bench.result.document import Result
from bezel_bench.sweep.ab import (
    FIGURES,
    MIN_ROUNDS,
    ComparisonOutcome,
    ComparisonPlan,
    check_comparison,
    compare,
    conclude,
    differences,
)
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.measurement.budget import notes
from bezel_bench.sweep.measurement.journal import Server
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, Once


def run(targets: Targets, options: argparse.Namespace) -> Literal[0, 1, 130]:
    """Compare the variants, write and print the result; return the exit code.

    A turn that the client or its machine disturbed twice is not measured.

    Raises:
        UserError: Nothing can be compared.
    """
    servers, plan = plan_of(options)
    request = plan.request
    check_out(options.out, force=options.force)
    show, files = StatusLine(sys.stderr), ResultFiles(options.out, targets.typed, force=options.force)
    try:
        variants = variants_of(targets, options, servers, request, show)
        limits = limits_of(options, variants.usd_per_hour)
        with files.ledger(_settings(plan, servers, options)) as ledger:

            def progress(text: str) -> None:
                show.prefix = f"{amounts(ledger.spent_seconds, limits)} | {text}: "

            def variant_for(cell: CellRequest) -> Variant:
                variant = variants.ready(cell)
                ledger.meet(cell.variant, Server(variant.server.manifest, variant.reached.simulated))
                return variant

            measure = measuring(variant_for, options, files.keep, ledger.note, show)
            once = Once(measure, ledger, limits, time.monotonic)
            try:
                compared = compare(plan, once, progress)
            finally:
                variants.end()
        if not compared.cells:
            if compared.ended == INTERRUPTED:
                raise KeyboardInterrupt
            raise UserError(f"nothing was measured: {compared.ended}.")
        result = _result(plan, servers, compared, once)
        if compared.ended != INTERRUPTED:
            for name, (of_server, variant) in variants.running.items():
                result = with_platform_series(result, targets, of_server, variant.reached.outputs, show, variant=name)
    finally:
        show.end()
    finish(result, files, options, partial(search_blocks, figures=FIGURES))
    if compared.ended or compared.unmeasured_text:
        files.print_continuation()
    unknown = [difference for difference in differences(plan, compared.cells) if difference.change is None]
    if unknown:
        names = ", ".join(dict.fromkeys(f"{difference.figure} of {difference.arm}" for difference in unknown))
        note(f"not compared, because fewer than {MIN_ROUNDS} rounds have it of both servers: {names}")
    if compared.ended == INTERRUPTED:
        return ending_signals.INTERRUPTED
    return 1 if unknown or compared.unmeasured_text else 0


def plan_of(options: argparse.Namespace) -> tuple[dict[str, str], ComparisonPlan]:
    """The servers and the comparison that the options describe.

    Raises:
        OptionsError: They are wrong, or no difference could be shown.
        LoadError: A turn cannot be sent.
    """
    check_options(options)
    with as_usage():
        servers = servers_of(options)
        request = CellRequest(
            options.input_tokens,
            options.output_tokens,
            10 * options.users if options.requests is None else options.requests,
            users=options.users,
            seed=options.seed,
        )
        plan = check_comparison(ComparisonPlan(tuple(servers), request, options.rounds))
        check_limits(options, stacks=any("://" not in server for server in servers.values()))
        for server in servers.values():
            load_of(request, options, draft_target(options, server if "://" in server else None))
    return servers, plan


def _result(plan: ComparisonPlan, servers: Mapping[str, str], compared: ComparisonOutcome, once: Once) -> Result:
    # Servers of this process and of earlier ones: a variant whose turns are all known is not started again.
    measured_servers = once.ledger.servers
    first = measured_servers.get(plan.arms[0]) or next(iter(measured_servers.values()))
    return Result(
        kind="ab",
        nature="simulated" if any(server.simulated for server in measured_servers.values()) else "measured",
        manifest=first.manifest,
        variants={name: server.manifest.served_by for name, server in measured_servers.items()},
        cells=compared.cells,
        findings=conclude(plan, compared.cells),
        notes=[
            *(f"{name} is {server}." for name, server in servers.items() if name != server),
            *compared.notes,
            *notes(once.limits, once.lost_seconds),
            *once.ledger.notes,
        ],
    )


def _settings(plan: ComparisonPlan, servers: Mapping[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Settings that make turns comparable, with the rounds: adding some until a difference shows finds it by chance."""
    names = ("start", "url", "model", "endpoint", "output_tokens", "users", "seed", "deadline", "workers")
    return {
        **{name: getattr(options, name) for name in names},
        "arms": dict(servers),
        "input_tokens": plan.request.context_tokens,
        "requests": plan.request.requests,
        "rounds": plan.rounds,
    }


def servers_of(options: argparse.Namespace) -> dict[str, str]:
    """Map each variant's name to its URL, its stack, or the setting's value.

    Raises:
        UserError: An option is incomplete or belongs to the other form, or two variants share a server or a name.
    """
    if bool(options.arm) == bool(options.vary):
        repair = "give --arm NAME=URL twice or more, or --vary KEY=A,B with --start and --url."
        raise UserError(Problem("--arm", options.arm or NOT_SET, "the compared servers are not defined.", repair))
    if options.vary:
        key, _, values = options.vary.partition("=")
        if not key.isidentifier() or not values or not options.start or not options.url:
            repair = "write --vary KEY=A,B,... --start 'COMMAND with {KEY}' --url ADDRESS."
            raise UserError(Problem("--vary", options.vary, "each value needs a server that is started.", repair))
        return {f"{key}={value}": f"{key}={value}" for value in values.split(",")}
    if options.start or options.url or options.stack:
        consequence = "--start, --url and --stack belong to --vary; --arm names the servers itself."
        raise UserError(Problem("--arm", options.arm, consequence, "omit these options."))
    pairs = [text.partition("=") for text in options.arm]
    if wrong := [name + sign + server for name, sign, server in pairs if not (name and server)]:
        raise UserError(Problem("--arm", wrong[0], "expected a name and a server.", "write NAME=URL or NAME=STACK."))
    addresses = [server.rstrip("/").removesuffix("/v1").rstrip("/") for _, _, server in pairs]
    if len(set(addresses)) < len(addresses) or len({name for name, _, _ in pairs}) < len(pairs):
        consequence = (
            "two variants share a server or a name; one server would find the prompts of its first turn in its cache "
            "at the second."
        )
        raise UserError(Problem("--arm", ", ".join(options.arm), consequence, "give each its own name and server."))
    return {name: server for (name, _, _), server in zip(pairs, addresses, strict=True)}
