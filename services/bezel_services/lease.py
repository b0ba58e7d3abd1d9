"""Children of `LeasedVllmService`: network, machines, a gateway with identity, and the smoke checks.

The code declares resources in order. Requests for machines are in the state before the wait for them begins;
the gateway is created once the machines respond, and the checks go through it as any caller does. A lease that ended is
reported and not renewed, and the gateway then returns an error that no machine is there.

With a fallback (`leases.fallback`) the order is another one: the service that serves without a lease, the gateway for
every address that machines may get, the fallback's check, then the leases. A lease that no zone grants is a warning.

With hours (`lease.hours`) machines come and go between deploys. So the gateway is created first, for every address that
they may get, and a lease is requested for whatever makes the checks run again; after these it is returned, if the
present time is outside its hours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pulumi

from bezel.leases.names import labels
from bezel.leases.requests import PROVISIONING_MODELS, ZoneChoice, instance_body, queued_body
from bezel.planner import LeasePlan, Problem
from bezel.planner.base.money import Priced
from bezel.planner.team.series_labels import series_matchers
from bezel_components.base.arguments import Text
from bezel_components.config.gateway_fallback import FALLBACK, LEASE
from bezel_components.config.node_metadata import node_metadata
from bezel_components.container_image import ContainerImage
from bezel_components.identity_gateway import IdentityGateway, IdentityGatewayArgs
from bezel_components.lease_hours import again_jobs, start_jobs
from bezel_components.lookups.quota import QuotaState
from bezel_components.node_network import NodeNetwork, NodeNetworkArgs
from bezel_components.observability.lease_observability import LeaseObservability, LeaseObservabilityArgs
from bezel_components.runtime_identity import RuntimeIdentity
from bezel_components.tpu_lease import TpuLease, TpuLeaseArgs
from bezel_services import environment, quota
from bezel_services.children import Children
from bezel_services.declared import DeclaredResources
from bezel_services.door import DeclaredDoor, ServerBehindDoor, declare_door, door_figures
from bezel_services.images import FoundImages
from bezel_services.leases.hours import checks_of, schedule
from bezel_services.prerequisites import (
    INGRESS,
    container_image,
    enabled_apis,
    runtime_identity,
    stack_budget,
    weights,
)
from bezel_services.regions.address import DeclaredAddress, audiences, declare_address, declare_drain
from bezel_services.regions.collector import server_figures
from bezel_services.regions.deployed import Deployed, protection_problems
from bezel_services.regions.domain import domain_problems
from bezel_services.smoke_tests import check_and_measure
from bezel_smoke.benchmark import ShortBenchmark
from bezel_smoke.health import HealthCheck

if TYPE_CHECKING:
    from bezel_services.leases.fallback import DeclaredFallback


@dataclass(frozen=True)
class DeclaredLeases:
    """The children of a component that its outputs come from.

    Attributes:
        gateway: The gateway.
        leases: Name of each lease -> its state, zone, end, cost and hours.
        image: Reference of the server's image by digest.
        health: The health check.
        benchmark: The short benchmark.
        address: The address in front of the gateway; None without one.
        door: The door for callers by key; None without one.
    """

    gateway: IdentityGateway
    leases: Mapping[str, Mapping[str, Any]]
    image: str
    health: HealthCheck
    benchmark: ShortBenchmark
    address: DeclaredAddress | None
    door: DeclaredDoor | None


@dataclass(frozen=True)
class LeaseQuotas:
    """Quotas of a stack of leased machines.

    Attributes:
        leases: Those of the leases.
        fallback: Region -> those of the fallback; empty without one.
    """

    leases: QuotaState
    fallback: Mapping[str, QuotaState]


def read_quotas(plan: LeasePlan, *, is_preview: bool) -> LeaseQuotas:
    """Read the quotas that the leases and their fallback need; needs no engine, so any thread may call it."""
    service = plan.fallback.plan if plan.fallback else None
    return LeaseQuotas(
        quota.read_lease_quotas(plan, is_preview=is_preview),
        quota.read_service_quotas(service, gated=False, is_preview=is_preview) if service else {},
    )


def find_problems(plan: LeasePlan, quotas: LeaseQuotas, images: FoundImages, deployed: Deployed) -> list[Problem]:
    """What is missing in the cloud: quota, an image, a zone of the address; and a service that may not be deleted."""
    problems = [*quota.lease_problems(plan, quotas.leases), *images.problems, *domain_problems(plan, deployed.address)]
    services = {(plan.gateway.region, plan.gateway.name)}
    if plan.fallback:
        service = plan.fallback.service
        state = quotas.fallback[service.region]
        problems += quota.service_problems(plan.fallback.plan, service, state, gated=False)
        services.add((service.region, service.name))
    if plan.door:
        services.add((plan.door.region, plan.door.name))
    return [*problems, *protection_problems(deployed, services)]


def declare(
    plan: LeasePlan, children: Children, images: FoundImages, resources: DeclaredResources, deployed: Deployed
) -> DeclaredLeases:
    """Declare the children of the service's component.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        images: The plan's images with their digests.
        resources: All resources of the program.
        deployed: What the state has of the service.
    """
    hours, is_ahead = plan.terms.hours, _is_gateway_ahead(plan)
    apis = enabled_apis(plan, children)
    identity = runtime_identity(
        plan, children, plan.service_account_id, plan.stack, apis, writes_logs=_tells_its_end(plan)
    )
    shared: dict[str, Any] = {
        "children": children,
        "project": plan.project,
        "location": plan.gateway.region,
        "labels": plan.labels,
        "earlier": (apis, identity),
    }
    # Each machine pulls the server's image itself; Cloud Run pulls the proxy's.
    repository = plan.image_repository_id
    server, gateway_proxy = images.by_plan[plan.node.image], images.by_plan[plan.gateway.image]
    image = container_image("image", server, repository_id=repository, readers=(identity.email,), **shared)
    proxy = container_image("gateway-image", gateway_proxy, repository_id=f"{repository}-gateway", **shared)
    network = NodeNetwork(
        children.name_of("network"),
        NodeNetworkArgs(
            project=plan.project,
            network=plan.network.name,
            regions=plan.network.regions,
            gateway_region=plan.gateway.region,
            port=plan.node.port,
            nat=plan.network.nat,
            machines=len(plan.terms.names) if is_ahead else None,
        ),
        opts=children.after(apis),
    )
    cache = plan.node.compile_cache.removeprefix(f"gs://{plan.weights.bucket}/")
    bucket = weights(
        plan, children, identity, apis, location=plan.gateway.region, labels=plan.labels, written_folder=cache
    )
    earlier = (identity, image, network, *bucket)
    bodies = {name: _body(plan, name, network, image, identity) for name in plan.terms.names}
    fallback = None
    if plan.fallback is not None:
        from bezel_services.leases.fallback import declare_fallback

        fallback = declare_fallback(plan, plan.fallback, children, images, apis, bucket)
    make_gateway = partial(
        _gateway,
        plan,
        children,
        network,
        proxy,
        accepted=audiences(plan, deployed),
        fallback=fallback,
    )
    possible = [address for region in plan.network.regions for address in network.addresses[region]] if is_ahead else []
    gateway = make_gateway(possible) if is_ahead else None
    checked = checks_of(plan, gateway) if gateway and hours else ""
    if gateway and fallback:
        earlier = (*earlier, fallback.check(gateway, public=plan.gateway.public))
    leases = {name: _lease(plan, children, name, network, body, checked, earlier) for name, body in bodies.items()}
    gateway = gateway or make_gateway([lease.address for lease in leases.values()])
    _observability(plan, children, gateway)
    # A new lease or a new gateway has to be checked again. With hours everything is: only the health check waits until
    # the gateway has seen the machine.
    identities = [lease.lease for lease in leases.values()]
    revision = pulumi.Output.all(gateway.created_revision, *identities, *([checked] if hours else [])).apply(" ".join)
    health, benchmark = check_and_measure(
        plan,
        children,
        service=gateway.resource_name,
        declared=gateway.declared,
        resources=resources,
        url=_checked_url(gateway, leases) if fallback else gateway.url,
        audience=gateway.url if fallback else None,
        revision=revision,
        earlier=(gateway, *leases.values()),
        # With a fallback something serves when no lease does.
        leases=[] if fallback else [_place(plan, name, lease) for name, lease in leases.items()],
    )
    if hours:
        schedule(plan, children, network, identity, bodies, leases, benchmark)
    states = {
        name: {"state": lease.state, "zone": lease.zone, "ends_at": lease.ends_at, "cost": lease.cost}
        | ({"hours": [window._asdict() for window in hours]} if hours else {})
        for name, lease in leases.items()
    }
    behind = {plan.gateway.region: plan.gateway.name}
    drain = declare_drain(plan, children, gateway.resource_name, plan.labels, gateway)
    address = declare_address(plan, children, behind, plan.labels, apis, *drain, benchmark)
    served = ServerBehindDoor(
        url=gateway.url,
        address=address,
        services=behind,
        repository_id=repository,
        labels=plan.labels,
        deletion_protection=plan.gateway.deletion_protection,
    )
    door = declare_door(plan, children, images, apis, served, gateway, *drain, benchmark)
    return DeclaredLeases(gateway, states, image.reference, health, benchmark, address, door)


def _is_gateway_ahead(plan: LeasePlan) -> bool:
    """Whether the gateway is made before the leases, for every address that their machines may get."""
    return bool(plan.terms.hours) or plan.fallback is not None


def _checked_url(gateway: IdentityGateway, leases: Mapping[str, TpuLease]) -> pulumi.Output[str]:
    """The part of a gateway with a fallback that is checked and measured: the leases, or else the fallback."""

    def write(values: Sequence[Any]) -> str:
        url, *granted = values
        return f"{url}/{LEASE if any(granted) else FALLBACK}"

    return pulumi.Output.all(gateway.url, *(lease.granted for lease in leases.values())).apply(write)


def _place(plan: LeasePlan, name: str, lease: TpuLease) -> dict[str, Any]:
    """Where a lease is: in a zone of the plan, or in that of an earlier plan."""
    zones = [{"zone": zone.zone, "patience_seconds": zone.patience_seconds} for zone in plan.terms.zones]
    identity = {"project": plan.project, "name": name, "stack": plan.labels["stack"], "back_end": plan.terms.back_end}
    return {**identity, "zones": zones, "former_zones": [lease.zone]}


def _lease(
    plan: LeasePlan,
    children: Children,
    name: str,
    network: NodeNetwork,
    body: dict[str, Any],
    checked: pulumi.Input[str],
    earlier: tuple[pulumi.Resource, ...],
) -> TpuLease:
    terms, number = plan.terms, plan.terms.names.index(name)
    hourly = {zone: line.hourly for zone, line in plan.cost.by_zone.items()}
    return TpuLease(
        children.name_of(f"lease-{number}" if number else "lease"),
        TpuLeaseArgs(
            project=plan.project,
            name=name,
            stack=plan.labels["stack"],
            back_end=terms.back_end,
            zones=tuple(ZoneChoice(zone.zone, zone.patience_seconds) for zone in terms.zones),
            subnetworks=network.subnetworks,
            body=body,
            renew=terms.renew,
            provisioning_deadline_seconds=terms.provisioning_deadline_seconds,
            boot_deadline_seconds=environment.deadline(terms.boot_deadline_seconds),
            hourly_usd={
                zone: float(amount.usd) if isinstance(amount, Priced) else None for zone, amount in hourly.items()
            },
            run_seconds=terms.run_seconds,
            port=plan.node.port,
            hours=terms.hours,
            optional=plan.fallback is not None,
            checked=checked,
        ),
        opts=children.after(*earlier),
    )


def _body(
    plan: LeasePlan, name: str, network: NodeNetwork, image: ContainerImage, identity: RuntimeIdentity
) -> dict[str, Any]:
    terms, node = plan.terms, plan.node
    hardware = terms.hardware
    shared: dict[str, Any] = {
        "labels": labels(name, plan.labels["stack"], plan.labels),
        "metadata": node_metadata(
            image=image.reference,
            arguments=node.arguments,
            environment=node.environment,
            secrets=node.secrets,
            weights=node.weights.address,
            model_folder=node.weights.model if node.weights.bucket else "",
            compile_cache=node.compile_cache,
            port=node.port,
            device=hardware.device,
            packages=node.packages,
            end_notice=(name, plan.labels["stack"], terms.run_seconds) if _tells_its_end(plan) else None,
            collector=_collector(plan, name),
        ),
        "service_account": identity.email,
        "provisioning_model": PROVISIONING_MODELS[terms.provisioning],
        "run_seconds": terms.run_seconds,
        "tags": (network.tag,),
    }
    if terms.back_end == "flex_start_vm":
        return instance_body(
            machine_type=hardware.machine_type,
            source_image=hardware.machine_image,
            disk_type=hardware.disk_type,
            **shared,
        )
    assert hardware.slice is not None  # noqa: S101 - the plan allows only slices there
    return queued_body(
        name,
        accelerator_type=hardware.slice.id,
        runtime_version=hardware.slice.runtime_version,
        network=network.network,
        **shared,
    )


def _collector(plan: LeasePlan, name: str) -> tuple[str, str] | None:
    """Image and configuration of what writes the series of a machine's server; None where they are not kept."""
    if plan.metrics is None:
        return None
    from bezel_components.metrics.node_collector import IMAGE, node_configuration

    return IMAGE, node_configuration(
        project=plan.project,
        namespace=plan.gateway.name,
        lease=name,
        port=plan.node.port,
        interval_seconds=plan.metrics.interval_seconds,
    )


def _gateway(
    plan: LeasePlan,
    children: Children,
    network: NodeNetwork,
    proxy: ContainerImage,
    addresses: Sequence[Text],
    *,
    accepted: tuple[str, ...],
    fallback: "DeclaredFallback | None",
) -> IdentityGateway:
    planned = plan.gateway
    return IdentityGateway(
        children.name_of("gateway"),
        IdentityGatewayArgs(
            project=plan.project,
            location=planned.region,
            service=planned.name,
            account_id=planned.service_account_id,
            image=proxy.reference,
            nodes=tuple(addresses),
            machines=len(plan.terms.names) if _is_gateway_ahead(plan) else None,
            fallback=fallback.behind_gateway if fallback else None,
            port=plan.node.port,
            network=network.network,
            subnetwork=network.gateway_subnetwork,
            max_instances=planned.max_instances,
            timeout_seconds=planned.timeout_seconds,
            ingress=INGRESS[planned.ingress],
            invokers=planned.invokers,
            public=planned.public,
            audiences=accepted,
            deletion_protection=planned.deletion_protection,
            labels=plan.labels,
        ),
        opts=children.after(proxy, network, *([fallback.service] if fallback else [])),
    )


def _tells_its_end(plan: LeasePlan) -> bool:
    """Whether a machine writes that its lease is about to end: with hours that is no news."""
    return plan.settings.observability.alerts and not plan.terms.hours


def _matchers(plan: LeasePlan) -> str:
    """Matchers of the series of its machines, and of its fallback where it has one."""
    fallback = plan.fallback.service.name if plan.fallback else ""
    return series_matchers(plan.gateway.name, leased=True, fallback=fallback)


def _observability(plan: LeasePlan, children: Children, gateway: IdentityGateway) -> None:
    """What watches leases and gateway, where the stack file asks for it; made after the gateway, deleted before it."""
    chosen = plan.settings.observability
    if not (chosen.alerts or chosen.dashboard or chosen.budget is not None):
        return
    args = LeaseObservabilityArgs(
        project=plan.project,
        stack=plan.labels["stack"],
        gateway=plan.gateway.name,
        location=plan.gateway.region,
        alerts=chosen.alerts,
        dashboard=chosen.dashboard,
        email=chosen.email or "",
        max_error_share=chosen.max_error_share,
        renews=plan.terms.renew,
        starts=tuple(job for name in plan.terms.names for job in start_jobs(name, plan.terms.hours)),
        agains=tuple(
            job
            for name in plan.terms.names
            for job in again_jobs(name, plan.terms.hours, plan.terms.zones[0].patience_seconds)
        ),
        figures=server_figures(plan, _matchers(plan)),
        door=door_figures(plan),
        budget=stack_budget(plan, plan.labels),
        labels=plan.labels,
    )
    LeaseObservability(children.name_of("observability"), args, opts=children.after(gateway))
