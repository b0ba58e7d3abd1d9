"""`bezel ci judge STACK`: compares what judges a deploy with what judged the last allowed one; runs nothing."""

import argparse
import os
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.checkout import checkout_of
from bezel.engine.project.project import Project
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.gitops.changed.git_trees import base_of
from bezel.gitops.judge.gate import judge_deploy
from bezel.gitops.judge.gate_report import GateReport
from bezel.gitops.judge.own_code import check_place_of_code
from bezel_base.text.shell import shell_word


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.REFUSED]:
    """Compare, and return the exit code: 3 if a deploy would stop.

    Raises:
        OwnCodeError: In a run of a forge, this code lies in the checkout that it would judge.
        UserError: The stack has no file, or the backend or git cannot be read.
    """
    project.stack_file(options.stack)
    check_place_of_code(
        project.folder,
        f"bezel ci judge {shell_word(options.stack)}",
        lambda: base_of(project.folder, "", os.environ),
        os.environ,
    )
    commit = checkout_of(project.folder).commit
    with StateBucket.of(os.environ.get(BACKEND)) as bucket:
        judged = judge_deploy(bucket, project, options.stack, commit, "")
    publish(GateReport(project.name, options.stack, commit, judged), options)
    return Exit.DONE if judged.allowed else Exit.REFUSED
