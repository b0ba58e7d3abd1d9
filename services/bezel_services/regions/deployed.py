"""Present resources of a service, as the state has them: what an update with other regions starts from.

The children of a service in one region are named without it (`chat-service`), those of several with it
(`chat-service-us-east4`). So a region may come or go, or change its place in the list, and no child takes the name of
another region's: it would be replaced, and the service there be made twice. Between both spellings an alias says that
they are the same. It needs to be known which region the names without one belong to: that is in the state alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pulumi

from bezel.planner import AnyPlan, LeasePlan, Problem
from bezel.planner.base.problems import setting
from bezel_components.lookups.stack_state import StateResource, look_up_state
from bezel_services.children import regional_name

_COMPONENT = "bezel:services:"
_SERVICE = "gcp:cloudrunv2/service:Service"
_BUCKET, _ADDRESS = "gcp:storage/bucket:Bucket", "bezel:address:GlobalAddress"
# Roles of the children that each region has; a failed deploy may have renamed some of them only.
_REGIONAL = frozenset({"image", "service", "health", "benchmark", "traffic", "drain", "schedule", "observability"})


@dataclass(frozen=True)
class Deployed:
    """The present resources of a service's component.

    Attributes:
        region: The region of the children that are named without one; "" where there are none.
        bucket_location: Location of the bucket that it has made for all regions, in lower case; "" without one.
        address: URL of its address; "" without one.
        protected: Region and name of each service that is protected from deletion.
    """

    region: str = ""
    bucket_location: str = ""
    address: str = ""
    protected: frozenset[tuple[str, str]] = frozenset()


def look_up_deployed(component: str, plan: AnyPlan) -> Deployed:
    """What the state has of a component.

    It is read only where the plan has several regions or an address, or protects services: the door for callers by key
    may be one that it has no more. A state that cannot be read is taken for one that begins with the first region.
    """
    first = plan.gateway.region if isinstance(plan, LeasePlan) else plan.service.region
    several = not isinstance(plan, LeasePlan) and len(plan.regions) > 1
    if not several and plan.address is None and not plan.settings.protects_from_deletion:
        return Deployed()
    resources = look_up_state()
    return Deployed(first) if resources is None else deployed_of(component, resources)


def deployed_of(component: str, resources: Iterable[StateResource]) -> Deployed:
    """What a state has of a component.

    Args:
        component: Name of the component.
        resources: The resources of the state.
    """
    children = [each for each in resources if _COMPONENT in each.type and each.name.startswith(f"{component}-")]
    by_place = {
        (each.type.rpartition("$")[2], each.name.removeprefix(f"{component}-")): each.outputs for each in children
    }

    def text(type_: str, role: str, output: str) -> str:
        return str(by_place.get((type_, role), {}).get(output) or "")

    return Deployed(
        region=next(filter(None, (_region_without_name(component, each) for each in children)), ""),
        bucket_location=text(_BUCKET, "weights-bucket", "location").lower(),
        address=text(_ADDRESS, "address", "url"),
        protected=frozenset(
            (str(each.outputs.get("location")), str(each.outputs.get("name")))
            for each in children
            if each.type.endswith(_SERVICE) and each.outputs.get("deletionProtection")
        ),
    )


def _region_without_name(component: str, child: StateResource) -> str:
    """The region of a child that is named without it; "" for any other."""
    role = child.name.removeprefix(f"{component}-").partition("-")[0]
    service = str(child.outputs.get("service") or "").split("/")
    region = str(child.outputs.get("location") or child.outputs.get("region") or "")
    region = region or (service[3] if len(service) == 6 else "")
    return region if role in _REGIONAL and f"-{region}" not in child.name else ""


def protection_problems(deployed: Deployed, services: set[tuple[str, str]]) -> Iterator[Problem]:
    """Services that a deploy would delete in the end, and that are protected from it.

    Args:
        deployed: What the state has.
        services: Region and name of each service that the program declares.
    """
    for region, name in sorted(deployed.protected - services):
        yield Problem(
            f"service {name} in {region}",
            "protected from deletion",
            "the stack no longer has it: the deploy would fail at its end, and the service keep running without"
            " callers.",
            f"first deploy with {setting('deletion_protection')}: never, and with this service; then change it, and"
            " remove the setting afterwards.",
        )


def with_earlier_region_name(regions: Sequence[str], deployed: Deployed) -> pulumi.ResourceTransformation:
    """Make the transformation that gives a component's direct children their names with other regions as aliases.

    Args:
        regions: The regions that the program declares.
        deployed: What the state has.
    """

    def with_alias(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        parent = args.opts.parent
        # The parent of the component itself may be a resource of another process, which has no type here.
        if not isinstance(parent, pulumi.ComponentResource) or not parent.pulumi_resource_type.startswith(_COMPONENT):
            return None
        earlier = _earlier_name(args.name, regions, deployed)
        if not earlier:
            return None
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(aliases=[pulumi.Alias(name=earlier)]))
        return pulumi.ResourceTransformationResult(args.props, opts)

    return with_alias


def _earlier_name(name: str, regions: Sequence[str], deployed: Deployed) -> str:
    """The name of a child with another number of regions, "" where it had no other."""
    if len(regions) == 1:
        return regional_name(name, regions[0])
    suffix = f"-{deployed.region}"
    return name.removesuffix(suffix) if deployed.region and name.endswith(suffix) else ""
