"""`bezel ci examples`: checks the plans of the stack files that the pipeline does not deploy."""

import argparse
from datetime import UTC, datetime
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.pipeline_file import pipeline_of
from bezel.engine.project.project import Project
from bezel.gitops.examples import check_examples


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED]:
    """Check the plans, and return the exit code.

    Raises:
        UserError: `bezel.toml` has problems.
    """
    report = check_examples(project, pipeline_of(project), datetime.now(UTC).date())
    publish(report, options)
    return report.exit_code
