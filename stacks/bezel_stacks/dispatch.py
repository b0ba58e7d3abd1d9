"""Dispatch of a plan to its kind of stack. Each kind is imported when needed: no preview pays for the others."""

from typing import Any

import pulumi

from bezel.planner import AnyPlan, LeasePlan
from bezel_stacks.limits import limit_operations


def deploy(plan: AnyPlan) -> dict[str, Any]:
    """Declare the resources of a plan; return the stack's outputs."""
    limit_operations()
    if pulumi.runtime.is_dry_run():
        for warning in plan.warnings:
            pulumi.log.warn(warning)
    if isinstance(plan, LeasePlan):
        from bezel_stacks import lease

        return lease.deploy(plan)
    from bezel_stacks import cloud_run

    return cloud_run.deploy(plan)
