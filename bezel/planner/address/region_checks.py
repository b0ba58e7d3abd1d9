"""Checks of a stack's regions: one key names them, each is named once, and the first is not optional.

Leaves whether a region offers the accelerator to `bezel.planner.rules.platform_checks`, and prices to the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.problems import setting
from bezel_base.errors import NOT_SET, Problem
from bezel_catalog import closest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from bezel.planner.base.settings import Settings


def stack_regions(settings: Settings) -> tuple[str, ...]:
    """The regions of a stack in their order, each once; empty where none is named."""
    return tuple(dict.fromkeys(settings.regions)) or tuple(filter(None, [settings.region]))


def region_key(settings: Settings, region: str) -> str:
    """Path of the setting that names a region of the stack."""
    return f"regions.{settings.regions.index(region)}" if settings.regions else "region"


def with_first_region(settings: Settings) -> Settings:
    """The settings with the first of several regions as `region`, for every rule about one."""
    return settings.model_copy(update={"region": settings.regions[0]}) if settings.regions else settings


def check_regions(settings: Settings, unread: Collection[str] = (), *, leased: bool = False) -> Iterator[Problem]:
    """Check `region`, `regions` and `optional_regions` together.

    Args:
        settings: with defaults in place of values that cannot be read.
        unread: the keys of these values; they are set as well.
        leased: whether the hardware is leased: then `bezel.planner.rules.lease_checks` refuses several regions.
    """
    regions, key = settings.regions, setting("regions")
    has_region = bool(settings.region) or setting("region") in unread
    has_regions = bool(regions) or any(each == key or each.startswith(f"{key}.") for each in unread)
    if has_region and has_regions and not leased:
        named = f" ({settings.region})" if settings.region else ""
        yield Problem(
            key,
            ", ".join(regions) or "(set)",
            f"{setting('region')} is set too{named}: which of them the stack runs in is not defined.",
            f"remove {setting('region')}, or write one region there and remove {key}.",
        )
    if not has_region and not has_regions:
        several = "" if leased else f", or several as `{key}: [us-east4, europe-west4]`"
        yield Problem(
            setting("region"),
            NOT_SET,
            "it is required: the stack cannot be planned without it.",
            f"add `{setting('region')}: us-east4`{several}.",
        )
    if leased:
        return
    for number, region in enumerate(regions):
        if region in regions[:number]:
            consequence = "it is named twice: a stack has one service in each region."
            yield Problem(f"{key}.{number}", region, consequence, "remove one of them.")
    yield from _check_optional(settings.optional_regions, regions, has_regions=has_regions)
    if settings.weights.regional_buckets and (len(set(regions)) < 2 if regions or not has_regions else False):
        yield Problem(
            setting("weights.regional_buckets"),
            True,
            "the stack has one region, which reads the one bucket: it would have no effect.",
            f"remove it, or name several regions as {key}.",
        )


def _check_optional(optional: Sequence[str], regions: Sequence[str], *, has_regions: bool) -> Iterator[Problem]:
    key = setting("optional_regions")
    if optional and (not has_regions or len(set(regions)) == 1):
        consequence = "the stack has one region, and cannot be without it."
        yield Problem(key, ", ".join(optional), consequence, f"remove it, or name several as {setting('regions')}.")
        return
    for number, region in enumerate(optional if regions else ()):
        place = f"{key}.{number}"
        if region == regions[0]:
            yield Problem(
                place,
                region,
                "the first region is deployed and checked before the others: without it nothing is deployed.",
                f"remove it, or put another first in {setting('regions')}.",
            )
        elif region in optional[:number]:
            yield Problem(place, region, "it is named twice.", "remove one of them.")
        elif region not in regions:
            near = closest(region, regions[1:])
            meant = f"did you mean {near}? " if near else ""
            consequence = f"it is none of {setting('regions')}: it would have no effect."
            yield Problem(place, region, consequence, f"{meant}name one of {', '.join(regions[1:])}, or remove it.")
