"""Distance of the weights: what each start of a server reads from its bucket, from where, and at what price. Pure.

Owns the rule of near and far and the warning. Every way of loading from a bucket reads all files at each start: a
mount, the streamer, and the copy to a leased machine. Leaves asking for a bucket's location to its callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bezel.planner.base.money import Amount, Priced, Unpriced, most_expensive, text, times
from bezel.planner.base.problems import setting
from bezel_catalog.storage_locations import location_kind, location_regions, storage_transfers

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """Where a bucket is. `placed_in` are the regions of a configurable dual-region, else ()."""

    location: str
    placed_in: tuple[str, ...] = ()

    @classmethod
    def of(cls, bucket: Mapping[str, Any]) -> BucketPlace:
        """The place that Cloud Storage's description of a bucket states."""
        placement = bucket.get("customPlacementConfig") or {}
        return cls(str(bucket.get("location") or ""), tuple(map(str, placement.get("dataLocations") or ())))

    def __str__(self) -> str:
        return (
            f"{self.location.lower()} ({', '.join(self.placed_in).lower()})"
            if self.placed_in
            else self.location.lower()
        )


@dataclass(frozen=True, slots=True)
class Transfer:
    """What the starts of a stack read from its bucket.

    Attributes:
        bucket: Name of the bucket.
        place: Where it is; None where that is not known.
        regions: Where servers run, or may run.
        gib: What one start of one server reads, estimated by the size of the weights.
        servers: Servers that start together: the machines of a lease, else 1.
        may_copy: Whether each of the regions may have a copy in a bucket of its own.
    """

    bucket: str
    place: BucketPlace | None
    regions: tuple[str, ...]
    gib: float
    servers: int
    may_copy: bool = False

    @property
    def far(self) -> tuple[str, ...] | None:
        """The servers' regions in which the bucket has no data; None where that cannot be judged."""
        data_regions = location_regions(self.place.location, self.place.placed_in) if self.place else ()
        return tuple(region for region in self.regions if region not in data_regions) if data_regions else None

    @property
    def usd(self) -> Amount:
        """The list price of what one start of all servers reads, in the most expensive region."""
        return times(most_expensive(self._per_gib(region) for region in self.regions), self.gib * self.servers)

    def _per_gib(self, region: str) -> Amount:
        if self.place is None:
            return Unpriced(f"the location of gs://{self.bucket} is not known")
        kind = location_kind(self.place.location, self.place.placed_in)
        data_regions = location_regions(self.place.location, self.place.placed_in)
        if region in data_regions and kind != "multi-region":
            return Priced(Decimal(0))
        if region in data_regions:
            return Unpriced(f"no price of reading the multi-region {self.place} is known")
        for area in storage_transfers().values():
            if data_regions and kind != "multi-region" and area.holds(region) and all(map(area.holds, data_regions)):
                return Priced(area.usd_per_gib)
        return Unpriced(f"no price of a transfer from {self.place} to {region} is known")

    def warning(self) -> str:
        """What is to be known about a bucket that is far; "" where it is near, or cannot be judged."""
        if not self.far:
            return ""
        amount = self.usd
        cost = f"{text(amount, 2)} USD" if isinstance(amount, Priced) else f"an unknown amount ({amount.reason})"
        near = f"a bucket in {self.far[0]}, or in a dual-region with it"
        if self.may_copy:
            near = f"a copy in each region: `{setting('weights')}: {{regional_buckets: true}}`"
        return (
            f"gs://{self.bucket} is in {self.place}, and servers run in {', '.join(self.far)}: each start reads about "
            f"{self.gib * self.servers:.1f} GiB across regions, which takes longer and costs {cost}. Use "
            f"{near}."
        )
