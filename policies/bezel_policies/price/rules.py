"""Rule of the pack: the price line of a program's resources. Pure.

The engine tells a pack the planned resources and nothing of the state, so the line has the price after the change
alone; `bezel ci preview` compares it with the price before.
"""

from collections.abc import Iterable

from bezel.resource_cost.price_line import price_now
from bezel.resource_cost.stack_cost import AnyResource, stack_cost


def price_line(resources: Iterable[AnyResource]) -> str | None:
    """What all accelerators and load balancers cost: per hour with everything running, per month at most, idle."""
    cost = stack_cost(resources)
    return price_now(cost) if cost.count else None
