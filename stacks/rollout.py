"""What `rollout: gated` adds to a stack: a look for room beforehand, and the move of the traffic behind the checks."""

import pulumi

from bezel.planner import Plan, PlanError
from bezel.planner.rollout import QUOTA_API, check_room, gpu_quota
from bezel.rest import RestError
from components.cloud_run_gpu_service import CloudRunGpuService
from components.service_now import look_up_quota
from components.traffic_switch import TrafficSwitch, TrafficSwitchArgs


def is_gated(plan: Plan) -> bool:
    """Whether a new revision gets no traffic before it was checked."""
    return plan.settings.rollout == "gated"


def apis(plan: Plan) -> tuple[str, ...]:
    """The APIs that the rollout asks beside those of every stack."""
    return (QUOTA_API,) if is_gated(plan) else ()


def look_for_room(plan: Plan) -> None:
    """Look whether a gated rollout has GPUs for two revisions at a time; what cannot be known is said, in previews.

    Raises:
        PlanError: It has not.
    """
    if not is_gated(plan):
        return
    wanted = plan.service
    quota = gpu_quota(wanted.accelerator, zonal_redundancy=wanted.zonal_redundancy)
    try:
        allowed = look_up_quota(plan.project, quota.id, wanted.region)
    except RestError as error:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(
                f"{quota.id} of {wanted.region} is not known ({error}). If it holds fewer GPUs than two revisions may"
                " need at a time, a gated rollout can fail; bezel:rollout: direct asks for fewer."
            )
        return
    problems = check_room(
        allowed,
        max_instances=wanted.max_instances,
        gpus=wanted.accelerator_count,
        quota=quota,
        region=wanted.region,
    )
    if problems:
        raise PlanError(tuple(problems), stack=plan.stack)


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
