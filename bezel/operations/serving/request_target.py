"""Regions in which a request to a stack's server finds an instance: one that started another costs money."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.service_use.instances import Instances, instances_of


@dataclass(frozen=True)
class RequestTarget:
    """What of a deployment is asked.

    Attributes:
        deployment: All of it, or one region alone.
        instances: Its instances.
        notes: Why only one region is asked.
    """

    deployment: Deployment
    instances: Instances
    notes: tuple[str, ...] = ()


def choose_target(context: Context, deployment: Deployment, *, wake: bool) -> RequestTarget:
    """Choose what of a deployment is asked: without an address the first region; else the address, unless it may wake.

    To which region an address leads is not known beforehand. Where instances run in some regions only, one of these is
    asked by its service's own URL.

    Args:
        context: The context.
        deployment: The deployment, or one region of it.
        wake: Whether a request may start an instance.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    regions = [deployment.region] if deployment.region else list(deployment.urls)
    if deployment.address is None or len(regions) < 2:
        one = deployment if deployment.address or deployment.region else deployment.of_one_region(None)
        return RequestTarget(one, instances_of(context, one))
    each = [deployment.of_one_region(region) for region in regions]
    with ThreadPoolExecutor(len(each)) as readers:
        instances = dict(zip(regions, readers.map(lambda one: instances_of(context, one), each), strict=True))
    awake = [region for region in regions if instances[region].is_awake]
    if wake or len(awake) in (0, len(regions)):
        return RequestTarget(deployment, _together(instances))
    asleep = ", ".join(region for region in regions if region not in awake)
    note = (
        f"asked in {awake[0]} alone: the address may lead to {asleep}, where no instance is known to run; --wake asks "
        "the address"
    )
    return RequestTarget(deployment.of_one_region(awake[0]), instances[awake[0]], (note,))


def _together(instances: Mapping[str, Instances]) -> Instances:
    counts = [each.count for each in instances.values()]
    known_counts = [count for count in counts if count is not None]
    return Instances(
        sum(known_counts) if len(known_counts) == len(counts) else None,
        "; ".join(f"{region}: {each.why}" for region, each in instances.items()),
        is_awake=all(each.is_awake for each in instances.values()),
    )
