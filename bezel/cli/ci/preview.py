"""`bezel ci preview STACK`: shows what a deploy would change, cost and be allowed, and saves it for the deploy."""

import argparse
import os
from collections.abc import Mapping
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.checkout import checkout_of
from bezel.engine.project.project import Project
from bezel.gitops.changed.git_trees import pull_request_base
from bezel.gitops.judge.base import base_judge
from bezel.gitops.judge.own_code import check_place_of_code
from bezel.gitops.review.preview import preview
from bezel_base.text.shell import shell_word

EXITS: Mapping[str, Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]] = {
    "allowed": Exit.DONE,
    "failed": Exit.FAILED,
    "refused": Exit.REFUSED,
}


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED, Exit.REFUSED]:
    """Preview a stack, and return the exit code of its verdict.

    Raises:
        OwnCodeError: In a run of a forge, this code lies in the checkout that it would judge.
        UserError: The stack has no file, or the backend cannot be used.
    """
    project.stack_file(options.stack)
    command = f"bezel ci preview {shell_word(options.stack)}" + (
        f" --base {shell_word(options.base)}" if options.base else ""
    )
    check_place_of_code(
        project.folder, command, lambda: pull_request_base(project.folder, options.base, os.environ), os.environ
    )
    checkout = checkout_of(project.folder)
    judge = base_judge(project, options.stack, options.base, os.environ)
    report = preview(project, options.stack, checkout, options.pack or (), os.environ, judge)
    publish(report, options)
    return EXITS[report.verdict]
