"""`bezel bench`: the commands of the benchmark's package, which here also measure servers of the project's stacks."""

import argparse

from bezel.cli.bench.stack_targets import StackTargets
from bezel.engine.project.project import Project
from bezel_bench.commands.main import run_command
from bezel_catalog.models import using_models


def run(project: Project, options: argparse.Namespace) -> int:
    """Run the command that the options name; return its exit code.

    Raises:
        UserError: It failed.
    """
    with using_models(project.models()):
        return run_command(StackTargets(project), options)
