"""Locations of Cloud Storage buckets, and list prices of storage in them, of requests and of reading from elsewhere.

Data: storage_locations.toml, storage_prices.toml, storage_operations.toml, storage_transfer.toml. Leaves what a start
reads to the planner.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.loader import read_rows, region_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """A location of several regions. `kind` is "multi-region" or "dual-region"."""

    id: str
    kind: str
    regions: tuple[str, ...]
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class StorageTransfer:
    """Price of a GiB between two locations of one area, whose regions begin with one of `prefixes`."""

    id: str
    prefixes: tuple[str, ...]
    usd_per_gib: Decimal
    as_of: str
    source: str

    def holds(self, region: str) -> bool:
        """Whether a region is in the area."""
        return region.startswith(self.prefixes)


@dataclass(frozen=True, slots=True)
class StoragePrice:
    """Price of a GiB in a month in some locations."""

    id: str
    locations: tuple[str, ...]
    usd_per_gib_month: Decimal
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class OperationPrice:
    """Price of a thousand requests to a bucket of one region; `item` is "writes", lists among them, or "reads"."""

    id: str
    item: str
    usd_per_thousand: Decimal
    as_of: str
    source: str


@functools.cache
def operation_prices() -> dict[str, OperationPrice]:
    """Return every price of requests by its item."""
    return {row.item: row for row in read_rows(OperationPrice, "storage_operations.toml").values()}


@functools.cache
def storage_prices() -> dict[str, StoragePrice]:
    """Return every price of storage by location."""
    rows = read_rows(StoragePrice, "storage_prices.toml").values()
    return {location: row for row in rows for location in row.locations}


@functools.cache
def storage_locations() -> dict[str, StorageLocation]:
    """Return every location of several regions by id."""
    return read_rows(StorageLocation, "storage_locations.toml")


@functools.cache
def storage_transfers() -> dict[str, StorageTransfer]:
    """Return every price of a transfer by its area."""
    return read_rows(StorageTransfer, "storage_transfer.toml")


def location_kind(location: str, placed_in: Iterable[str] = ()) -> str | None:
    """Return "region", "dual-region" or "multi-region"; None for a location that the catalogue does not have.

    Args:
        location: of a bucket, as its API writes it, in any case.
        placed_in: regions of a configurable dual-region.
    """
    if [*placed_in]:
        return "dual-region"
    if location.lower() in region_names():
        return "region"
    record = storage_locations().get(location.upper())
    return record.kind if record else None


def location_regions(location: str, placed_in: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the regions that hold a bucket's data; () for an unknown location. Arguments as of `location_kind`."""
    if regions := tuple(region.lower() for region in placed_in):
        return regions
    if location.lower() in region_names():
        return (location.lower(),)
    record = storage_locations().get(location.upper())
    return record.regions if record else ()
