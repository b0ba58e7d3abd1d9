"""Fallback of leased machines as resources: the service that serves while no lease does, and its check.

The service is made before the gateway and before any lease is requested: a lease is paid for from its start, and one
that no zone grants is then no outage. Its check goes through the gateway, which alone may call it. Leaves the leases
and the gateway to `bezel_services.lease`.
"""

from dataclasses import dataclass

import pulumi

from bezel.planner import LeasePlan
from bezel.planner.assemble.plan import FallbackPlan
from bezel_components.cloud_run_gpu_service import CloudRunGpuService
from bezel_components.config.gateway_fallback import FALLBACK
from bezel_components.enabled_apis import EnabledApis
from bezel_components.identity_gateway import GatewayFallback, IdentityGateway
from bezel_services.children import Children
from bezel_services.images import FoundImages
from bezel_services.prerequisites import runtime_identity, weights
from bezel_services.regions.collector import declare_collector
from bezel_services.regions.service import SharedParts, region_service
from bezel_services.settings.late_inputs import NOTHING_LATE
from bezel_services.smoke_tests import check_health
from bezel_smoke.health import HealthCheck


@dataclass(frozen=True)
class DeclaredFallback:
    """The service, and its children.

    Attributes:
        plan: Its plan.
        service: The service.
        children: Its children of the component.
    """

    plan: FallbackPlan
    service: CloudRunGpuService
    children: Children

    @property
    def behind_gateway(self) -> GatewayFallback:
        """What the gateway has to know of it."""
        planned = self.plan.service
        return GatewayFallback(location=planned.region, service=planned.name, url=self.service.url)

    def check(self, gateway: IdentityGateway, *, public: bool) -> HealthCheck:
        """Declare its check, through the gateway; `public` says whether anyone may call that."""
        revision = pulumi.Output.all(gateway.created_revision, self.service.created_revision).apply(" ".join)
        return check_health(
            self.plan.plan,
            self.children,
            service=self.service.resource_name,
            declared=self.service.declared,
            url=pulumi.Output.concat(gateway.url, f"/{FALLBACK}"),
            audience=gateway.url,
            revision=revision,
            earlier=(gateway,),
            public=public,
        )


def declare_fallback(
    plan: LeasePlan,
    fallback: FallbackPlan,
    children: Children,
    images: FoundImages,
    apis: EnabledApis,
    bucket: tuple[pulumi.Resource, ...],
) -> DeclaredFallback:
    """Declare the service of a fallback with its prerequisites.

    Args:
        plan: Plan of the leases.
        fallback: Its fallback.
        children: Children of their component.
        images: The plan's images with their digests.
        apis: The enabled APIs.
        bucket: The leases' bucket and its models: the fallback reads the same bucket.
    """
    own_children = children.of_part(FALLBACK, *bucket)
    planned, service_plan = fallback.service, fallback.plan
    identity = runtime_identity(service_plan, own_children, planned.service_account_id, planned.name, apis)
    read = weights(
        service_plan,
        own_children,
        identity,
        apis,
        location=plan.gateway.region,
        labels=planned.labels,
        is_first=planned.weights.path == plan.weights.path,
    )
    collector = declare_collector(
        service_plan,
        own_children,
        identity,
        service=planned.name,
        port=planned.port,
        labels=planned.labels,
        earlier=(apis, identity),
    )
    shared = SharedParts(
        plan=service_plan,
        image=images.by_plan[planned.image],
        identity=identity,
        sidecar=collector.sidecar,
        earlier=(identity, *collector.earlier, *read),
        apis=apis,
        audiences=(),
        resources=None,
        late=NOTHING_LATE,
    )
    service, _ = region_service(shared, planned, own_children)
    return DeclaredFallback(fallback, service, own_children)
