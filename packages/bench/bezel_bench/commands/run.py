"""`bezel bench run`: measures one load, once or several times, on one server, and writes figures and checks to a file.

Owns the order: reach the server, plan, make prompts, measure each repeat, compose the result. What only a result needs
is imported after the load, which so begins sooner. Leaves out the definitions of figures
(`bezel_bench.metrics.definitions`), their validity (`bezel_bench.validity.checks`) and the printed table
(`bezel_bench.commands.render.tables`).
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bezel_base import ending_signals
from bezel_base.errors import Problem, UserError, one_line
from bezel_base.terminal.status_line import StatusLine
from bezel_base.text.counting import format_count
from bezel_bench.cell.cell import measure_load
from bezel_bench.client.load_engine import run_load
from bezel_bench.commands.measure.checkpoint import ResultFiles, check_out, finish
from bezel_bench.commands.measure.load_options import load_of
from bezel_bench.commands.measure.manifest import view
from bezel_bench.commands.measure.target import reach
from bezel_bench.commands.measure.usage import as_usage, check_options, check_prompts, draft_target
from bezel_bench.commands.measure.with_platform import with_platform_series
from bezel_bench.load.plan import Burst, Closed, Constant, Load, Pattern, Poisson, Stop, to_json
from bezel_bench.prompts.prompts import learn, make_prompts
from bezel_bench.sweep.measurement.journal import Ledger, Taken
from bezel_bench.sweep.measurement.second_try import is_disturbed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from bezel_bench.commands.measure.target import TargetConnection
    from bezel_bench.commands.targets import Targets
    from bezel_bench.load.plan import Bodies, TokenSource
    from bezel_bench.prompts.token_calibration import Vocabulary
    from bezel_bench.result.document import Cell, Result, Slo
    from bezel_bench.result.sample import Measured

# Users of a warm-up where the load has a rate.
_WARM_USERS = 8
_INTERRUPTED = "It was interrupted."


class LoadSender(Protocol):
    """Sender of the load in place of this process."""

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        """Do what `bezel_bench.client.load_engine.run_load` does."""

    def describe(self, result: Result) -> Result:
        """Return the result with its client and notes on the sender."""


def run(targets: Targets, options: argparse.Namespace, sender: LoadSender | None = None) -> Literal[0, 1, 130]:
    """Measure, write, print; return the exit code, 1 where the table shows why a cell failed or is missing.

    Args:
        targets: The servers that the program can measure.
        options: Options of the server, the load and the result.
        sender: Sends the load; this process does where it is None.

    Raises:
        UserError: Nothing could be measured.
    """
    planned, slos = plan_of(options)
    check_out(options.out, force=options.force)
    reached = reach(targets, options)
    load = replace(planned, target=reached.target)
    show, files = StatusLine(sys.stderr), ResultFiles(options.out, targets.typed, force=options.force)
    with files.ledger(_settings(load, options)) as ledger:
        # Cells of an earlier process used the prompts of that process.
        load = replace(load, prompts=replace(load.prompts, run=options.run_id or ledger.run))
        try:
            result, early = _measure(targets, options, reached, load, slos, show, sender, files, ledger)
            if not early:
                result = with_platform_series(result, targets, options, reached.outputs, show)
        except BaseException:
            files.forget(only_empty=True)
            raise
        finally:
            show.end()
    from bezel_bench.commands.render.tables import run_blocks

    # The same command measures a repeat anew that the client or its machine disturbed.
    unfinished = early or any(is_disturbed(cell) for cell in result.cells)
    finish(result, files, options, run_blocks, complete=not unfinished)
    if unfinished:
        files.print_continuation()
    if _INTERRUPTED in result.notes:
        return ending_signals.INTERRUPTED
    return 0 if not early and all(cell.state == "ok" for cell in result.cells) else 1


def plan_of(options: argparse.Namespace) -> tuple[Load, list[Slo]]:
    """The load that the options describe, for a server that is not asked yet, and its limits.

    Raises:
        OptionsError: The options are wrong.
        LoadError: The load cannot be sent.
    """
    if options.dataset:
        _fetch_dataset(options)
    check_options(options)
    with as_usage():
        slos = [_slo(text) for text in options.slo]
        if twice := [name for name, count in Counter(slo.metric for slo in slos).items() if count > 1]:
            raise UserError(Problem("--slo", twice[0], "it is limited twice, and one would be lost.", "give one."))
        load = load_of(options, draft_target(options))
    check_prompts(load)
    return load, slos


def _fetch_dataset(options: argparse.Namespace) -> None:
    """Set the file of prompts to that of the data set, which is downloaded unless it was before.

    Raises:
        OptionsError: There is no such data set, or another file is named.
    """
    from bezel_bench.prompts.hub import fetch  # late: few loads need a hub

    with as_usage():
        file = str(fetch(options.dataset))
        if options.file not in ("", file):
            consequence = "--dataset has the prompts."
            raise UserError(Problem("--file", options.file, consequence, "leave out one of them."))
        options.file = file


def _measure(
    targets: Targets,
    options: argparse.Namespace,
    reached: TargetConnection,
    load: Load,
    slos: Sequence[Slo],
    show: StatusLine,
    sender: LoadSender | None,
    files: ResultFiles,
    ledger: Ledger,
) -> tuple[Result, bool]:
    """The result, and whether it ended before every repeat was measured."""
    show("reads the server's manifest, and calibrates its token counts")
    server = view(targets, options, reached, title=f"{load.target.model}: one load")
    vocabulary = None if load.prompts.kind == "file" else learn(load, reached.ask)
    undisturbed = {taken.cell.id: taken.cell for taken in ledger.taken if not is_disturbed(taken.cell)}
    warm = warm_up_of(load, options.warmup, options.warmup_seconds)
    if warm and len(undisturbed) < options.repeats:
        ledger.note(_warm_up(warm, reached, vocabulary, show, sender))
    cells: list[Cell] = []
    ended = ""
    for repeat in range(options.repeats):
        # Each repeat has its own prompts, else the prefix cache would distort it; and its own arrivals.
        run_id = f"{load.prompts.run}/{repeat}" if repeat else load.prompts.run
        repeated = replace(load, prompts=replace(load.prompts, run=run_id, seed=load.prompts.seed + repeat))
        name = "run"
        if options.repeats > 1:
            show.prefix = f"repeat {repeat + 1} of {options.repeats}: "
            name = f"run-r{repeat}"
        if name in undisturbed:
            cells.append(undisturbed[name])
            continue
        attempts, same_prompts = ledger.begin(name, None), bool(options.run_id)
        if attempts:
            from bezel_bench.commands.measure.killed_run import keep_killed  # late: few runs were killed

            last = _attempt_load(repeated, attempts - 1, again=same_prompts)
            keep_killed(files, name, attempts, last, server, vocabulary, slos, simulated=reached.simulated)
        begun = time.monotonic()
        try:
            measured, notes = measure_load(
                name,
                _attempt_load(repeated, attempts, again=same_prompts),
                server,
                reached.headers,
                show,
                vocabulary=vocabulary,
                repeat=repeat,
                slos=slos,
                send=sender.send if sender else functools.partial(run_load, spill=files.spill(name)),
            )
        except (KeyboardInterrupt, UserError) as error:
            if not cells:
                raise
            # An interrupt comes here before a load is sent, e.g. while the server is awaited.
            ended = f"{name} could not be measured: {one_line(error)}" if isinstance(error, UserError) else _INTERRUPTED
            break
        for text in notes:
            ledger.note(text)
        files.keep(measured)
        files.clear(name)
        cells.append(measured.cell)
        if measured.cell.client and measured.cell.client.interrupted:
            ended = _INTERRUPTED
            break
        ledger.end(Taken(measured.cell, time.monotonic() - begun))
    from bezel_bench.commands.measure.run_result import run_result

    result = run_result(reached, server, cells, [*([ended] if ended else []), *ledger.notes])
    return sender.describe(result) if sender else result, bool(ended)


def _attempt_load(load: Load, attempt: int, *, again: bool) -> Load:
    """The load of an attempt: from the second on with its own prompts, unless the same prompts are requested again."""
    if not attempt or again:
        return load
    return replace(load, prompts=replace(load.prompts, run=f"{load.prompts.run}~{attempt}"))


def warm_up_of(load: Load, requests: int, seconds: float) -> Load | None:
    """The load of a warm-up: like the load, with prompts of its own; None without one.

    Args:
        load: The load that it precedes.
        requests: The most requests of it; 0 is no such limit.
        seconds: The time in which it begins requests, at the load's own rate; 0 is no such limit.
    """
    if not (requests or seconds):
        return None
    users = load.pattern.users if isinstance(load.pattern, Closed) else _WARM_USERS
    pattern: Pattern = Closed(max(min(users, requests or users), len(load.urls)))
    if seconds and isinstance(load.pattern, Constant | Poisson | Burst):
        pattern = load.pattern
    # Other words: warm-up prompts are in no cache that the load could use.
    prompts = replace(load.prompts, run=f"{load.prompts.run}/warmup")
    waits = None if isinstance(pattern, Closed) else load.max_concurrency
    return replace(
        load,
        pattern=pattern,
        stop=Stop(requests or None, seconds or None),
        prompts=prompts,
        ramp_seconds=0.0,
        think_seconds=0.0,
        max_in_flight=None,
        max_concurrency=waits,
    )


def _warm_up(
    warm: Load, reached: TargetConnection, vocabulary: Vocabulary | None, show: StatusLine, sender: LoadSender | None
) -> str:
    """Send requests like those of the load, with prompts of their own, that count in no figure; return a note.

    Raises:
        KeyboardInterrupt: The user ended them, and so the command.
        UserError: They cannot be sent.
    """
    stop = warm.stop
    amount = f"{stop.seconds:g} s" if stop.requests is None else format_count(stop.requests, "requests")
    show(f"warms the server up with {amount} of its load")
    bodies = make_prompts(warm, reached.ask, vocabulary).bodies
    measured = (sender.send if sender else run_load)(warm, bodies, reached.headers, show)
    if measured.client.interrupted:
        raise KeyboardInterrupt
    failed = sum(bool(sample.failure) for sample in measured.samples)
    note = f"{format_count(len(measured.samples), 'warm-up requests')} sent before the load, counted in no figure"
    return f"{note}; {failed} of them failed" if failed else note


def _settings(load: Load, options: argparse.Namespace) -> dict[str, Any]:
    """Settings that make loads the same: every one but the repeats and the name that separates their prompts."""
    sent = replace(load, prompts=replace(load.prompts, run=options.run_id))
    return {"load": json.loads(to_json(sent)), "slo": sorted(options.slo)}


def _slo(text: str) -> Slo:
    # Late: few loads have limits.
    from bezel_bench.commands.measure.limits import milliseconds_of
    from bezel_bench.result.document import Slo

    name, _, limit = text.partition("=")
    try:
        return Slo(metric=name, limit_ms=milliseconds_of(limit))
    except ValueError:
        repair = "write METRIC=TIME with ttft, ttfc, tpot, e2e or itl_max, e.g. ttft=500ms."
        raise UserError(Problem("--slo", text, "expected a limit.", repair)) from None
