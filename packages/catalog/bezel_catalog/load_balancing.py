"""List prices of load balancers: forwarding rules and unused addresses by the hour, and the data that they pass on.

Data: load_balancing.toml. Leaves what an address costs to the planner.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.loader import read_rows
from bezel_catalog.prices import Price, Unpriced

if TYPE_CHECKING:
    from decimal import Decimal

SERVICE, TIER = "load-balancing", "premium"
EVERYWHERE = "global"
"""The region of a price that holds in all of them."""
FIRST_RULES, FURTHER_RULE = "first five forwarding rules", "further forwarding rule"
UNUSED_ADDRESS = "reserved external address without a use"
DATA_IN, DATA_OUT = "inbound data", "outbound data"


@dataclass(frozen=True, slots=True)
class LoadBalancingPrice:
    """Price of an item in some regions, in USD per `unit`: "rule-hour", "address-hour" or "gib"."""

    id: str
    item: str
    regions: tuple[str, ...]
    unit: str
    usd_per_unit: Decimal
    as_of: str
    source: str


@functools.cache
def load_balancing_prices() -> dict[str, LoadBalancingPrice]:
    """Return every row by id."""
    return read_rows(LoadBalancingPrice, "load_balancing.toml")


def load_balancing_price(item: str, region: str = EVERYWHERE) -> Price | Unpriced:
    """Return the list price of an item of a load balancer in a region, or the key of the missing row."""
    for row in load_balancing_prices().values():
        if row.item == item and region in row.regions:
            return Price(SERVICE, item, region, TIER, row.unit, row.usd_per_unit, row.as_of, row.source)
    return Unpriced(SERVICE, item, region, TIER)
