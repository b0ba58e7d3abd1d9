"""`bezel ci rehearse STACK`: deploy a stack on an embedded cloud without credentials, check it, destroy it."""

import argparse

from bezel.cli.ci.output import publish
from bezel.gitops.rehearsal import rehearse
from bezel.pulumi_engine.project import Project


def run(project: Project, options: argparse.Namespace) -> int:
    """Rehearse and report; return the exit code."""
    report = rehearse(project, options.stack, seconds=options.deadline, speed=options.speed)
    publish(report, options)
    return report.exit_code
