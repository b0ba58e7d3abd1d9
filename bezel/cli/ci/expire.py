"""`bezel ci expire`: shows stacks, leases and leftovers that are over, and destroys those of dev that it may."""

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import Literal

from bezel.cli.ci.drift import section_name, show_issue
from bezel.cli.ci.lock import parse_wait
from bezel.cli.ci.output import publish
from bezel.engine.locks.taker import hold, surroundings
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project, checked_cloud_project, cloud_project_of
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.gitops.upkeep.expiry_run import destroy
from bezel.gitops.upkeep.issue import report_to_issue
from bezel.gitops.upkeep.sections import Section
from bezel.leases.clock import clock_of
from bezel.leases.inventory import LeaseInventory, new_client
from bezel.upkeep.expiry_plan import make_plan
from bezel.upkeep.expiry_report import ExpiryReport
from bezel_base.console import note


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.FAILED]:
    """Show the plan, destroy after consent, publish the result, and return the exit code.

    Raises:
        UserError: An option is wrong, or the issue cannot be updated.
    """
    wait, around = parse_wait(options.wait), surroundings(os.environ)
    is_named = options.project or cloud_project_of(os.environ)
    cloud_project = checked_cloud_project(options.project) if is_named else None
    clock = clock_of()
    with new_client(clock) as client:
        plan = make_plan(project, cloud_project, clock, client)
        to_destroy = [finding for finding in plan.findings if finding.may_destroy]
        if to_destroy and _is_wanted(ExpiryReport.of(plan), yes=options.yes):
            with StateBucket.of(os.environ.get(BACKEND)) as states:
                inventory = LeaseInventory(client, clock, cloud_project, (), note) if cloud_project else None
                today = datetime.fromtimestamp(clock.now(), UTC).date()
                destroy(plan, project, inventory, lambda stack: hold(states, project.name, stack, wait, around), today)
    report = ExpiryReport.of(plan)
    publish(report, options)
    if options.issue:
        section = Section(section_name("expiry", project), report.markdown(), report.is_well)
        show_issue(report_to_issue(os.environ, section))
    return report.exit_code


def _is_wanted(report: ExpiryReport, *, yes: bool) -> bool:
    """Show the plan, and whether the user agrees to destroy what it allows."""
    note(report.text().rstrip("\n"))
    if yes:
        return True
    if not sys.stdin.isatty():
        note("nothing is destroyed: there is no terminal to confirm it; add --yes")
        return False
    sys.stderr.write("destroy what may be destroyed? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
