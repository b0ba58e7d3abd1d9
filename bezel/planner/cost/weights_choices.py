"""Ways to have the weights near several regions, each priced: one bucket, a copy in each region, a multi-region. Pure.

Owns the sums. Leaves what a start reads to `bezel.planner.cost.weights_transfer`. A price that the catalogue does not
hold makes its sum unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.money import Priced, Unpriced, times, total
from bezel.planner.cost.weights_transfer import BucketPlace, Transfer
from bezel_catalog.storage_locations import storage_locations, storage_prices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bezel.planner.base.money import Amount


@dataclass(frozen=True, slots=True)
class WeightsChoice:
    """One way to have the weights for several regions.

    Attributes:
        name: in words.
        monthly: storage of a month.
        start: transfer of one start, in the most expensive region.
    """

    name: str
    monthly: Amount
    start: Amount


def weights_choices(regions: Sequence[str], gib: float) -> Iterator[WeightsChoice]:
    """The ways for these regions, the first region first.

    Args:
        regions: where servers run, two or more.
        gib: size of the weights, which each start reads.
    """

    def start_from(location: str) -> Amount:
        return Transfer("weights", BucketPlace(location), tuple(regions), gib, 1).usd

    first = regions[0]
    yield WeightsChoice(f"one bucket in {first}", _storage(first, gib), start_from(first))
    copies = total(_storage(region, gib) for region in regions)
    yield WeightsChoice("a copy in each region", copies, Priced(Decimal(0)))
    for location in storage_locations().values():
        if set(regions) <= set(location.regions):
            name = f"one bucket in the {location.kind} {location.id}"
            yield WeightsChoice(name, _storage(location.id, gib), start_from(location.id))


def _storage(location: str, gib: float) -> Amount:
    row = storage_prices().get(location)
    if row is None:
        return Unpriced(f"no price of storage in {location} is known")
    return times(Priced(row.usd_per_gib_month), gib)
