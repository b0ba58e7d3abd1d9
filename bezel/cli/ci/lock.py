"""`bezel ci lock STACK -- COMMAND`: runs a command under a stack's lock; shows the lock, or removes it by hand."""

import argparse
import os

from bezel.cli.ci.output import publish
from bezel.engine.locks.status import remove_lock, status_of
from bezel.engine.locks.taker import hold, surroundings
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.engine.run.under_lock import run_under
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel_base.console import note
from bezel_base.errors import NOT_SET, Problem, WrongValueError
from bezel_catalog.quantities import parse_duration


def run(project: Project, options: argparse.Namespace) -> int:
    """Run the command, and return its exit code.

    Raises:
        UserError: An option is wrong, another run holds the lock, or the bucket cannot be used.
    """
    wait, command = parse_wait(options.wait), options.pulumi
    is_query = options.show or options.break_generation is not None
    if bool(command) == is_query:
        consequence = "expected one of a command, --show and --break."
        repair = "write e.g. `bezel ci lock dev -- make up`, or `bezel ci lock dev --show`."
        raise WrongValueError(Problem("-- COMMAND", " ".join(command) or NOT_SET, consequence, repair))
    around = surroundings(os.environ)
    with StateBucket.of(os.environ.get(BACKEND)) as states:
        if options.break_generation is not None:
            removed = remove_lock(states, project.name, options.stack, options.break_generation, around)
            publish(removed, options)
            note(f"removed the lock of {options.stack}; its run interrupts its command if it is still active")
            return Exit.DONE
        if options.show:
            publish(status_of(states, project.name, options.stack, around), options)
            return Exit.DONE
        with hold(states, project.name, options.stack, wait, around) as lock:
            return run_under(lock, command, os.environ)


def parse_wait(text: str) -> int:
    """Seconds of `--wait`.

    Raises:
        UserError: It is not a duration.
    """
    if (seconds := parse_duration(text)) is None:
        repair = "write e.g. 15m, or 0s to fail at once."
        raise WrongValueError(Problem("--wait", text, "expected a duration.", repair))
    return seconds
