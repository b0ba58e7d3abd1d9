"""`bezel secret set NAME`: reads a value from a terminal without an echo, a pipe or a file descriptor, and stores it.

Owns where the value comes from: never an argument or a variable of the environment, which others can read. Typing or
piping the value is the confirmation; the plan is shown before. Leaves Secret Manager to `bezel.operations.secret`.
"""

import argparse
import json
import os
import select
import sys
import time
from typing import Literal

from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.rest.secret_manager import MAX_BYTES
from bezel_base.console import note, say
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.screen import show
from bezel_base.text.redaction import redact

_STDIN = 0
_LINE_END = 2
_READ_SECONDS = 300.0


def set_value(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED, 130]:
    """Plan, read the value, store it; return the exit code.

    Raises:
        UserError: The name or the value is invalid, or Secret Manager refused.
    """
    from pydantic import ValidationError

    from bezel.operations.context import Context
    from bezel.operations.secret.secret_set import apply_set, plan_set, stored_value
    from bezel.operations.secret.secret_show import SecretArguments

    try:
        arguments = SecretArguments(name=options.name, stack=options.stack)
    except ValidationError:
        consequence = "a secret's id has letters, digits, hyphens and underscores, 255 at most, and is not its value."
        raise UserError(
            Problem("NAME", options.name, consequence, "name the secret; the value is read later.")
        ) from None
    with Context(project.folder, os.environ) as context:
        plan = plan_set(context, arguments)
        show(plan.page(), sys.stderr, redact)
        outcome = apply_set(context, plan, stored_value(_read(options.fd)))
    if options.json:
        say(json.dumps({"plan": plan.model_dump(mode="json"), "outcome": outcome.model_dump(mode="json")}, indent=2))
    else:
        show(outcome.page())
    return outcome.exit_code


def _read(descriptor: int | None) -> bytes:
    """The value, of at most one byte more than is allowed with its line end."""
    number = _STDIN if descriptor is None else descriptor
    if descriptor is None and sys.stdin is not None and sys.stdin.isatty():
        return _read_typed_value()
    most, pieces, size = MAX_BYTES + _LINE_END + 1, [], 0
    source = "standard input" if descriptor is None else f"file descriptor {number}"
    note(f"reads the value from {source}, for {_READ_SECONDS:.0f} s at most")
    end = time.monotonic() + _READ_SECONDS
    try:
        os.fstat(number)  # select waits for ever for a number above those of all open descriptors
        while size < most:
            if not select.select([number], [], [], max(0.0, end - time.monotonic()))[0]:
                text = f"{source} was not closed within {_READ_SECONDS:.0f} s; nothing was changed."
                raise UserError(Problem("value", None, text, "close the pipe after the value."))
            if not (piece := os.read(number, most - size)):
                break
            pieces.append(piece)
            size += len(piece)
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no descriptor has this number"
        text = f"it cannot be read ({reason}); nothing was changed."
        repair = "open it for the command, e.g. `bezel secret set NAME --fd 3` with `3<FILE` after it, or use a pipe."
        raise UserError(Problem("--fd", number, text, repair)) from None
    return b"".join(pieces)


def _read_typed_value() -> bytes:
    import getpass

    try:
        return getpass.getpass("value (not shown; empty to stop): ", stream=sys.stderr).encode()
    except EOFError:
        return b""
