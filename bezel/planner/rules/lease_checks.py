"""Limits of a lease: durations, zones, control planes, and what needs internet access.

Owns the platform's limits as rules over settings. Sources: Cloud TPU queued resources (run duration 10 minutes to 7
days), Compute Engine flex-start VMs (the same; a wait of 90 seconds to 2 hours). Leaves vLLM, memory and money to the
modules beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.catalog import closest
from bezel.errors import NOT_SET, Problem, shown
from bezel.planner.base.durations import duration_text, parse_duration
from bezel.planner.base.option_values import as_float
from bezel.planner.base.problems import of_option, setting
from bezel.planner.base.settings import LeaseSettings, NetworkSettings, ProbeSettings, Resources, Scaling, Vpc

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bezel.planner.base.hardware import BackEnd, Leased
    from bezel.planner.base.settings import Settings
    from bezel.planner.rules.lease_startup import LeaseStart

MINUTE, HOUR, DAY = 60, 3600, 86_400
RUN_SECONDS = (10 * MINUTE, 7 * DAY)
# Bounds of the wait in one zone's queue; a queued resource itself has no bound.
PATIENCE_SECONDS = (MINUTE, 7 * DAY)
VM_PATIENCE_SECONDS = (90, 2 * HOUR)
DEADLINE_SECONDS = (5 * MINUTE, DAY)

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")


def check_service_only(settings: Settings) -> list[Problem]:
    """Refuse settings of leases in the stack file of a Cloud Run service, where they have no effect."""
    odd: list[tuple[str, object, object]] = [
        ("lease", settings.lease, LeaseSettings()),
        ("network", settings.network, NetworkSettings()),
        ("cost.max_lease_usd", settings.cost.max_lease_usd, None),
    ]
    return [
        Problem(
            setting(key),
            "(set)",
            f"{settings.accelerator} is a GPU of Cloud Run, which nobody leases: it would have no effect.",
            "remove it, or choose hardware that is leased, e.g. accelerator: v6e-4.",
        )
        for key, value, default in odd
        if value != default
    ]


def check_lease_only(settings: Settings) -> list[Problem]:
    """Refuse settings of Cloud Run services in the stack file of leases, where they have no effect."""
    of_machine = "the hardware comes with its host"
    odd: list[tuple[str, object, object, str]] = [
        ("scaling", settings.scaling, Scaling(), f"the number of machines is {setting('lease.count')}"),
        ("resources", settings.resources, Resources(), of_machine),
        (
            "probe",
            settings.probe,
            ProbeSettings(),
            f"the machine's start is bounded by {setting('lease.boot_deadline')}",
        ),
        ("rollout", settings.rollout, "direct", "a lease is replaced, not rolled out"),
        ("vpc", settings.vpc, Vpc(), f"its machines stand in a network of their own, see {setting('network')}"),
        (
            "cost.max_idle_hourly_usd",
            settings.cost.max_idle_hourly_usd,
            None,
            f"a lease costs the same with and without traffic; {setting('cost.max_lease_usd')} bounds it",
        ),
    ]
    return [
        Problem(setting(key), "(set)", f"it has no effect on {settings.accelerator}: {why}.", "remove it.")
        for key, value, default, why in odd
        if value != default
    ]


def check_lease(lease: LeaseSettings, hardware: Leased, back_end: BackEnd) -> list[Problem]:
    """Check durations, zones and control plane, each by itself and together."""
    waits = lease.provisioning == "flex-start" and back_end == "flex_start_vm"
    bounds = VM_PATIENCE_SECONDS if waits else PATIENCE_SECONDS
    problems = [
        *_duration("lease.duration", lease.duration, RUN_SECONDS),
        *_duration("lease.patience", lease.patience, bounds),
        *_duration("lease.provisioning_deadline", lease.provisioning_deadline, DEADLINE_SECONDS),
        *_duration("lease.boot_deadline", lease.boot_deadline, DEADLINE_SECONDS),
    ]
    for number, wish in enumerate(lease.zones):
        if wish.patience is not None:
            problems += _duration(f"lease.zones.{number}.patience", wish.patience, bounds)
    if back_end not in hardware.back_ends:
        problems.append(
            Problem(
                setting("lease.back_end"),
                back_end,
                f"it has no {hardware.id}.",
                f"write {' or '.join(hardware.back_ends)}, or leave it out.",
            )
        )
    return problems + _zones(lease, hardware)


def _duration(key: str, written: str, bounds: tuple[int, int]) -> list[Problem]:
    seconds, (least, most) = parse_duration(written), bounds
    if seconds is None:
        return [Problem(setting(key), shown(written), "it is no duration.", "write it with its unit, e.g. 90m or 4h.")]
    if least <= seconds <= most:
        return []
    return [
        Problem(
            setting(key),
            shown(written),
            "the platform, or this plan, takes no such duration there.",
            f"write {duration_text(least)} to {duration_text(most)}.",
        )
    ]


def _zones(lease: LeaseSettings, hardware: Leased) -> list[Problem]:
    if not lease.zones:
        return [
            Problem(
                setting("lease.zones"),
                NOT_SET,
                "nobody can be asked for a machine.",
                f"write zones in order of preference, e.g. [{{zone: {hardware.zones[0]}}}]. Known to have "
                f"{hardware.id}: {', '.join(hardware.zones)}.",
            )
        ]
    problems, seen = [], set()
    for number, wish in enumerate(lease.zones):
        key, known = setting(f"lease.zones.{number}.zone"), ", ".join(hardware.zones)
        if not _ZONE.fullmatch(wish.zone):
            near = closest(wish.zone, hardware.zones)
            problems.append(
                Problem(
                    key,
                    shown(wish.zone),
                    "it is no zone: a region has several, each with a letter.",
                    f"did you mean {near}?" if near else f"write one, e.g. of {known}.",
                )
            )
        elif wish.zone in hardware.zones_refused and lease.provisioning == "flex-start":
            problems.append(
                Problem(
                    key,
                    wish.zone,
                    f"it answered that it takes no flex-start request for {hardware.id}.",
                    f"take one of {known}.",
                )
            )
        elif wish.zone in seen:
            problems.append(Problem(key, wish.zone, "it stands there twice: asking again helps nobody.", "remove it."))
        seen.add(wish.zone)
    return problems


def check_egress(settings: Settings, hardware: Leased, back_end: BackEnd) -> list[Problem]:
    """Refuse sources that a machine without an external address cannot reach: all but Google's APIs."""
    if settings.network.nat:
        return []
    needs: list[tuple[str, str, str]] = []
    if back_end == "flex_start_vm":
        needs.append((setting("lease.back_end"), back_end, f"the image of {hardware.machine_type} has no Docker"))
    if settings.weights.loading == "hub":
        needs.append((setting("weights.loading"), "hub", "the hub is on the internet"))
    return [
        Problem(
            key,
            value,
            f"{why}, and machines have no way there: the boot would fail after the machine is paid for.",
            f"set `{setting('network')}: {{nat: true}}`"
            + (", or copy the weights into the bucket (`bezel weights copy`)." if value == "hub" else "."),
        )
        for key, value, why in needs
    ]


def check_lease_loading(settings: Settings) -> list[Problem]:
    """Refuse other loading: weights are copied to the machine before the server starts, or come from the hub."""
    if settings.weights.loading in (None, "hub"):
        return []
    return [
        Problem(
            setting("weights.loading"),
            str(settings.weights.loading),
            "a leased machine copies the weights out of the bucket before its server starts; nothing is mounted.",
            "remove it, or write hub.",
        )
    ]


def check_tpu_arguments(values: Mapping[str, Any], hardware: Leased, *, assistant: bool) -> list[Problem]:
    """Refuse options that need CUDA, or whose memory on a TPU cannot be planned."""
    if hardware.device != "tpu":
        return []
    problems = []
    if as_float(values.get("cpu-offload-gb", 0)):
        problems.append(
            of_option(
                "cpu-offload-gb",
                values["cpu-offload-gb"],
                f"weights are offloaded by CUDA's means; {hardware.id} has none.",
                "remove it.",
            )
        )
    if values.get("enable-lora") is True:
        problems.append(
            of_option(
                "enable-lora",
                "true",
                "nobody has shown adapters of Gemma 4 on a TPU, and their memory there cannot be planned.",
                "remove it.",
            )
        )
    if assistant:
        problems.append(
            of_option(
                "spec-method",
                values.get("spec-method"),
                "nobody has shown a draft model of Gemma 4 on a TPU, and its memory there cannot be planned.",
                "write spec-method: ngram, or remove it.",
            )
        )
    return problems


def check_boot_deadline(lease: LeaseSettings, start: LeaseStart) -> list[Problem]:
    """Refuse a boot deadline that may end while the machine is still compiling."""
    longest, written = start.seconds[1], parse_duration(lease.boot_deadline) or 0
    if written >= longest:
        return []
    return [
        Problem(
            setting("lease.boot_deadline"),
            lease.boot_deadline,
            f"a start may take {duration_text(longest)} ({start.basis}): the machine would be given up while it loads.",
            f"set it to {duration_text(longest)} or more.",
        )
    ]
