"""`bezel ci deploy STACK`: deploys the merged tree as it was reviewed, and publishes what the smoke check says."""

import argparse
import os
from collections.abc import Mapping
from typing import Literal

from bezel.cli.ci.lock import parse_wait
from bezel.cli.ci.output import publish
from bezel.engine.changes.preview import packs_of
from bezel.engine.outcomes import Exit
from bezel.engine.project.checkout import checkout_of
from bezel.engine.project.project import Project
from bezel.gitops.changed.git_trees import base_of
from bezel.gitops.judge.own_code import check_place_of_code
from bezel.gitops.review.deploy import deploy
from bezel_base.text.shell import shell_word

EXITS: Mapping[str, Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]] = {
    "deployed": Exit.DONE,
    "unchanged": Exit.DONE,
    "failed": Exit.FAILED,
    "refused": Exit.REFUSED,
}


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]:
    """Deploy a stack, and return the exit code of the outcome.

    Raises:
        OwnCodeError: In a run of a forge, this code lies in the checkout that it would judge.
        UserError: See `bezel.gitops.review.deploy.deploy`.
    """
    project.stack_file(options.stack)
    check_place_of_code(
        project.folder,
        f"bezel ci deploy {shell_word(options.stack)}",
        lambda: base_of(project.folder, "", os.environ),
        os.environ,
    )
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
