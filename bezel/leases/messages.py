"""Messages about a lease: progress in one line; failures as problems that the user repairs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.leases.clock import format_duration
from bezel.leases.state.observation import PHASES, Goal, Phase, State
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.leases.requests import LeaseSpec, ZoneChoice
    from bezel.leases.state.observation import DesiredState, Observation

RUN_AGAIN = "run the same command again; it reads every zone first and continues with what exists"
VANISHED = "the request is gone: Google found no capacity while it was valid, or it was deleted by hand"


def queue_text(lease: Observation, elapsed: float, spec: LeaseSpec) -> str:
    """A request that waits for capacity."""
    zones = [choice.zone for choice in spec.zones]
    later = zones[zones.index(lease.zone) + 1 :] if lease.zone in zones else []
    then = f"then {later[0]}" if later else "then no zone is left"
    return f"{_elapsed_and_left(lease, elapsed, spec.choice(lease.zone).patience_seconds)}, {then}"


def storing(lease: Observation, elapsed: float) -> str:
    """A request that was sent, and is not visible yet."""
    return f"{lease.zone}: requested {format_duration(elapsed)} ago, not stored yet"


def provisioning(lease: Observation, elapsed: float, desired: DesiredState) -> str:
    """A request that was granted."""
    return _elapsed_and_left(lease, elapsed, desired.provisioning_seconds)


def booting(lease: Observation, phases: Mapping[str, Phase], elapsed: float, desired: DesiredState) -> str:
    """A node that boots and does not serve yet."""
    left = format_duration(desired.boot_seconds - elapsed)
    node = f", node {lease.node_state}" if lease.node_state not in {"", "READY", "RUNNING"} else ""
    boot = f"boot {format_duration(elapsed)}, {left} left"
    return f"{lease.zone}: {lease.word}{node}, {boot}; {phase_line(phases.values())}"


def phase_line(phases: Iterable[Phase], *, whole: bool = False) -> str:
    """Phases that a node has reported, in order; finished ones without details unless `whole`."""
    parts = []
    for phase in sorted(phases, key=lambda phase: PHASES.index(phase.name)):
        detail = f" ({phase.detail})" if phase.detail and (whole or phase.state != "done") else ""
        parts.append(f"{phase.name} {phase.state}{detail}")
    return ", ".join(parts) or "the node reports nothing yet"


def deleting(lease: Observation, desired: DesiredState) -> str:
    """A lease to delete, with the reason."""
    reason = f": {lease.reason}" if lease.reason else ""
    left = "no lease" if desired.goal is Goal.GONE else "at most one lease"
    return f"{lease.zone}: deleting {lease.name} ({lease.word}{reason}), so that {left} is left"


def clearing(rest: Sequence[Observation], elapsed: float, limit: float) -> str:
    """Leases that are being deleted."""
    names = ", ".join(f"{lease.zone} {lease.word}" for lease in rest)
    return f"waiting for the deletion: {names}; {format_duration(elapsed)}, {format_duration(limit - elapsed)} left"


def out_of_patience(choice: ZoneChoice) -> str:
    """A zone that granted no capacity in time."""
    if choice.patience_seconds <= 0:
        return "not in the list of zones any more"
    return f"no capacity within {format_duration(choice.patience_seconds)}"


def request_failed(lease: Observation) -> str:
    """A request that failed, or a lease that ended before its node was healthy."""
    if lease.state is State.FAILED:
        return lease.reason or "FAILED, without a reason"
    return f"ended before it was healthy ({lease.node_state or lease.word})"


def zones_exhausted(spec: LeaseSpec, tried: Mapping[str, str]) -> Problem:
    """No zone is left to try."""
    reasons = [f"\n     {choice.zone}: {tried[choice.zone]}" for choice in spec.zones if choice.zone in tried]
    summary = f"none of {len(spec.zones)} zones granted it; nothing is leased, and nothing is left behind."
    return Problem(
        f"lease {spec.name}",
        "not granted",
        "".join([summary, *reasons]),
        "list other zones, raise the patience, or try again later; `bezel tpu find` shows where there is hardware, "
        "quota and capacity.",
    )


def not_ours(lease: Observation, spec: LeaseSpec) -> Problem:
    """A resource of another owner has the name."""
    return Problem(
        f"labels of {lease.name} in {lease.zone}",
        _labels(lease),
        f"the stack {spec.stack} did not request this lease, so it is not changed, and the name cannot be used there.",
        f"give the lease another name, remove {lease.zone} from the zones, or let its owner delete it.",
    )


def no_such_zones(zones: Sequence[str], project: str) -> Problem:
    """Zones that the user named and no API knows."""
    return Problem(
        "--zone",
        ", ".join(zones),
        f"the zone does not exist, or {project} is not allowed to use it; leases there are unknown.",
        "write the zone as Google does, e.g. us-east5-a, or omit --zone to search every known zone.",
    )


def labels_contradict(lease: Observation, project: str) -> Problem:
    """A lease whose labels contradict its own name, or name no stack."""
    kind = "instances delete" if lease.kind == "flex_start_vm" else "tpus queued-resources delete --force"
    return Problem(
        f"labels of {lease.name} in {lease.zone}",
        _labels(lease),
        "no lease of this name has these labels, so its owner is unknown; it is not deleted, and keeps using quota.",
        f"if it is yours, run `gcloud compute {kind} {shell_word(lease.name)} --zone {shell_word(lease.zone)} "
        "--project "
        f"{shell_word(project)}`.",
    )


def replaced_lease(lease: Observation, now: Observation) -> Problem:
    """A lease that was bought again, or changed its state, since the user confirmed its deletion."""
    return Problem(
        f"lease {lease.name} in {lease.zone}",
        now.word,
        "it is another lease than the one that was confirmed, and is not deleted.",
        "list the leases again, and delete this one if it is not needed.",
    )


def still_there(lease: Observation) -> Problem:
    """A lease that is still visible after its deletion."""
    return Problem(
        f"lease {lease.name} in {lease.zone}",
        f"{lease.word} after its deletion",
        "it uses quota until it is gone.",
        "run the same command again.",
    )


def not_gone(lease: Observation, elapsed: float, desired: DesiredState) -> Problem:
    """A deletion that does not end."""
    return Problem(
        f"lease {lease.name} in {lease.zone}",
        f"{lease.word} {format_duration(elapsed)} after its deletion began",
        f"it uses quota{_money(lease, desired)} until it is gone; nothing else was requested.",
        f"{RUN_AGAIN}; or wait until it has settled, then run `bezel tpu sweep`.",
    )


def not_provisioned(lease: Observation, elapsed: float, desired: DesiredState) -> Problem:
    """A lease that was granted and never became active."""
    return Problem(
        f"lease {lease.name} in {lease.zone}",
        f"still {lease.word} after {format_duration(elapsed)}",
        f"it cannot be deleted until it settles, and may still become active{_money(lease, desired)}.",
        f"{RUN_AGAIN}; `pulumi destroy` deletes it as soon as Google allows it.",
    )


def boot_failed(lease: Observation, phase: Phase, desired: DesiredState) -> Problem:
    """A node that reports a failed boot phase."""
    return Problem(
        f"node {lease.name} in {lease.zone}",
        f"failed in the phase {phase.name}",
        f"{phase.detail or 'it reports no reason'}; the lease continues{_money(lease, desired)}, and nothing serves.",
        "repair the cause and deploy again (a change of the node makes a new lease), or run `pulumi destroy`.",
    )


def never_healthy(lease: Observation, phases: Mapping[str, Phase], elapsed: float, desired: DesiredState) -> Problem:
    """An active node whose server does not become healthy in time."""
    return Problem(
        f"node {lease.name} in {lease.zone}",
        f"{lease.word} for {format_duration(elapsed)}, and not healthy",
        f"{phase_line(phases.values(), whole=True)}; the lease continues{_money(lease, desired)}, and nothing serves.",
        f"run `bezel tpu describe {shell_word(lease.name)}`, which shows the node's console; raise "
        "lease.boot_deadline and deploy "
        "again, which continues the wait, or run `pulumi destroy`.",
    )


def never_stored(lease: Observation, elapsed: float) -> Problem:
    """An operation that never ends."""
    return Problem(
        f"lease {lease.name} in {lease.zone}",
        f"neither stored nor refused in {format_duration(elapsed)}",
        "the request may still be stored, and then granted.",
        f"{RUN_AGAIN}.",
    )


def no_response(name: str, reason: str) -> Problem:
    """Repeated failures of Google's API."""
    return Problem(
        f"lease {name}",
        "unknown, as Google's API failed repeatedly",
        f"the last request may have taken effect, and nothing of it is lost; {reason}",
        f"{RUN_AGAIN}.",
    )


def end_text(
    name: str, end: str | None, hourly_usd: float | None, run_seconds: float | None, *, early: bool, renew: bool
) -> str:
    """A lease that is over, `early` if before its recorded end, and the cost of another one."""
    when = (f" before its planned end {end}" if early else f" at {end}") if end else ""
    then = "lease.renew is true: this deploy buys it" if renew else "set lease.renew: true to buy it"
    return f"the lease {name} ended{when}: nothing serves; {_another(hourly_usd, run_seconds)}; {then}"


def not_granted(name: str, problem: Problem | str) -> str:
    """A lease that no zone has granted, where a fallback serves without it."""
    text = problem if isinstance(problem, str) else f"{problem.consequence} {problem.repair}"
    return f"the lease {name} is not granted: {text} The fallback serves until then"


def none_in_hours(name: str, hourly_usd: float | None, run_seconds: float | None) -> str:
    """No lease is there in its hours, and the cost of another one."""
    price = _another(hourly_usd, run_seconds)
    return f"the lease {name} is not there in its hours: nothing serves; {price}; this deploy buys it"


def _another(hourly_usd: float | None, run_seconds: float | None) -> str:
    if hourly_usd is None:
        return "the cost of another one is unknown: no price row has an hour of it"
    if run_seconds is None:
        return f"another one costs {hourly_usd:.2f} USD/h until it is deleted"
    return f"another one costs {hourly_usd * run_seconds / 3600:.2f} USD for {format_duration(run_seconds)}"


def _elapsed_and_left(lease: Observation, elapsed: float, limit: float) -> str:
    return f"{lease.zone}: {lease.word} for {format_duration(elapsed)}, {format_duration(limit - elapsed)} left"


def _labels(lease: Observation) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(lease.labels.items())) or "(none)"


def _money(lease: Observation, desired: DesiredState) -> str:
    hourly = desired.hourly_usd.get(lease.zone)
    return " at an unknown price" if hourly is None else f" at {hourly:.2f} USD/h"
