"""`bezel recover`: reconcile what a killed run left open on a stack of the user's own backend and cloud.

Leaves out how that is done (bezel.engine.recover).
"""

import argparse
import os
from typing import Literal

from bezel.engine.project.project import Project
from bezel.engine.recover.recover import recover
from bezel.engine.run.command import CommandError
from bezel.engine.run.stack import deployed_engine
from bezel_base.console import say
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word


def recover_stack(project: Project, options: argparse.Namespace) -> Literal[0]:
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
            recovered = recover(prepared.engine, say)
        except CommandError as error:
            if "currently locked" not in str(error):
                raise
            repair = (
                f"if that run is dead, `pulumi cancel --stack {shell_word(stack)}` removes its lock; then "
                "recover again."
            )
            raise UserError(Problem(f"stack {stack}", None, str(error), repair)) from None
    if not recovered.checked:
        say(f"{stack}: no open changes")
    return 0
