"""Changing operations on the command line: the plan is shown, confirmed at a terminal or by options, and carried out.

Owns the question. Leaves out what a plan holds and how it is carried out (bezel.operations). Both steps happen in one
process, so a confirmation is for the plan that was shown a moment ago.
"""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from bezel.engine.outcomes import Exit
from bezel.operations.changes.confirmations import Confirmations
from bezel_base.console import note, say
from bezel_base.terminal.screen import show
from bezel_base.terminal.turns import settle
from bezel_base.text.redaction import redact
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from bezel.operations.arguments.model import Arguments
    from bezel.operations.changes.plan import Plan
    from bezel.operations.context import Context
    from bezel.operations.operation import Operation
    from bezel.operations.results import Result

_CALLER = "the command line"


def run_change(context: "Context", called: "Operation", arguments: "Arguments", options: argparse.Namespace) -> int:
    """Plan, ask, carry out; return the exit code of the last step.

    Raises:
        UserError: It cannot be planned, a name is not the one that the plan asks for, or it failed.
    """
    plan: Plan = called.load()(context, arguments)  # type: ignore[assignment]
    show(plan.page(), sys.stderr, redact)
    outcome: Result | None = None
    code: int = plan.exit_code
    if not plan.refusals:
        confirmations = Confirmations()
        offer = confirmations.offer(plan, _CALLER)
        name = _confirmation(plan, options)
        if name is None:
            code = Exit.REFUSED
        else:
            confirmed = confirmations.take(offer.token, _CALLER, name=name)
            outcome = called.load_apply()(context, confirmed)
            code = outcome.exit_code
    if options.json:
        both = {"plan": plan.model_dump(mode="json"), "outcome": outcome and outcome.model_dump(mode="json")}
        say(json.dumps(both, indent=2))
    elif outcome is not None:
        show(outcome.page())
    return code


def _confirmation(plan: "Plan", options: argparse.Namespace) -> str | None:
    """The name that confirms, "" where none is needed; None where the plan is not confirmed."""
    typed: str | None = options.confirm_name
    if plan.is_empty:
        return typed or plan.confirm_name or ""
    if plan.confirm_name is None and options.yes:
        return ""
    if plan.confirm_name is not None and typed is not None:
        return typed
    if not sys.stdin.isatty():
        option = "--yes" if plan.confirm_name is None else f"--name {shell_word(plan.confirm_name)}"
        note(f"nothing was changed: there is no terminal to confirm it; add {option}")
        return None
    question = "do this? [y/N] " if plan.confirm_name is None else f"type {plan.confirm_name} to do this: "
    settle()
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    is_yes = answer.lower() in {"y", "yes"} if plan.confirm_name is None else answer == plan.confirm_name
    if not is_yes:
        note("nothing was changed")
        return None
    return "" if plan.confirm_name is None else answer
