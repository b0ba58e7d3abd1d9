"""Children of `VllmService`: the service's prerequisites, the service, and its smoke checks.

The code declares resources in order. The prerequisites are made before the service (and deleted after it),
the model's files are checked before the service is made, and the smoke checks depend on the newest created revision. In
a gated rollout they send requests to that revision's own address, and the traffic moves after them.
"""

from dataclasses import dataclass

import pulumi

from bezel.planner import Plan, Problem
from bezel.planner.base.deployment import HEALTH_PATH, ImagePlan
from bezel.planner.base.names import ACCOUNT_LENGTH, resource_name
from bezel.planner.base.settings import ProbeSettings
from bezel.planner.rules.network_checks import check_subnetwork, subnetwork_name
from bezel.rest import RestError
from bezel_base.errors import one_line
from bezel_components.cloud_run_gpu_service import (
    SERVICE_SECONDS,
    CloudRunGpuService,
    CloudRunGpuServiceArgs,
    VpcEgress,
)
from bezel_components.lookups.network import look_up_subnetwork
from bezel_components.lookups.project import project_number
from bezel_components.lookups.quota import QuotaState
from bezel_components.runtime_identity import service_account_email
from bezel_components.traffic_switch import TrafficSwitch, TrafficSwitchArgs
from bezel_components.vllm_container import BucketMount, Probe, VllmContainer
from bezel_services import environment, quota
from bezel_services.children import Children
from bezel_services.declared import DeclaredResources
from bezel_services.images import FoundImages
from bezel_services.prerequisites import (
    INGRESS,
    container_image,
    enabled_apis,
    runtime_identity,
    stack_budget,
    weights,
)
from bezel_services.settings.late_inputs import LateInputs
from bezel_services.smoke_tests import check_and_measure, template_fingerprint
from bezel_smoke.benchmark import ShortBenchmark
from bezel_smoke.health import HealthCheck


@dataclass(frozen=True)
class DeclaredService:
    """The children of a component that its outputs come from.

    Attributes:
        service: The service.
        revision: Name of the revision that serves, once it has passed its checks.
        image: Reference of the image by digest.
        health: The health check.
        benchmark: The short benchmark.
    """

    service: CloudRunGpuService
    revision: pulumi.Output[str]
    image: str
    health: HealthCheck
    benchmark: ShortBenchmark


def read_quotas(plan: Plan, *, is_preview: bool) -> QuotaState:
    """Read the quotas that the service needs; needs no engine, so any thread may call it."""
    return quota.read_service_quotas(plan, gated=_is_gated(plan), is_preview=is_preview)


def find_problems(plan: Plan, quotas: QuotaState, images: FoundImages, late: LateInputs) -> list[Problem]:
    """What is missing in the cloud: the subnetwork, quota, the image."""
    return [
        *_subnetwork_problems(plan, late),
        *quota.service_problems(plan, quotas, gated=_is_gated(plan)),
        *images.problems,
    ]


def declare(
    plan: Plan, children: Children, images: FoundImages, resources: DeclaredResources | None, late: LateInputs
) -> DeclaredService:
    """Declare the children of the service's component.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        images: The plan's image with its digest.
        resources: All resources of the program; None where another process has it.
        late: Names that the plan has a stand-in for.
    """
    gated = _is_gated(plan)
    service, image = _service(plan, children, images.by_plan[plan.service.image], late, gated=gated)
    _schedule(plan, children, service)
    _observability(plan, children, service)
    traffic = children.name_of("traffic")
    switch: TrafficSwitch | None = None
    if service.unpins:
        switch = TrafficSwitch(traffic, _switch_args(service, newest=True), opts=children.after(service))
    health, benchmark = check_and_measure(
        plan,
        children,
        service=service.resource_name,
        declared=service.declared,
        resources=resources,
        url=service.newest_url,
        # Without a gate there is one address, and the state of older stacks holds no other.
        audience=service.url if gated else None,
        revision=service.created_revision,
        earlier=(service,) if switch is None else (service, switch),
    )
    revision: pulumi.Output[str] = service.revision
    if gated:
        revision = TrafficSwitch(traffic, _switch_args(service), opts=children.after(benchmark)).revision
    return DeclaredService(service, revision, image, health, benchmark)


def _is_gated(plan: Plan) -> bool:
    return plan.settings.rollout == "gated"


def _switch_args(service: CloudRunGpuService, *, newest: bool = False) -> TrafficSwitchArgs:
    return TrafficSwitchArgs(
        service=service.resource_name,
        revision=service.created_revision,
        template=template_fingerprint(service.declared),
        newest=newest,
    )


def _subnetwork_problems(plan: Plan, late: LateInputs) -> list[Problem]:
    """Problems of a missing or unfit subnetwork; in previews, a warning about what cannot be checked."""
    if plan.service.vpc is None:
        return []
    if late.network is not None or late.subnetwork is not None:
        if pulumi.runtime.is_dry_run():
            pulumi.log.info("the subnetwork is known only after the deploy, so its range is not judged.")
        return []
    name = subnetwork_name(plan.service.vpc, plan.project, plan.service.region)
    try:
        return list(check_subnetwork(name, look_up_subnetwork(name), plan.service))
    except RestError as error:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{name} could not be checked: {one_line(error)} If it does not exist, the deploy fails.")
        return []


def _service(
    plan: Plan, children: Children, upstream: ImagePlan, late: LateInputs, *, gated: bool
) -> tuple[CloudRunGpuService, str]:
    """The service with its prerequisites, and its image by digest."""
    project, planned = plan.project, plan.service
    apis = enabled_apis(plan, children)
    identity = runtime_identity(plan, children, planned.service_account_id, planned.name, apis)
    bucket = weights(plan, children, identity, apis, location=planned.region, labels=planned.labels, late=late)
    image = container_image(
        "image",
        upstream,
        children,
        project=project,
        location=planned.region,
        repository_id=planned.image_repository_id,
        labels=planned.labels,
        earlier=(apis,),
    )
    service = CloudRunGpuService(
        children.name_of("service"),
        CloudRunGpuServiceArgs(
            project=project,
            location=planned.region,
            service=planned.name,
            container=_container(plan, late),
            image=image.reference,
            accelerator=planned.accelerator,
            zonal_redundancy=planned.zonal_redundancy,
            service_account=identity.email,
            min_instances=planned.min_instances,
            max_instances=planned.max_instances,
            request_concurrency=planned.request_concurrency,
            scheduled_minimum=max((entry.minimum for entry in planned.schedule), default=0),
            restarted_at=planned.restarted_at,
            timeout_seconds=planned.timeout_seconds,
            ingress=INGRESS[planned.ingress],
            vpc=_vpc(plan, late),
            invokers=planned.invokers,
            public=planned.public,
            gated=gated,
            retries_failed=True,
            deletion_protection=planned.deletion_protection,
            labels=planned.labels,
            deadline_seconds=environment.deadline(SERVICE_SECONDS),
        ),
        opts=children.after(identity, *bucket, image),
    )
    return service, image.reference


def _schedule(plan: Plan, children: Children, service: CloudRunGpuService) -> None:
    """Jobs that change the minimum of instances, where the stack file has a schedule."""
    planned = plan.service
    if not planned.schedule:
        return
    from bezel_components.scaling_schedule import ScalingSchedule, ScalingScheduleArgs

    args = ScalingScheduleArgs(
        project=plan.project,
        location=planned.region,
        service=planned.name,
        runtime_account=service_account_email(planned.service_account_id, plan.project),
        account_id=resource_name(plan.stack, suffix="scale", length=ACCOUNT_LENGTH),
        entries=planned.schedule,
        service_inputs=service.fingerprint,
    )
    ScalingSchedule(children.name_of("schedule"), args, opts=children.after(service))


def _observability(plan: Plan, children: Children, service: CloudRunGpuService) -> None:
    """What watches the service, where the stack file asks for it; made after the service, deleted before it."""
    chosen, planned = plan.settings.observability, plan.service
    if not (chosen.alerts or chosen.dashboard or chosen.uptime or chosen.budget is not None):
        return
    from bezel_components.observability.service_observability import ServiceObservability, ServiceObservabilityArgs
    from bezel_components.observability.uptime import UptimeCheckArgs

    uptime = UptimeCheckArgs(
        project=plan.project,
        number=project_number(plan.project) if chosen.uptime else "",
        service=planned.name,
        location=planned.region,
        url=service.url,
        path=HEALTH_PATH,
        public=planned.public,
    )
    probe = planned.startup_probe
    args = ServiceObservabilityArgs(
        project=plan.project,
        service=planned.name,
        location=planned.region,
        alerts=chosen.alerts,
        dashboard=chosen.dashboard,
        email=chosen.email or "",
        start_seconds=probe.initial_delay_seconds + probe.period_seconds * probe.failure_threshold,
        max_error_share=chosen.max_error_share,
        max_cold_starts=chosen.max_cold_starts,
        idle_hours=chosen.idle_hours if planned.min_instances else None,
        logs_statistics=planned.values.get("disable-log-stats") is not True,
        uptime=uptime if chosen.uptime else None,
        budget=stack_budget(plan, planned.labels),
        labels=planned.labels,
    )
    ServiceObservability(children.name_of("observability"), args, opts=children.after(service))


def _container(plan: Plan, late: LateInputs) -> VllmContainer:
    planned, source = plan.service, plan.weights
    mounts: tuple[BucketMount, ...] = ()
    if source.bucket and source.mount_path:
        mounts = (
            BucketMount(bucket=late.bucket_of(source.bucket), path=source.mount_path, options=source.mount_options),
        )
    return VllmContainer(
        arguments=planned.arguments,
        environment=planned.environment,
        secrets=planned.secrets,
        port=planned.port,
        cpu=planned.cpu,
        memory_gib=planned.memory_gib,
        accelerators=planned.accelerator_count,
        cpu_boost=planned.cpu_boost,
        startup_probe=_probe(planned.startup_probe),
        liveness_probe=_probe(planned.liveness_probe),
        mounts=mounts,
    )


def _probe(probe: ProbeSettings) -> Probe:
    path = HEALTH_PATH if probe.kind == "http" else ""
    return Probe(path=path, **probe.model_dump(exclude={"kind"}))


def _vpc(plan: Plan, late: LateInputs) -> VpcEgress | None:
    vpc = plan.service.vpc
    if vpc is None:
        return None
    egress = vpc.egress.replace("-", "_").upper()
    return VpcEgress(
        network=late.network_of(vpc.network or ""),
        subnetwork=late.subnetwork_of(vpc.subnetwork or ""),
        egress=egress,
        tags=vpc.tags,
    )
