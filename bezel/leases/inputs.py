"""Checks of a lease's inputs, before any request.

The values are the engine's: one that is not known yet is of no plain type, and passes. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from bezel.leases.clock import format_duration
from bezel.leases.names import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAST_RUN_SECONDS = 600
MOST_RUN_SECONDS = 7 * 86400
"""Google's bounds of a flex-start lease's run duration: 10 minutes to 7 days."""
MOST_VM_WAIT_SECONDS = 7200
"""Maximum wait of a flex-start VM for capacity (Compute Engine, requestValidForDuration: 90 s to 2 h)."""
BACK_ENDS = ("queued_resource", "flex_start_vm")


def problems_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each problem as the input's name and a text: value, consequence, repair."""
    return [*_names(values), *_run(values), *_zones(values), *_deadlines(values)]


def _names(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name, back_end = values.get("name"), values.get("back_end")
    if isinstance(name, str) and not NAME.fullmatch(name):
        yield (
            "name",
            (
                f"{name!r} is {len(name)} characters: Google would refuse it. Use a to z, 0 to 9 and -, beginning "
                "with a letter, not ending with -, 63 characters at most."
            ),
        )
    if isinstance(back_end, str) and back_end not in BACK_ENDS:
        yield "back_end", f"{back_end!r} is no way to lease: nothing could be asked for. Use {' or '.join(BACK_ENDS)}."


def _run(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    seconds = values.get("run_seconds")
    if _number(seconds) and not LEAST_RUN_SECONDS <= seconds <= MOST_RUN_SECONDS:
        yield (
            "run_seconds",
            (
                f"{format_duration(seconds)} is no run duration that Google grants: the lease would be refused. "
                "Choose between 10 minutes and 7 days."
            ),
        )
    elif seconds is None and _model(values) == "FLEX_START":
        yield (
            "run_seconds",
            "a flex-start lease without an end would be refused: set one, 10 minutes to 7 days.",
        )


def _zones(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    zones, subnetworks = values.get("zones"), values.get("subnetworks")
    if not isinstance(zones, list | tuple):
        return
    if not zones:
        yield "zones", "no zone is listed: nothing could be asked for. List at least one, best first."
    seen: set[str] = set()
    for choice in zones:
        zone = choice.get("zone") if isinstance(choice, dict) else None
        if not isinstance(zone, str):
            continue
        if zone in seen:
            yield "zones", f"{zone} is listed twice: each zone is tried once. Take one of them out."
        seen.add(zone)
        region = zone.rpartition("-")[0]
        if isinstance(subnetworks, dict) and region not in subnetworks:
            yield (
                "zones",
                (
                    f"{zone} has no subnetwork: a node there would have no network. Give the network a subnetwork in "
                    f"{region or zone!r}, or take the zone out."
                ),
            )
        yield from _patience(zone, choice.get("patience_seconds"), values)


def _patience(zone: str, seconds: Any, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not _number(seconds):
        return
    most = MOST_VM_WAIT_SECONDS if values.get("back_end") == "flex_start_vm" else MOST_RUN_SECONDS
    if not 0 < seconds <= most:
        yield (
            "zones",
            (
                f"patience {format_duration(seconds)} in {zone} is not between 1 s and {format_duration(most)}: "
                "Google would refuse the request. Choose within it."
            ),
        )


def _deadlines(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("provisioning_deadline_seconds", "boot_deadline_seconds"):
        if _number(seconds := values.get(key)) and seconds <= 0:
            yield key, f"{key} is {seconds:g}: nothing could be waited for. Set it above 0."


def _model(values: Mapping[str, Any]) -> Any:
    body = values.get("body")
    if not isinstance(body, dict):
        return None
    scheduling = body.get("scheduling")
    return body.get("provisioningModel") or (scheduling.get("provisioningModel") if isinstance(scheduling, dict) else 0)


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
