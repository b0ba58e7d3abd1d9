"""`bezel ci rehearse STACK`: deploy a stack on an embedded cloud without credentials, check it, destroy it."""

import argparse
import os
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.gitops.judge.base import base_judge
from bezel.gitops.rehearsal import rehearse


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]:
    """Rehearse and report; return the exit code.

    Raises:
        UserError: The stack has no file, or the base is not known here although the run has one.
    """
    judge = base_judge(project, options.stack, options.base, os.environ)
    report = rehearse(project, options.stack, seconds=options.deadline, speed=options.speed, judge=judge)
    publish(report, options)
    return report.exit_code
