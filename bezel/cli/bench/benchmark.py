"""`bezel bench`: the commands of the benchmark's package, which here also measure servers of the project's stacks."""

import argparse
import contextlib

from bezel.cli.bench.stack_targets import StackTargets
from bezel.engine.project.project import Project
from bezel_bench.commands.main import run_command


def run(project: Project, options: argparse.Namespace) -> int:
    """Run the command that the options name; return its exit code.

    Raises:
        UserError: It failed.
    """
    with contextlib.ExitStack() as stack:
        if models := project.models():
            from bezel_catalog.models import using_models  # late: few projects have models of their own

            stack.enter_context(using_models(models))
        return run_command(StackTargets(project), options)
