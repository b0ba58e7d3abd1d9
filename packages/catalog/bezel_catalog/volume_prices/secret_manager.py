"""Secret Manager's list prices of a month: accesses of versions, and active versions.

Owns the look-up of the recorded prices (data/secret_prices.toml). Leaves out who reads a secret how often.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from decimal import Decimal

from bezel_catalog.loader import NotInCatalogueError, read_rows

ACCESSES, ACTIVE_VERSIONS = "accesses", "active-versions"


@dataclass(frozen=True, slots=True)
class SecretPrice:
    """Price of so many of an item in a month, in USD, beyond those that a billing account has for nothing."""

    id: str
    free: int
    number: int
    usd: Decimal
    as_of: str
    source: str

    def monthly_usd(self, number: Decimal) -> Decimal:
        """USD for so many in a month, as if nothing else of the billing account had any."""
        return max(Decimal(0), number - self.free) * self.usd / self.number


@functools.cache
def secret_price(item: str) -> SecretPrice:
    """Return the price of an item.

    Raises:
        NotInCatalogueError: the item has no price.
    """
    rows = read_rows(SecretPrice, "secret_prices.toml")
    if item not in rows:
        raise NotInCatalogueError("price of Secret Manager", item, rows)
    return rows[item]
