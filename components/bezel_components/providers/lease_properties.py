"""Properties that `TpuRequest` and `TpuNode` share, and their calls of `bezel.leases`.

Inputs of both: project, name, stack, back_end, zones ([{zone, patience_seconds}]), subnetworks, body, run_seconds,
provisioning_deadline_seconds, boot_deadline_seconds, hours ([[start, end, zone]], absent without hours), optional
(absent, or true where a fallback serves without the lease). Leaves out their use.
"""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bezel.leases import messages
from bezel.leases.clock import PlatformClock, unix
from bezel.leases.controller import LeaseController, LeaseError, LeaseRefusedError
from bezel.leases.inventory import back_end_of, new_client
from bezel.leases.names import differing_paths, plain, spec_hash
from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.leases.state.observation import DesiredState, Goal, Observation
from bezel.planner.base.hours import Window, is_within
from bezel.rest import RestError
from bezel_base.errors import UserError, caused_by
from bezel_components.base.dynamic import DeployError, Progress
from bezel_components.config.startup_script import with_same_script

EQUAL_HASHES = "equal_hashes"
"""Property of a node: hashes of earlier bodies, which a running lease may have as its label."""
_MOST_HASHES = 10

OVER = frozenset({"expired", "gone"})
"""States of a lease that has ended."""


NOT_GRANTED = "not granted"
"""State of an optional lease that no zone has granted: the next deploy requests it again."""


class LeaseDeployError(DeployError):
    """The lease cannot be read, or does not reach the desired state."""


class LeaseNotGrantedError(LeaseDeployError):
    """No zone grants the lease, and nothing of it is left."""


def spec_of(props: Mapping[str, Any]) -> LeaseSpec:
    """The lease that some properties describe; every value has to be known."""
    return LeaseSpec(
        project=props["project"],
        name=props["name"],
        stack=props["stack"],
        back_end=props["back_end"],
        zones=tuple(ZoneChoice(choice["zone"], float(choice["patience_seconds"])) for choice in props["zones"]),
        subnetworks=dict(props["subnetworks"]),
        body=plain(props["body"]),
        former_zones=tuple(props.get("former_zones") or ()),
        equal_hashes=tuple(props.get(EQUAL_HASHES) or ()),
    )


def differing_body_paths(olds: Mapping[str, Any], news: Mapping[str, Any]) -> list[str]:
    """The paths at which the bodies of two property bags differ, without a script that does the same."""
    old, new = olds.get("body"), news.get("body")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        old = with_same_script(old, new)
    return differing_paths(old, new)


def equal_hashes(olds: Mapping[str, Any], news: Mapping[str, Any]) -> list[str]:
    """Hashes of the bodies before the present one that make the same machine, the newest last."""
    if differing_body_paths(olds, news):
        return []
    before = spec_hash(olds["body"])
    hashes = [*(olds.get(EQUAL_HASHES) or ()), *([before] if before != spec_hash(news["body"]) else [])]
    return [*dict.fromkeys(map(str, hashes))][-_MOST_HASHES:]


def windows_of(props: Mapping[str, Any]) -> tuple[Window, ...]:
    """Hours of the lease; empty where only a deploy requests it."""
    return tuple(Window(*map(str, window)) for window in props.get("hours") or ())


def is_in_hours(props: Mapping[str, Any], now: float) -> bool:
    """Whether an instant in unix seconds is in the hours of a lease; False without hours."""
    return is_within(windows_of(props), datetime.fromtimestamp(now, UTC))


def own_properties(props: Mapping[str, Any]) -> dict[str, Any]:
    """Properties without what the engine adds."""
    return {key: value for key, value in props.items() if key != "__provider"}


def former_zones(olds: Mapping[str, Any], news: Mapping[str, Any]) -> list[str]:
    """Zones that may hold a lease of earlier properties, and that are not listed any more."""
    listed = {choice["zone"] for choice in news["zones"]}
    before = [*(choice["zone"] for choice in olds["zones"]), *(olds.get("former_zones") or ())]
    return [zone for zone in dict.fromkeys(before) if zone not in listed]


def observe_all_zones(props: Mapping[str, Any], clock: PlatformClock) -> list[Observation]:
    """Observe this stack's lease in every zone that may hold it, to deploy by it.

    Raises:
        LeaseDeployError: A zone could not be read.
    """
    try:
        return observations(props, clock, 60.0)
    except UserError as error:
        raise LeaseDeployError(*error.problems) from None


def observations(props: Mapping[str, Any], clock: PlatformClock, seconds: float) -> list[Observation]:
    """Do what `observe_all_zones` does within a time; an error does not end the deploy.

    Raises:
        UserError: A zone could not be read.
    """
    spec = spec_of(props)
    try:
        with new_client(clock, seconds=seconds) as client:
            back_end = back_end_of(spec.back_end, client, spec.project)
            leases = [back_end.observe(zone, spec.name) for zone in spec.all_zones]
    except RestError as error:
        raise UserError(
            caused_by(
                error,
                f"lease {spec.name}",
                "its state is unknown, as it cannot be read",
                "grant roles/tpu.viewer (or roles/compute.viewer) to the account that deploys, then run the same "
                "command again.",
            )
        ) from None
    return [lease for lease in leases if lease.exists and lease.belongs_to(spec.stack)]


def reach(desired: DesiredState, clock: PlatformClock, urn: str | None) -> Observation | None:
    """Bring about the desired state; show the progress in the row of the resource with this URN.

    Raises:
        LeaseDeployError: It cannot be reached, or a request was refused.
    """
    progress, spec = Progress(urn), desired.spec
    try:
        with new_client(clock) as client:
            back_end = back_end_of(spec.back_end, client, spec.project)
            return LeaseController(back_end, clock, progress).run(desired)
    except LeaseRefusedError as error:
        raise LeaseNotGrantedError(*error.problems) from None
    except LeaseError as error:
        raise LeaseDeployError(*error.problems) from None
    except RestError as error:
        action = {Goal.STORED: "requested", Goal.HEALTHY: "awaited", Goal.GONE: "deleted"}[desired.goal]
        raise LeaseDeployError(
            caused_by(
                error,
                f"lease {spec.name}",
                f"it cannot be {action}, and stays unchanged",
                "grant roles/tpu.admin (or roles/compute.instanceAdmin.v1 for machines of Compute Engine) and "
                "roles/iam.serviceAccountUser to the account that deploys, then run the same command again.",
            )
        ) from None
    finally:
        progress.close()


def reach_optional(
    desired: DesiredState, clock: PlatformClock, urn: str | None, *, optional: bool
) -> Observation | None:
    """Do what `reach` does; a lease that is not granted is a warning, where it is optional.

    Raises:
        LeaseDeployError: The desired state cannot be reached, or a request was refused.
    """
    try:
        return reach(desired, clock, urn)
    except LeaseNotGrantedError as error:
        if not optional:
            raise
        # The plugin cannot write to the engine's log, but the engine shows its standard error.
        (problem,) = error.problems
        sys.stderr.write(f"warning: {messages.not_granted(desired.spec.name, problem)}; the next deploy requests it\n")
        return None


def state_of(leases: Sequence[Observation], props: Mapping[str, Any], now: float) -> str:
    """The state of a lease in a word, or the way in which it ended.

    Args:
        leases: Its present observations.
        props: Its recorded properties.
        now: Unix seconds.
    """
    order = ("waiting", "provisioning", "active")
    live = max((lease.state for lease in leases if lease.is_live), default=None, key=order.index)
    if live is not None:
        return str(live)
    end = unix(props.get("ends_at"))
    return "expired" if leases or (end is not None and end <= now) else "gone"
