"""Children of `VllmService`: the service's prerequisites, its service in each region, and the address of all.

The code declares resources in order. The prerequisites are made before the services (and deleted after them), and the
model's files are checked before a service is made. One region is deployed and checked after the other, in the order of
the plan, then the address is made, and the door last. Leaves out what a region has (`regions.service`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pulumi

from bezel.planner import Plan, Problem
from bezel.planner.base.deployment import ServicePlan
from bezel.planner.rules.network_checks import check_subnetwork, subnetwork_name
from bezel.rest import RestError
from bezel_base.errors import one_line
from bezel_components.enabled_apis import EnabledApis
from bezel_components.lookups.network import look_up_subnetwork
from bezel_components.lookups.quota import QuotaState
from bezel_components.runtime_identity import RuntimeIdentity
from bezel_services import quota
from bezel_services.children import Children
from bezel_services.declared import DeclaredResources
from bezel_services.door import DeclaredDoor, ServerBehindDoor, declare_door
from bezel_services.images import FoundImages
from bezel_services.preparation import refuse
from bezel_services.prerequisites import enabled_apis, runtime_identity, weights
from bezel_services.regions.address import DeclaredAddress, audiences, declare_address
from bezel_services.regions.collector import declare_collector
from bezel_services.regions.deployed import Deployed, protection_problems
from bezel_services.regions.domain import domain_problems
from bezel_services.regions.optional import leave_out_regions
from bezel_services.regions.service import RegionService, SharedParts, declare_region, is_gated
from bezel_services.settings.late_inputs import LateInputs
from bezel_smoke.benchmark import ShortBenchmark
from bezel_smoke.health import HealthCheck

Quotas = Mapping[str, QuotaState]
"""Region -> the quotas that the service needs there."""


@dataclass(frozen=True)
class DeclaredService:
    """The children of a component that its outputs come from.

    Attributes:
        regions: Region -> its service, the first region first.
        address: The address of all; None without one.
        door: The door for callers by key; None without one.
    """

    regions: Mapping[str, RegionService]
    address: DeclaredAddress | None
    door: DeclaredDoor | None

    @property
    def first(self) -> RegionService:
        """The service of the first region."""
        return next(iter(self.regions.values()))

    @property
    def image(self) -> str:
        """Reference of the image by digest, in the first region."""
        return self.first.image

    @property
    def health(self) -> HealthCheck:
        """The health check of the first region."""
        return self.first.health

    @property
    def benchmark(self) -> ShortBenchmark:
        """The short benchmark of the first region."""
        return self.first.benchmark


def read_quotas(plan: Plan, *, is_preview: bool) -> Quotas:
    """Read the quotas that the service needs in each region; needs no engine, so any thread may call it."""
    return quota.read_service_quotas(plan, gated=is_gated(plan), is_preview=is_preview)


def fit_to_cloud(plan: Plan, quotas: Quotas, images: FoundImages, late: LateInputs, deployed: Deployed) -> Plan:
    """The plan without the optional regions that have no quota for it.

    Raises:
        PlanError: The cloud has no room for it, a registry no such image, or the project no zone for its address; it
            holds every problem.
    """
    gated = is_gated(plan)
    short = {
        each.region: quota.service_problems(plan, each, quotas[each.region], gated=gated) for each in plan.services
    }
    fitting, problems = leave_out_regions(plan, quotas, short)
    of_networks = [each for service in fitting.services for each in _subnetwork_problems(plan, service, late)]
    services = {(each.region, each.name) for each in fitting.services}
    if plan.door:
        services.add((plan.door.region, plan.door.name))
    protected = protection_problems(deployed, services)
    of_domain = domain_problems(fitting, deployed.address)
    refuse(plan, [*of_networks, *problems, *protected, *images.problems, *of_domain])
    return fitting


def declare(
    plan: Plan,
    children: Children,
    images: FoundImages,
    resources: DeclaredResources | None,
    late: LateInputs,
    deployed: Deployed,
) -> DeclaredService:
    """Declare the children of the service's component.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        images: The plan's image with its digest.
        resources: All resources of the program; None where another process has it.
        late: Names that the plan has a stand-in for.
        deployed: What the state has of the service.
    """
    apis = enabled_apis(plan, children)
    identity = runtime_identity(plan, children, plan.service.service_account_id, plan.service.name, apis)
    first, labels = plan.service, plan.service.labels
    collector = declare_collector(
        plan, children, identity, service=first.name, port=first.port, labels=labels, earlier=(apis, identity)
    )
    shared = SharedParts(
        plan=plan,
        image=images.by_plan[first.image],
        identity=identity,
        sidecar=collector.sidecar,
        earlier=(identity, *collector.earlier, *_weights(plan, children, identity, apis, late, deployed)),
        apis=apis,
        audiences=audiences(plan, deployed),
        resources=resources,
        late=late,
    )
    regions: dict[str, RegionService] = {}
    names = [service.region for service in plan.services]
    for number, service in enumerate(plan.services):
        regions[service.region] = declare_region(
            shared,
            service,
            _of_region(plan, children, service),
            before=[each.last for each in regions.values()][-1:],
            after=names[number + 1 :],
        )
    earlier = (apis, regions[names[-1]].last, *(drain for each in regions.values() for drain in each.drain))
    services = {service.region: service.name for service in plan.services}
    revisions = [each.revision for each in regions.values()]
    address = declare_address(plan, children, services, labels, *earlier, revisions=revisions)
    server = ServerBehindDoor(
        url=regions[names[0]].service.url,
        address=address,
        services=services,
        repository_id=plan.service.image_repository_id,
        labels=labels,
        deletion_protection=plan.service.deletion_protection,
    )
    door = declare_door(plan, children, images, apis, server, *earlier)
    return DeclaredService(regions, address, door)


def _of_region(plan: Plan, children: Children, service: ServicePlan) -> Children:
    """The children of a region: where there is one region, its name is in none of theirs."""
    return children.of_region(service.region) if len(plan.regions) > 1 else children


def _weights(
    plan: Plan,
    children: Children,
    identity: RuntimeIdentity,
    apis: EnabledApis,
    late: LateInputs,
    deployed: Deployed,
) -> tuple[pulumi.Resource, ...]:
    """The bucket of all regions, or one for each, with the checks of their models."""
    if not plan.settings.weights.regional_buckets:
        # A bucket stays where it is: another first region would replace it, with all weights in it.
        location = deployed.bucket_location or plan.service.region
        return weights(plan, children, identity, apis, location=location, labels=plan.service.labels, late=late)
    copies: list[pulumi.Resource] = []
    for service in plan.services:
        regions = tuple(each for each in plan.regions if each.region == service.region)
        of_region = replace(plan, service=service, regions=regions)
        where, labels = _of_region(plan, children, service), service.labels
        copies += weights(of_region, where, identity, apis, location=service.region, labels=labels, late=late)
    return tuple(copies)


def _subnetwork_problems(plan: Plan, service: ServicePlan, late: LateInputs) -> list[Problem]:
    """Problems of a missing or unfit subnetwork; in previews, a warning about what cannot be checked."""
    if service.vpc is None:
        return []
    if late.network is not None or late.subnetwork is not None:
        if pulumi.runtime.is_dry_run():
            pulumi.log.info("the subnetwork is known only after the deploy, so its range is not judged.")
        return []
    name = subnetwork_name(service.vpc, plan.project, service.region)
    try:
        return list(check_subnetwork(name, look_up_subnetwork(name), service))
    except RestError as error:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{name} could not be checked: {one_line(error)} If it does not exist, the deploy fails.")
        return []
