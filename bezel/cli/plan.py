"""`bezel plan STACK`: prints the plan of a stack as text. Leaves out how it is computed: see `bezel.planner`."""

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime

from bezel.localcloud.core.paths import PROJECT
from bezel.planner import make_plan, plan_summary
from bezel.planner.assemble.provenance import STACK_FILE
from bezel.pulumi_engine.project import Project


def print_plan(project: Project, options: argparse.Namespace) -> int:
    """Print the plan; return the exit code.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
    """
    stack = options.stack
    cloud_project = project.cloud_project(stack)
    if cloud_project is None:
        sys.stderr.write(f"No Google Cloud project is set (gcp:project, GOOGLE_PROJECT): planned for {PROJECT}.\n\n")
    today = datetime.now(UTC).date()
    plan = make_plan(project.configuration(stack), project=cloud_project or PROJECT, stack=stack, today=today)
    # The plan itself cannot distinguish a default of Pulumi.yaml from the same value in the stack's file.
    written = {key: STACK_FILE for key in project.given_keys(stack) if key in plan.origins}
    sys.stdout.write(f"{plan_summary(replace(plan, origins={**plan.origins, **written}))}\n")
    return 0
