"""`bezel bench compare`: two saved results, figure by figure, with a verdict and an exit code for a pipeline."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Literal

from bezel_base.console import say
from bezel_base.errors import Problem, WrongValueError
from bezel_base.terminal.blocks import Block, Line, Role, Table
from bezel_base.terminal.screen import show
from bezel_bench.commands.targets import Targets
from bezel_bench.report.comparison import Comparison, Value, compare
from bezel_bench.result.document import load

_CODES: Mapping[str, Literal[1, 3, 4]] = {"worse": 1, "unknown": 3, "not_shown": 4}
_WORDS = {"not_shown": "no difference shown"}


def run(_: Targets, options: argparse.Namespace) -> Literal[0, 1, 3, 4]:
    """Compare and print; return the exit code of the verdict.

    Raises:
        UserError: A result cannot be read.
        WrongValueError: The tolerance is below 0, or 100 or more.
    """
    if not 0 <= options.tolerance < 100:
        repair = "write e.g. 5 for 5 %."
        problem = Problem("--tolerance", f"{options.tolerance:g}", "expected a percentage from 0 to below 100.", repair)
        raise WrongValueError(problem)
    comparison = compare(load(options.before), load(options.after), options.tolerance / 100)
    verdict = comparison.verdict
    if options.json:
        say(comparison.model_copy().model_dump_json(indent=2))
    else:
        show(_blocks(comparison))
        say(f"verdict: {_WORDS.get(verdict, verdict)}")
    return _CODES.get(verdict, 0)


def _blocks(comparison: Comparison) -> Iterator[Block]:
    yield from (Line(f"note: {note}") for note in comparison.notes)
    loads = dict.fromkeys(figure.load for figure in comparison.figures)
    for one in loads:
        rows = [
            (
                each.figure,
                _value_text(each.before),
                _value_text(each.after),
                "-" if each.share is None else f"{each.share:+.1%}",
                _WORDS.get(each.change, each.change),
                each.unit,
            )
            for each in comparison.figures
            if each.load == one
        ]
        yield from (Line(),) if comparison.notes or one != next(iter(loads)) else ()
        yield Line(one, Role.HEADING)
        yield Table(("figure", "before", "after", "change", "judged", "unit"), rows)
    yield from (Line(), *(Line(f"cannot be compared: {reason}") for reason in comparison.refusals))


def _value_text(value: Value) -> str:
    interval = "" if value.low is None or value.high is None else f" ({value.low:.4g} to {value.high:.4g})"
    return f"{value.mean:.4g}{interval}"
