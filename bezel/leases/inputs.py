"""Checks of a lease's inputs, before any request.

The values are the engine's: one that is not known yet is of no plain type, and passes. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from bezel.leases.clock import format_duration
from bezel.leases.names import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_RUN_SECONDS = 600
MAX_RUN_SECONDS = 7 * 86400
"""Google's bounds of a flex-start lease's run duration: 10 minutes to 7 days."""
MAX_VM_WAIT_SECONDS = 7200
"""Maximum wait of a flex-start VM for capacity (Compute Engine, requestValidForDuration: 90 s to 2 h)."""
BACK_ENDS = ("queued_resource", "flex_start_vm")


def problems_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each problem as the input's name and a text: value, consequence, repair."""
    return [*_names(values), *_durations(values), *_zones(values)]


def _names(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name, back_end = values.get("name"), values.get("back_end")
    if isinstance(name, str) and not NAME.fullmatch(name):
        yield (
            "name",
            (
                f"{name!r} ({len(name)} characters) is not a name that Google accepts. Use a to z, 0 to 9 and -, "
                "begin with a letter, do not end with -, and use at most 63 characters."
            ),
        )
    if isinstance(back_end, str) and back_end not in BACK_ENDS:
        yield "back_end", f"{back_end!r} is unknown, so nothing could be requested. Use {' or '.join(BACK_ENDS)}."


def _durations(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    seconds = values.get("run_seconds")
    if _is_number(seconds) and not MIN_RUN_SECONDS <= seconds <= MAX_RUN_SECONDS:
        yield (
            "run_seconds",
            (
                f"{format_duration(seconds)} is outside Google's limits, so the lease would be refused. Choose between "
                "10 minutes and 7 days."
            ),
        )
    elif seconds is None and _provisioning_model(values) == "FLEX_START":
        yield "run_seconds", "a flex-start lease without an end would be refused. Set one, 10 minutes to 7 days."
    for key in ("provisioning_deadline_seconds", "boot_deadline_seconds"):
        if _is_number(seconds := values.get(key)) and seconds <= 0:
            yield key, f"{key} is {seconds:g}, so the deploy would not wait. Set it above 0."


def _zones(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    choices, subnetworks = values.get("zones"), values.get("subnetworks")
    if not isinstance(choices, list | tuple):
        return
    if not choices:
        yield "zones", "no zone is listed, so nothing could be requested. List at least one, best first."
    earlier: set[str] = set()
    for choice in choices:
        zone = choice.get("zone") if isinstance(choice, dict) else None
        if not isinstance(zone, str):
            continue
        if zone in earlier:
            yield "zones", f"{zone} is listed twice, and each zone is tried once. Remove one of them."
        earlier.add(zone)
        region = zone.rpartition("-")[0]
        if isinstance(subnetworks, dict) and region not in subnetworks:
            yield (
                "zones",
                (
                    f"{zone} has no subnetwork, so a node there would have no network. Add a subnetwork in "
                    f"{region or zone!r}, or remove the zone."
                ),
            )
        seconds = choice.get("patience_seconds")
        limit = MAX_VM_WAIT_SECONDS if values.get("back_end") == "flex_start_vm" else MAX_RUN_SECONDS
        if _is_number(seconds) and not 0 < seconds <= limit:
            yield (
                "zones",
                (
                    f"patience {format_duration(seconds)} in {zone} is not between 1 s and {format_duration(limit)}, "
                    "so Google would refuse the request. Choose a value within these limits."
                ),
            )


def _provisioning_model(values: Mapping[str, Any]) -> Any:
    body = values.get("body")
    if not isinstance(body, dict):
        return None
    scheduling = body.get("scheduling")
    return body.get("provisioningModel") or (scheduling.get("provisioningModel") if isinstance(scheduling, dict) else 0)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
