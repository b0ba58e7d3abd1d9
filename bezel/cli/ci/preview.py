"""`bezel ci preview STACK`: shows what a deploy would change, cost and be allowed, and saves it for the deploy."""

import argparse
import os

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.checkout import checkout_of
from bezel.engine.project.project import Project
from bezel.gitops.judge.base import base_judge
from bezel.gitops.review.preview import preview

EXITS = {"allowed": Exit.DONE, "failed": Exit.FAILED, "refused": Exit.REFUSED}


def run(project: Project, options: argparse.Namespace) -> int:
    """Preview a stack, and return the exit code of its verdict.

    Raises:
        UserError: The stack has no file, or the backend cannot be used.
    """
    project.stack_file(options.stack)
    checkout = checkout_of(project.folder)
    judge = base_judge(project, options.stack, options.base, os.environ)
    report = preview(project, options.stack, checkout, options.pack or (), os.environ, judge)
    publish(report, options)
    return EXITS[report.verdict]
