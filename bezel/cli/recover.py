"""Reconciliation of a stack on any backend after a run of the engine whose changes have an unknown outcome.

A step of a deploy, under the stack's lock, and `bezel recover`. Leaves out how an outcome is found
(bezel.engine).
"""

import argparse
import os
from collections.abc import Callable, Sequence

from bezel.engine.events.open_changes import OpenChange
from bezel.engine.project.project import Project
from bezel.engine.recover.recover import SECONDS, Recovered, recover
from bezel.engine.run.command import CommandError
from bezel.engine.run.engine import Engine
from bezel.engine.run.record import end_processes
from bezel.engine.run.stack import deployed_engine
from bezel_base.console import note, say
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import quoted


def reconcile(
    engine: Engine, mark: str, changes: Sequence[OpenChange] = (), show: Callable[[str], None] = note
) -> Recovered:
    """Reconcile the operations that a killed engine left pending, and other changes whose outcome is unknown.

    To be called under the stack's lock, or by the run itself.

    Args:
        engine: The stack's engine.
        mark: Marks the processes of the ended runs; none with it may be of a living one.
        changes: Changes besides the pending operations of the state.
        show: Gets each line of progress.

    Raises:
        UserError: A resource's id does not follow from its inputs, or the engine failed.
    """
    # Plugins live on where the guard was killed as well, and may still be creating what is looked for.
    if count := end_processes(mark):
        show(f"ended {count} processes of an ended run")
    return _recover(engine, show, changes)


def recover_stack(project: Project, options: argparse.Namespace) -> int:
    """`bezel recover STACK`: reconcile open changes on the user's own backend and cloud; return the exit code.

    Raises:
        ProjectError: There is no such stack file.
        UserError: The stack cannot be recovered automatically; the text says what to do by hand.
    """
    stack: str = options.stack
    with deployed_engine(project, stack, os.environ) as prepared:
        if prepared is None:
            repair = "`bezel status` lists the stacks that are deployed."
            raise UserError(Problem("STACK", stack, "the backend has no state of it.", repair))
        try:
            recovered = _recover(prepared.engine, say)
        except CommandError as error:
            if "currently locked" not in str(error):
                raise
            repair = (
                f"if that run is dead, `pulumi cancel --stack {quoted(stack)}` removes its lock; then recover again."
            )
            raise UserError(Problem(f"stack {stack}", None, str(error), repair)) from None
    if not recovered.checked:
        say(f"{stack}: no open changes")
    return 0


def _recover(engine: Engine, show: Callable[[str], None], changes: Sequence[OpenChange] = ()) -> Recovered:
    def pulumi(arguments: Sequence[str]) -> str:
        if arguments[0] != "refresh":
            return engine.printed(*arguments)
        show(f"  reading the open resources from the cloud: at most {SECONDS // 60} minutes")
        return engine.printed(*arguments, "--config-file", str(engine.config_file), seconds=SECONDS)

    return recover(pulumi, engine.project.cloud_project(engine.stack, engine.environment), show, changes)
