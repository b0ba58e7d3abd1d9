"""`bezel ci changed`: prints the stacks that a change concerns, with the reasons, and as the matrix of a workflow."""

import argparse
import os
from pathlib import Path
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.gitops.changed.command import changed_stacks


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE]:
    """Print the stacks, and return the exit code.

    Raises:
        UserError: The base of the change is unknown, as in a shallow clone, or `bezel.toml` has problems.
    """
    report = changed_stacks(project.folder, options.base, os.environ)
    publish(report, options)
    if outputs := os.environ.get("GITHUB_OUTPUT"):
        with Path(outputs).open("a", encoding="utf-8") as file:
            file.write(report.outputs())
    return Exit.DONE
