"""Rows of a plan's regions and of its address, each with its origin.

Owns the choice of these rows. Leaves formatting to bezel.planner.render.text_table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bezel.planner.assemble.plan import LeasePlan, Plan
    from bezel.planner.render.text_table import Row


def region_rows(plan: Plan) -> Iterable[Row]:
    """Where the service runs."""
    first, *others = plan.regions
    origin = plan.origins
    if not others:
        yield "region", first.region + (" (on invitation)" if plan.is_invited else ""), origin["region"]
        return
    for each in plan.regions:
        optional = ", optional" if each.optional else ""
        yield "region", f"{each.region}{optional}", origin["optional_regions" if each.optional else "regions"]
        if plan.settings.weights.regional_buckets and each.bucket:
            yield "weights there", f"gs://{each.bucket}", origin["weights.regional_buckets"]


def address_rows(plan: Plan | LeasePlan) -> Iterable[Row]:
    """The address, if there is one."""
    if plan.address is None:
        return
    yield "address", plan.address.url, plan.origins["address.domain"]
    where = f"in the zone {plan.address.zone}" if plan.address.zone else "to be set elsewhere"
    yield "its records", where, plan.origins["address.zone"]
