"""What `rollout: gated` adds to a stack: the move of the traffic behind the checks."""

import pulumi

from bezel.planner import Plan
from components.cloud_run_gpu_service import CloudRunGpuService
from components.traffic_switch import TrafficSwitch, TrafficSwitchArgs


def is_gated(plan: Plan) -> bool:
    """Whether a new revision gets no traffic before it was checked."""
    return plan.settings.rollout == "gated"


def serving(plan: Plan, service: CloudRunGpuService, checked: pulumi.Resource) -> pulumi.Output[str]:
    """Name of the revision that serves; in a gated rollout the traffic is moved there now.

    Args:
        plan: Of the stack.
        service: Whose traffic it is.
        checked: What has to hold first.
    """
    revision: pulumi.Output[str] = service.revision
    if is_gated(plan):
        args = TrafficSwitchArgs(service=service.resource_name, revision=service.created_revision)
        revision = TrafficSwitch("traffic", args, opts=pulumi.ResourceOptions(depends_on=[checked])).revision
    return revision
