"""Messages about a lease: progress in one line; failures as value, consequence and repair. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.leases.clock import format_duration
from bezel.leases.observation import PHASES, Phase, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.leases.observation import Observation
    from bezel.leases.requests import LeaseSpec, ZoneChoice
    from bezel.leases.wanted import Wanted

AGAIN = "run the same command again: it looks into every zone first and takes what it finds"


def queued(one: Observation, elapsed: float, choice: ZoneChoice, spec: LeaseSpec) -> str:
    """A request that waits for capacity."""
    left = max(0.0, choice.patience_seconds - elapsed)
    zones = [other.zone for other in spec.zones]
    after = zones[zones.index(one.zone) + 1 :] if one.zone in zones else []
    then = f", then {after[0]}" if after else ", then no zone is left"
    return f"{one.zone}: {one.word} for {format_duration(elapsed)}, {format_duration(left)} left{then}"


def storing(one: Observation, elapsed: float) -> str:
    """A request that was sent, and is not visible yet."""
    return f"{one.zone}: asked {format_duration(elapsed)} ago, not stored yet"


def provisioning(one: Observation, elapsed: float, wanted: Wanted) -> str:
    """A request that was granted."""
    left = max(0.0, wanted.provisioning_seconds - elapsed)
    return f"{one.zone}: {one.word} for {format_duration(elapsed)}, {format_duration(left)} left"


def booting(one: Observation, phases: Mapping[str, Phase], elapsed: float, wanted: Wanted) -> str:
    """A node that boots and does not serve yet."""
    left = max(0.0, wanted.boot_seconds - elapsed)
    node = f", node {one.node_state}" if one.node_state not in {"", "READY", "RUNNING"} else ""
    boot = f"boot {format_duration(elapsed)}, {format_duration(left)} left"
    return f"{one.zone}: {one.word}{node}, {boot}; {phase_line(phases.values())}"


def phase_line(phases: Iterable[Phase], *, whole: bool = False) -> str:
    """Phases that a node has reported, in order; finished ones without details unless `whole`."""
    by_name = {phase.name: phase for phase in phases}
    told = [by_name[name] for name in PHASES if name in by_name]
    parts = [f"{one.name} {one.state}{_detail(one) if whole or one.state != 'done' else ''}" for one in told]
    return ", ".join(parts) or "the node reports nothing yet"


def deleting(one: Observation) -> str:
    """A lease to delete, with the reason."""
    why = f": {one.reason}" if one.reason else ""
    return f"{one.zone}: {one.name} ({one.word}{why}) is deleted, so that one lease is left at most"


def going(rest: Sequence[Observation], elapsed: float, most: float) -> str:
    """Leases that are being deleted."""
    names = ", ".join(f"{one.zone} {one.word}" for one in rest)
    left = max(0.0, most - elapsed)
    return f"waiting until it is gone: {names}; {format_duration(elapsed)}, {format_duration(left)} left"


def out_of_patience(choice: ZoneChoice) -> str:
    """A zone that granted no capacity in time."""
    if choice.patience_seconds <= 0:
        return "not in the list of zones any more"
    return f"no capacity within {format_duration(choice.patience_seconds)}"


def vanished() -> str:
    """A request that Google removed without a reason that can still be read."""
    return "the request is gone: Google found no capacity while it was valid, or somebody deleted it"


def request_failed(one: Observation) -> str:
    """A request that failed, or a lease that ended before its node was healthy."""
    if one.state is State.FAILED:
        return one.reason or "FAILED, without a reason"
    return f"ended before it was healthy ({one.node_state or one.word})"


def zones_exhausted(spec: LeaseSpec, tried: Mapping[str, str]) -> str:
    """No zone is left to try."""
    lines = [f"  {choice.zone}: {tried[choice.zone]}" for choice in spec.zones if choice.zone in tried]
    return "\n".join(
        [
            f"no zone of {len(spec.zones)} granted the lease {spec.name}:",
            *lines,
            "consequence: nothing is leased, and nothing is left behind",
            (
                "repair: `bezel tpu find` shows where there is hardware, quota and capacity; list other zones, raise "
                "the patience, or try again later"
            ),
        ]
    )


def not_ours(one: Observation, spec: LeaseSpec) -> str:
    """A resource of another owner has the name."""
    theirs = ", ".join(f"{key}={value}" for key, value in sorted(one.labels.items())) or "none"
    return (
        f"{one.zone} holds {one.name}, which the stack {spec.stack} did not ask for (its labels: {theirs})\n"
        f"consequence: it is left as it is, and no lease of that name can be asked for there\n"
        f"repair: name the lease otherwise, take {one.zone} out of the zones, or let its owner delete it"
    )


def no_such_zones(zones: Sequence[str], project: str) -> str:
    """Zones that the user named and no API knows."""
    return (
        f"no such zone: {', '.join(zones)}\n"
        f"consequence: nothing is known of leases there; {project} may also not be allowed to see it\n"
        "repair: name zones as Google does, e.g. us-east5-a, or leave --zone out, which looks into every known one"
    )


def labels_contradict(one: Observation, project: str) -> str:
    """A lease whose labels contradict its own name, or name no stack."""
    labels = ", ".join(f"{key}={value}" for key, value in sorted(one.labels.items()))
    command = (
        f"gcloud compute instances delete {one.name}"
        if one.kind == "flex_start_vm"
        else f"gcloud compute tpus queued-resources delete {one.name} --force"
    )
    return (
        f"{one.name} in {one.zone} has labels that no lease of this name has ({labels})\n"
        "consequence: whose it is cannot be said, so it is left as it is, and goes on using quota\n"
        f"repair: if it is yours, `{command} --zone {one.zone} --project {project}`"
    )


def still_there(one: Observation) -> str:
    """A lease that is still visible after its deletion."""
    return (
        f"{one.name} in {one.zone} is still {one.word} after its deletion\n"
        "consequence: it uses quota until it is gone\n"
        "repair: run the same command again"
    )


def not_gone(one: Observation, elapsed: float, wanted: Wanted) -> str:
    """A deletion that does not end."""
    return (
        f"{one.name} in {one.zone} is still {one.word} {format_duration(elapsed)} after its deletion began\n"
        f"consequence: it uses quota{_money(one, wanted)} until it is gone; nothing else was asked for\n"
        f"repair: {AGAIN}; or wait until it has settled, then `bezel tpu sweep`"
    )


def not_provisioned(one: Observation, elapsed: float, wanted: Wanted) -> str:
    """A lease that was granted and never became active."""
    return (
        f"{one.name} in {one.zone} is still {one.word} after {format_duration(elapsed)}\n"
        f"consequence: it cannot be deleted until it settles, and may still become active{_money(one, wanted)}\n"
        f"repair: {AGAIN}; `pulumi destroy` gives it back as soon as it can be deleted"
    )


def boot_failed(one: Observation, phase: Phase, wanted: Wanted) -> str:
    """A node that reports a failed boot phase."""
    return (
        f"the node {one.name} in {one.zone} failed in its phase {phase.name}: {phase.detail or 'it says no more'}\n"
        f"consequence: the lease goes on{_money(one, wanted)}, and nothing serves\n"
        "repair: mend what it names and deploy again (a change of the node is a new lease), or `pulumi destroy`"
    )


def never_healthy(one: Observation, phases: Mapping[str, Phase], elapsed: float, wanted: Wanted) -> str:
    """An active node whose server does not become healthy in time."""
    return (
        f"the node {one.name} in {one.zone} is {one.word} for {format_duration(elapsed)}, and not healthy: "
        f"{phase_line(phases.values(), whole=True)}\n"
        f"consequence: the lease goes on{_money(one, wanted)}, and nothing serves\n"
        f"repair: `bezel tpu describe {one.name}` shows its console; raise lease.boot_deadline and deploy again, "
        "which goes on waiting, or `pulumi destroy`"
    )


def never_stored(one: Observation, elapsed: float) -> str:
    """An operation that never ends."""
    return (
        f"{one.zone} has neither stored nor refused the request {one.name} in {format_duration(elapsed)}\n"
        "consequence: it may still be stored, and then granted\n"
        f"repair: {AGAIN}"
    )


def unanswered(doing: str, why: str) -> str:
    """Repeated failures of Google's API."""
    return (
        f"Google did not answer while {doing}: {why}\n"
        "consequence: what was asked for last may have happened all the same; nothing of it is lost\n"
        f"repair: {AGAIN}"
    )


def ended(
    name: str, end: str | None, hourly_usd: float | None, run_seconds: float | None, *, early: bool, renew: bool
) -> str:
    """A lease that is over, `early` if before its recorded end, and the cost of another one."""
    when = (f" before its time was over, {end}" if early else f" at {end}") if end else ""
    if hourly_usd is None:
        price = "what it would cost is unknown: no price row has an hour of it"
    elif run_seconds is None:
        price = f"another one costs {hourly_usd:.2f} USD/h until it is given back"
    else:
        price = f"another one costs {hourly_usd * run_seconds / 3600:.2f} USD for {format_duration(run_seconds)}"
    then = "lease.renew is true: it is bought" if renew else "set lease.renew: true to buy it"
    return f"the lease {name} ended{when}: nothing serves; {price}; {then}"


def _money(one: Observation, wanted: Wanted) -> str:
    hourly = wanted.hourly_usd.get(one.zone)
    return " at a price that is unknown" if hourly is None else f" at {hourly:.2f} USD/h"


def _detail(phase: Phase) -> str:
    return f" ({phase.detail})" if phase.detail else ""
