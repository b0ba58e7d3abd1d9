"""`bezel ci deploy STACK`: deploys the merged tree as it was reviewed, and publishes what the smoke check says."""

import argparse
import os

from bezel.cli.ci.lock import parse_wait
from bezel.cli.ci.output import publish
from bezel.engine.changes.preview import packs_of
from bezel.engine.outcomes import Exit
from bezel.engine.project.checkout import checkout_of
from bezel.engine.project.project import Project
from bezel.gitops.review.deploy import deploy

EXITS = {"deployed": Exit.DONE, "unchanged": Exit.DONE, "failed": Exit.FAILED, "refused": Exit.REFUSED}


def run(project: Project, options: argparse.Namespace) -> int:
    """Deploy a stack, and return the exit code of the outcome.

    Raises:
        UserError: See `bezel.gitops.review.deploy.deploy`.
    """
    project.stack_file(options.stack)
    report = deploy(
        project,
        options.stack,
        checkout_of(project.folder),
        packs_of(project, options.pack or ()),
        os.environ,
        approved=options.approve,
        approved_judge=options.approve_judge,
        wait_seconds=parse_wait(options.wait),
    )
    publish(report, options)
    return EXITS[report.verdict]
