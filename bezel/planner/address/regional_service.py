"""One service in each of several regions: the same revision everywhere, with the bucket of its region. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bezel.planner.base.deployment import PlannedOption, ServicePlan
    from bezel.planner.base.settings import Settings


def regional_bucket(bucket: str | None, region: str, settings: Settings) -> str | None:
    """The bucket that servers in a region read.

    Args:
        bucket: the stack's; None where it reads none.
        region: of the servers.
        settings: of the stack; they say whether each region has a copy of its own.
    """
    return f"{bucket}-{region}" if bucket and settings.weights.regional_buckets else bucket


def in_region(service: ServicePlan, region: str, bucket: str | None) -> ServicePlan:
    """A service as it is in a region.

    Args:
        service: as it is in another region.
        region: the region.
        bucket: the weights' bucket there; the model argument and options that name the old one name it.
    """
    old = service.weights.bucket
    if bucket is None or old is None or bucket == old:
        return replace(service, region=region)
    before, after = f"gs://{old}/", f"gs://{bucket}/"
    weights = replace(service.weights, bucket=bucket, model=service.weights.model.replace(before, after))
    options = {name: _with_bucket(option, before, after) for name, option in service.options.items()}
    return replace(service, region=region, weights=weights, options=options)


def _with_bucket(option: PlannedOption, before: str, after: str) -> PlannedOption:
    flags = tuple(tuple(word.replace(before, after) for word in flag) for flag in option.flags)
    if flags == option.flags:
        return option
    return replace(option, value=_replace_text(option.value, before, after), flags=flags)


def _replace_text(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, dict):
        return {key: _replace_text(each, before, after) for key, each in value.items()}
    return [_replace_text(each, before, after) for each in value] if isinstance(value, list) else value
