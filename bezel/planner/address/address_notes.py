"""Warnings about the regions of a stack and its address, which refuse no deploy. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.expiry import EXPIRY, NEVER
from bezel.planner.base.problems import setting
from bezel_catalog.storage_locations import storage_locations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bezel.planner.base.deployment import WeightsPlan
    from bezel.planner.base.settings import Settings


def region_warnings(regions: Sequence[str], settings: Settings, weights: WeightsPlan) -> Iterator[str]:
    """Warnings of a service in these regions."""
    if len(regions) < 2:
        return
    if settings.address.domain is None:
        yield (
            f"no failover between {', '.join(regions)}: each has its own URL, and callers of one that fails get "
            f"errors. One address for all: `{setting('address')}: {{domain: llm.acme.example}}`."
        )
    # A bucket that the stack makes is in the first region, and warned of by that.
    if weights.bucket and not (settings.weights.regional_buckets or weights.create or _holds_all(regions)):
        yield (
            f"no location of Cloud Storage holds {', '.join(regions)}, and all read gs://{weights.bucket}: each start "
            "in a region without it reads the weights across regions, which takes longer and is billed. A copy in "
            f"each: `{setting('weights')}: {{regional_buckets: true}}`."
        )


def _holds_all(regions: Sequence[str]) -> bool:
    """Whether a bucket can hold its data in all regions, or in two that a configurable dual-region pairs."""
    return any(set(regions) <= set(location.regions) for location in storage_locations().values())


def address_warnings(settings: Settings) -> Iterator[str]:
    """Warnings of a stack's address."""
    domain, zone = settings.address.domain, settings.address.zone
    if zone is None and settings.labels.get(EXPIRY, NEVER) != NEVER:
        yield (
            f"the stack is needed until {settings.labels[EXPIRY]}, and {domain} will lead to an IP address that others "
            "may get after it: remove both records when the stack is destroyed."
        )
