"""Gated rollout of a stack: moves the traffic after the checks."""

import pulumi

from bezel.planner import Plan
from components.cloud_run_gpu_service import CloudRunGpuService
from components.traffic_switch import TrafficSwitch, TrafficSwitchArgs


def is_gated(plan: Plan) -> bool:
    """Whether a new revision gets no traffic before its checks pass."""
    return plan.settings.rollout == "gated"


def serving(plan: Plan, service: CloudRunGpuService, checked: pulumi.Resource) -> pulumi.Output[str]:
    """Name of the serving revision; a gated rollout moves the traffic to it.

    Args:
        plan: Plan of the stack.
        service: The service whose traffic is moved.
        checked: The resource of the checks that have to pass first.
    """
    revision: pulumi.Output[str] = service.revision
    if is_gated(plan):
        args = TrafficSwitchArgs(service=service.resource_name, revision=service.created_revision)
        revision = TrafficSwitch("traffic", args, opts=pulumi.ResourceOptions(depends_on=[checked])).revision
    return revision
