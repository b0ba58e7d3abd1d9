"""The GPU service of one region, with its image, its schedule, its checks and the move of its traffic.

The code declares resources in order: the service, what watches it, its checks, and in a gated rollout the traffic. A
further region begins after the last of these: while a region fails, those after it stay as they are, and say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from bezel.planner import Plan
from bezel.planner.base.deployment import HEALTH_PATH, ImagePlan, ServicePlan
from bezel.planner.base.names import ACCOUNT_LENGTH, resource_name
from bezel.planner.base.settings import ProbeSettings
from bezel.planner.team.series_labels import series_matchers
from bezel_components.base.failure_explanation import service_failure_hook
from bezel_components.cloud_run_gpu_service import (
    SERVICE_SECONDS,
    CloudRunGpuService,
    CloudRunGpuServiceArgs,
    VpcEgress,
)
from bezel_components.lookups.project import project_number
from bezel_components.metrics.sidecar import MetricsSidecar
from bezel_components.runtime_identity import RuntimeIdentity, service_account_email
from bezel_components.traffic_switch import TrafficSwitch, TrafficSwitchArgs
from bezel_components.vllm_container import BucketMount, Probe, VllmContainer
from bezel_services import environment
from bezel_services.children import Children
from bezel_services.declared import DeclaredResources
from bezel_services.door import door_figures
from bezel_services.prerequisites import INGRESS, container_image, stack_budget
from bezel_services.regions.address import declare_drain
from bezel_services.regions.collector import server_figures
from bezel_services.regions.failure import failure_hook
from bezel_services.settings.late_inputs import LateInputs
from bezel_services.smoke_tests import check_and_measure, template_fingerprint
from bezel_smoke.benchmark import ShortBenchmark
from bezel_smoke.health import HealthCheck


@dataclass(frozen=True)
class SharedParts:
    """What the services of all regions have in common.

    Attributes:
        plan: Plan of the service.
        image: Its image, with its digest.
        identity: The account that each runs as.
        sidecar: The collector beside each server; None for none.
        earlier: What has to be there before any of them: the account, and the weights of every region.
        apis: The enabled APIs.
        audiences: Audiences of tokens beside the services' own URLs.
        resources: All resources that the program declares; None where another process has the program.
        late: Names that the plan has a stand-in for.
    """

    plan: Plan
    image: ImagePlan
    identity: RuntimeIdentity
    sidecar: MetricsSidecar | None
    earlier: tuple[pulumi.Resource, ...]
    apis: pulumi.Resource
    audiences: tuple[str, ...]
    resources: DeclaredResources | None
    late: LateInputs


@dataclass(frozen=True)
class RegionService:
    """The service of one region.

    Attributes:
        service: The service.
        revision: Name of the revision that serves, once it has passed its checks.
        image: Reference of the image by digest.
        health: The health check.
        benchmark: The short benchmark.
        last: The last resource: what comes after this region waits for it.
        drain: The wait before the service is deleted, where an address leads to it.
    """

    service: CloudRunGpuService
    revision: pulumi.Output[str]
    image: str
    health: HealthCheck
    benchmark: ShortBenchmark
    last: pulumi.Resource
    drain: tuple[pulumi.Resource, ...]


def is_gated(plan: Plan) -> bool:
    """Whether a new revision gets its traffic only after its checks."""
    return plan.settings.rollout == "gated"


def declare_region(
    shared: SharedParts,
    planned: ServicePlan,
    children: Children,
    *,
    before: Sequence[pulumi.Resource],
    after: Sequence[str],
) -> RegionService:
    """Declare the service of a region and what belongs to it.

    Args:
        shared: What all regions have in common.
        planned: The service as it is in the region.
        children: The region's children of the component.
        before: The last resource of the region before it; () for the first.
        after: The regions that wait for it.
    """
    gated = is_gated(shared.plan)
    (region,) = (each for each in shared.plan.regions if each.region == planned.region)
    telling = failure_hook(children.name_of("explain-regions"), region, planned.name, after)
    service, image = region_service(shared, planned, children, before, telling)
    _schedule(shared.plan, planned, children, service)
    _observability(shared.plan, planned, children, service, is_first=not before)
    traffic = children.name_of("traffic")
    switch: TrafficSwitch | None = None
    if service.unpins:
        switch = TrafficSwitch(traffic, _switch_args(service, newest=True), opts=children.after(service))
    health, benchmark = check_and_measure(
        shared.plan,
        children,
        service=service.resource_name,
        declared=service.declared,
        resources=shared.resources,
        url=service.newest_url,
        # Without a gate there is one address, and the state of older stacks holds no other.
        audience=service.url if gated else None,
        revision=service.created_revision,
        earlier=(service,) if switch is None else (service, switch),
        hooks=None if telling is None else pulumi.ResourceHookBinding(on_error=[telling]),
    )
    drain = declare_drain(shared.plan, children, service.resource_name, planned.labels, service)
    if not gated:
        return RegionService(service, service.revision, image, health, benchmark, benchmark, drain)
    move = TrafficSwitch(traffic, _switch_args(service), opts=children.after(benchmark))
    return RegionService(service, move.revision, image, health, benchmark, move, drain)


def _switch_args(service: CloudRunGpuService, *, newest: bool = False) -> TrafficSwitchArgs:
    return TrafficSwitchArgs(
        service=service.resource_name,
        revision=service.created_revision,
        template=template_fingerprint(service.declared),
        newest=newest,
    )


def region_service(
    shared: SharedParts,
    planned: ServicePlan,
    children: Children,
    before: Sequence[pulumi.Resource] = (),
    telling: pulumi.ErrorHook | None = None,
) -> tuple[CloudRunGpuService, str]:
    """The service with its copy of the image, and that image by digest."""
    image = container_image(
        "image",
        shared.image,
        children,
        project=shared.plan.project,
        location=planned.region,
        repository_id=planned.image_repository_id,
        labels=planned.labels,
        earlier=(shared.apis,),
    )
    name, hooks = children.name_of("service"), None
    if telling is not None:
        hooks = pulumi.ResourceHookBinding(on_error=[service_failure_hook(f"{name}-explain-failure"), telling])
    service = CloudRunGpuService(
        name,
        CloudRunGpuServiceArgs(
            project=shared.plan.project,
            location=planned.region,
            service=planned.name,
            container=_container(planned, shared.late),
            sidecar=shared.sidecar,
            image=image.reference,
            accelerator=planned.accelerator,
            zonal_redundancy=planned.zonal_redundancy,
            service_account=shared.identity.email,
            min_instances=planned.min_instances,
            max_instances=planned.max_instances,
            request_concurrency=planned.request_concurrency,
            scheduled_minimum=max((entry.minimum for entry in planned.schedule), default=0),
            restarted_at=planned.restarted_at,
            timeout_seconds=planned.timeout_seconds,
            ingress=INGRESS[planned.ingress],
            vpc=_vpc(planned, shared.late),
            invokers=planned.invokers,
            public=planned.public,
            audiences=shared.audiences,
            gated=is_gated(shared.plan),
            retries_failed=True,
            deletion_protection=planned.deletion_protection,
            labels=planned.labels,
            deadline_seconds=environment.deadline(SERVICE_SECONDS),
            hooks=hooks,
        ),
        opts=children.after(*shared.earlier, image, *before),
    )
    return service, image.reference


def _schedule(plan: Plan, planned: ServicePlan, children: Children, service: CloudRunGpuService) -> None:
    """Jobs that change the minimum of instances, where the stack file has a schedule."""
    if not planned.schedule:
        return
    from bezel_components.scaling_schedule import ScalingSchedule, ScalingScheduleArgs

    # Accounts are the project's: each region's jobs have one of their own.
    suffix = f"scale-{children.region}" if children.region else "scale"
    args = ScalingScheduleArgs(
        project=plan.project,
        location=planned.region,
        service=planned.name,
        runtime_account=service_account_email(planned.service_account_id, plan.project),
        account_id=resource_name(plan.stack, suffix=suffix, length=ACCOUNT_LENGTH),
        entries=planned.schedule,
        service_inputs=service.fingerprint,
    )
    ScalingSchedule(children.name_of("schedule"), args, opts=children.after(service))


def _observability(
    plan: Plan, planned: ServicePlan, children: Children, service: CloudRunGpuService, *, is_first: bool
) -> None:
    """What watches the service, where the stack file asks for it; made after the service, deleted before it.

    The budget and the check of the address are the stack's, so they are made once.
    """
    chosen = plan.settings.observability
    budget = stack_budget(plan, planned.labels) if is_first else None
    if not (chosen.alerts or chosen.dashboard or chosen.uptime or budget is not None):
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
        figures=server_figures(plan, series_matchers(planned.name, leased=False, location=planned.region)),
        uptime=uptime if chosen.uptime else None,
        several_regions=len(plan.regions) > 1,
        domain=plan.address.domain if plan.address and is_first else "",
        door=door_figures(plan) if is_first else None,
        budget=budget,
        labels=planned.labels,
    )
    ServiceObservability(children.name_of("observability"), args, opts=children.after(service))


def _container(planned: ServicePlan, late: LateInputs) -> VllmContainer:
    source = planned.weights
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
        readiness_probe=_probe(planned.readiness_probe) if planned.readiness_probe else None,
        mounts=mounts,
    )


def _probe(probe: ProbeSettings) -> Probe:
    path = HEALTH_PATH if probe.kind == "http" else ""
    return Probe(path=path, **probe.model_dump(exclude={"kind"}))


def _vpc(planned: ServicePlan, late: LateInputs) -> VpcEgress | None:
    vpc = planned.vpc
    if vpc is None:
        return None
    egress = vpc.egress.replace("-", "_").upper()
    return VpcEgress(
        network=late.network_of(vpc.network or ""),
        subnetwork=late.subnetwork_of(vpc.subnetwork or ""),
        egress=egress,
        tags=vpc.tags,
    )
