"""`bezel ci drift`: reports where the cloud and the program differ, for one stack, several, or all deployed ones."""

import argparse
import os
import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.engine.run.stack import deployed_engine
from bezel.engine.state.bucket import BACKEND
from bezel.gitops.upkeep.issue import report_to_issue
from bezel.gitops.upkeep.sections import Section
from bezel.operations.context import Context
from bezel.operations.outside import outside_of
from bezel.outside_changes.change import Findings
from bezel.outside_changes.declared import Entry, declared_in
from bezel.upkeep.drift import StackDrift, drift_of
from bezel.upkeep.drift_report import DriftReport
from bezel.upkeep.stacks import stacks_in_backend
from bezel_base.console import note
from bezel_base.errors import NOT_SET, Problem, WrongValueError

_SECONDS = 60.0


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED, Exit.DRIFTED]:
    """Report the drift, publish it, and return the exit code.

    Raises:
        UserError: An option is wrong, the backend cannot be read, or the issue cannot be updated.
    """
    if bool(options.stack) == options.all:
        consequence = "expected the names of stacks, or --all."
        names = " ".join(options.stack) or NOT_SET
        raise WrongValueError(Problem("STACK", names, consequence, "name one, or add --all."))
    stacks = tuple(_drift(project, stack) for stack in _stacks_of(project, options))
    report = DriftReport(stacks)
    publish(report, options)
    if options.issue:
        section = Section(section_name("drift", project), report.markdown(), report.exit_code == Exit.DONE)
        show_issue(report_to_issue(os.environ, section))
    return report.exit_code


def section_name(kind: str, project: Project) -> str:
    """Name of a report's section in the issue: projects and backends have their own. No user and no password."""
    backend = re.sub(r"//[^/]*@", "//", os.environ.get(BACKEND, "")).partition("?")[0]
    return f"{kind} of {project.name} in {backend or 'the current backend'}"


def show_issue(url: str) -> None:
    """Name the updated issue."""
    note(f"issue: {url}" if url else "no issue is open, and none is needed")


def _stacks_of(project: Project, options: argparse.Namespace) -> list[str]:
    if not options.all:
        return list(dict.fromkeys(options.stack))
    return [stack for stack, resources in stacks_in_backend(project).items() if resources != 0]


def _drift(project: Project, stack: str) -> StackDrift:
    note(f"reading {stack}")
    if stack not in project.stacks():
        problem = f"there is no Pulumi.{stack}.yaml, so there is no program to compare with: see `bezel ci expire`"
        return StackDrift(stack, "unknown", problems=(problem,))
    return drift_of(stack, deployed_engine(project, stack, os.environ), partial(_outside, project, stack))


def _outside(project: Project, stack: str, entries: Sequence[Entry]) -> Findings:
    """What was changed outside of the program, of everything that the stack has."""
    with Context(project.folder, os.environ) as context:
        return outside_of(context, stack, declared_in(entries), seconds=_SECONDS)
