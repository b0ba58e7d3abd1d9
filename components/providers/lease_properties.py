"""Properties that `TpuRequest` and `TpuNode` share, as the engine passes them, and the values derived from them.

Inputs of both: project, name, stack, back_end, zones ([{zone, patience_seconds}]), subnetworks, body, run_seconds,
provisioning_deadline_seconds, boot_deadline_seconds. Leaves out their use.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bezel.leases.clock import unix
from bezel.leases.inventory import back_end_of
from bezel.leases.names import plain
from bezel.leases.observation import Observation
from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.rest import GoogleClient

OVER = frozenset({"expired", "gone"})
"""States of a lease that has ended."""


def spec_of(props: Mapping[str, Any]) -> LeaseSpec:
    """The lease that some properties describe; every value has to be known."""
    return LeaseSpec(
        project=props["project"],
        name=props["name"],
        stack=props["stack"],
        back_end=props["back_end"],
        zones=tuple(ZoneChoice(one["zone"], float(one["patience_seconds"])) for one in props["zones"]),
        subnetworks=dict(props["subnetworks"]),
        body=plain(props["body"]),
        former_zones=tuple(props.get("former_zones") or ()),
    )


def kept(props: Mapping[str, Any]) -> dict[str, Any]:
    """Properties without what the engine adds."""
    return {key: value for key, value in props.items() if key != "__provider"}


def former_zones(olds: Mapping[str, Any], news: Mapping[str, Any]) -> list[str]:
    """Zones that may hold a lease of earlier properties, and that are not listed any more."""
    listed = {one["zone"] for one in news["zones"]}
    before = [*(one["zone"] for one in olds["zones"]), *(olds.get("former_zones") or ())]
    return [zone for zone in dict.fromkeys(before) if zone not in listed]


def observe_all_zones(client: GoogleClient, spec: LeaseSpec) -> list[Observation]:
    """Observe this stack's lease in every zone that may hold it.

    Raises:
        RestError: A zone could not be read.
    """
    back_end = back_end_of(spec.back_end, client, spec.project)
    seen = [back_end.look(zone, spec.name) for zone in spec.everywhere]
    return [one for one in seen if one.there and one.belongs(spec.stack)]


def state_of(seen: Sequence[Observation], props: Mapping[str, Any], now: float) -> str:
    """The state of a lease in a word, or the way in which it ended.

    Args:
        seen: Its present observations.
        props: Its recorded properties.
        now: Unix seconds.
    """
    live = max((one.state for one in seen if one.live), default=None, key=("waiting", "provisioning", "active").index)
    if live is not None:
        return str(live)
    end = unix(props.get("ends_at"))
    return "expired" if seen or (end is not None and end <= now) else "gone"
