"""A plan without some of its optional regions: where a quota is too small, the others are deployed. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bezel.planner.address.failover import detection_seconds, failover_of, readiness_probe
from bezel.planner.cost.address_cost import address_cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.assemble.plan import Plan


def without_regions(plan: Plan, reasons: Mapping[str, str]) -> Plan:
    """The plan without some regions, with a warning of each; its costs and its failover are those of the others.

    Args:
        plan: of a service in several regions.
        reasons: optional region -> why it is left out, a sentence.

    Raises:
        ValueError: a region is not an optional one of the plan.
    """
    optional = {each.region for each in plan.regions if each.optional}
    if required := sorted(set(reasons) - optional):
        raise ValueError(f"not optional in {plan.stack}: {', '.join(required)}")
    if not reasons:
        return plan
    regions = tuple(each for each in plan.regions if each.region not in reasons)
    left_out, address = {**plan.left_out, **reasons}, plan.address
    if address is None:
        return replace(plan, regions=regions, left_out=left_out)
    failover = failover_of(len(regions), plan.settings.scaling)
    return replace(
        plan,
        regions=regions,
        left_out=left_out,
        service=replace(plan.service, readiness_probe=readiness_probe(failover)),
        address=replace(
            address,
            failover=failover,
            detection_seconds=detection_seconds(failover),
            cost=address_cost(each.region for each in regions),
        ),
    )
