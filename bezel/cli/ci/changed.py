"""`bezel ci changed`: prints the stacks that a change concerns, with the reasons, and as the matrix of a workflow."""

import argparse
import dataclasses
import os
from pathlib import Path

from bezel.cli.ci.output import publish
from bezel.errors import UserError
from bezel.gitops.changed.command import changed
from bezel.gitops.outcomes import Exit
from bezel.pulumi_engine.project import Project

STRICTEST = "prod"


def run(project: Project, options: argparse.Namespace) -> int:
    """Print the stacks, and return the exit code.

    Raises:
        UserError: The base of the change is unknown, as in a shallow clone.
    """
    report = changed(project.folder, options.base, os.environ)
    environments = {stack: _environment(project, stack) for stack in report.stacks}
    report = dataclasses.replace(report, environments=environments)
    publish(report, options)
    if outputs := os.environ.get("GITHUB_OUTPUT"):
        with Path(outputs).open("a", encoding="utf-8") as file:
            file.write(report.outputs())
    return Exit.DONE


def _environment(project: Project, stack: str) -> str:
    """The stack's environment; the strictest where its file cannot be read: its deploy then fails after an approval."""
    try:
        return str(project.configuration(stack).get("environment") or "")
    except UserError:
        return STRICTEST
