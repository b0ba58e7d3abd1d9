"""Dated list prices, one row for each item and region. Data: prices.csv.

A row that is not there is unpriced: never 0, never another region's price. Leaves arithmetic to the planner.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from decimal import Decimal

from bezel.catalog.records import DATA


@dataclass(frozen=True, slots=True)
class Price:
    """One list price in USD per `unit`, e.g. per gpu-second. `model` is the billing model, e.g. instance-based.

    `sku` is the id of the row in the Cloud Billing Catalog, "" where the price was not read there.
    """

    service: str
    item: str
    region: str
    model: str
    unit: str
    usd_per_unit: Decimal
    as_of: str
    source: str
    sku: str = ""

    @property
    def derived(self) -> bool:
        """Whether the price was concluded from another row or total instead of read for this region."""
        return self.source.startswith("derived")


@dataclass(frozen=True, slots=True)
class Unpriced:
    """The name of a row that the catalogue does not hold."""

    service: str
    item: str
    region: str
    model: str

    def __str__(self) -> str:
        return f"{self.service}, {self.item}, {self.region}, {self.model}"


@functools.cache
def prices() -> dict[tuple[str, str, str, str], Price]:
    """Every row by (service, item, region, billing model).

    Raises:
        ValueError: two rows have the same name.
    """
    found: dict[tuple[str, str, str, str], Price] = {}
    with (DATA / "prices.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row["service"], row["item"], row["region"], row["model"])
            if key in found:
                raise ValueError(f"prices.csv has the row {key} twice")
            found[key] = Price(*key, row["unit"], Decimal(row["usd_per_unit"]), row["as_of"], row["source"], row["sku"])
    return found


def price(service: str, item: str, region: str, model: str) -> Price | Unpriced:
    """The list price of an item in a region, or the name of the row that is missing."""
    return prices().get((service, item, region, model)) or Unpriced(service, item, region, model)
