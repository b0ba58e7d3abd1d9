"""Limits of a lease: durations, zones, control planes, and what needs internet access.

Owns the platform's limits as rules over settings. Sources: Cloud TPU queued resources (run duration 10 minutes to 7
days), Compute Engine flex-start VMs (the same; a wait of 90 seconds to 2 hours). Leaves vLLM, memory and money to the
modules beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.planner.base.problems import of_option, setting
from bezel.planner.base.settings import (
    Fallback,
    LeaseSettings,
    NetworkSettings,
    ProbeSettings,
    Resources,
    Scaling,
    Vpc,
)
from bezel.planner.rules.observability_checks import unwatchable
from bezel_base.errors import NOT_SET, Problem
from bezel_catalog import closest
from bezel_catalog.quantities import duration_text
from bezel_catalog.vllm.typed_values import real_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from bezel.planner.base.hardware import BackEnd, LeasedHardware
    from bezel.planner.base.settings import Settings
    from bezel.planner.rules.startup import StartEstimate
    from bezel_catalog import Model

_TIMEOUT = "scaling.request_timeout_seconds"
MINUTE, HOUR, DAY = 60, 3600, 86_400
RUN_SECONDS = (10 * MINUTE, 7 * DAY)
# Bounds of the time in one zone's queue; a queued resource itself has no bound.
PATIENCE_SECONDS = (MINUTE, 7 * DAY)
VM_PATIENCE_SECONDS = (90, 2 * HOUR)
DEADLINE_SECONDS = (5 * MINUTE, DAY)

_THROUGH_CUDA = {
    "cpu-offload-gb": "weights are",
    "offload-group-size": "layers are",
    "kv-offloading-size": "the KV cache is",
}
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")


def check_service_only(settings: Settings, unread: Iterable[str] = ()) -> Iterator[Problem]:
    """Refuse settings of leases in the stack file of a Cloud Run service, where they have no effect.

    Args:
        settings: with defaults in place of values that cannot be read.
        unread: the keys of these values; they are set as well.
    """
    misplaced = {
        "lease": settings.lease != LeaseSettings() or _holds("lease", unread),
        "fallback": settings.fallback != Fallback() or _holds("fallback", unread),
        "network": settings.network != NetworkSettings() or _holds("network", unread),
        "cost.max_lease_usd": settings.cost.max_lease_usd is not None,
    }
    yield from (
        Problem(
            setting(key),
            "(set)",
            f"{settings.accelerator} is a GPU of Cloud Run, which is not leased: it would have no effect.",
            "remove it, or choose hardware that is leased, e.g. accelerator: v6e-4.",
        )
        for key, is_set in misplaced.items()
        if is_set
    )


def check_lease_only(settings: Settings, unread: Iterable[str] = ()) -> Iterator[Problem]:
    """Refuse settings of Cloud Run services in the stack file of leases, where they have no effect.

    Args:
        settings: with defaults in place of values that cannot be read.
        unread: the keys of these values; they are set as well.
    """
    one_region = f"its gateway runs in one region, named by {setting('region')}"
    misplaced = {
        "regions": (bool(settings.regions), one_region),
        "optional_regions": (bool(settings.optional_regions), one_region),
        "weights.regional_buckets": (settings.weights.regional_buckets, one_region),
        "scaling": (
            _scales(settings.scaling) or _holds("scaling", {*unread} - {setting(_TIMEOUT)}),
            f"the number of machines is {setting('lease.count')}",
        ),
        "resources": (
            settings.resources != Resources() or _holds("resources", unread),
            "the hardware comes with its host",
        ),
        "probe": (
            settings.probe != ProbeSettings() or _holds("probe", unread),
            f"the machine's start is bounded by {setting('lease.boot_deadline')}",
        ),
        "rollout": (settings.rollout != "direct", "a lease is replaced, not rolled out"),
        "restarted_at": (settings.restarted_at != "", "a lease has no revisions"),
        "vpc": (
            settings.vpc != Vpc() or _holds("vpc", unread),
            f"its machines have a network of their own, see {setting('network')}",
        ),
        **unwatchable(settings, unread),
        "cost.max_idle_hourly_usd": (
            settings.cost.max_idle_hourly_usd is not None,
            f"a lease costs the same with and without traffic; {setting('cost.max_lease_usd')} bounds it",
        ),
    }
    yield from (
        Problem(
            setting(key),
            "(set)",
            f"it has no effect on {settings.accelerator}: {why}.",
            f"remove it, and name the gateway's region as {setting('region')}." if key == "regions" else "remove it.",
        )
        for key, (is_set, why) in misplaced.items()
        if is_set
    )


def _scales(scaling: Scaling) -> bool:
    """Whether the number of instances is set; the time limit of a request is the gateway's too."""
    return scaling != Scaling(request_timeout_seconds=scaling.request_timeout_seconds)


def _holds(section: str, keys: Iterable[str]) -> bool:
    return any(key.startswith(f"{setting(section)}.") for key in keys)


def check_lease(
    lease: LeaseSettings, hardware: LeasedHardware, back_end: BackEnd, unread: Iterable[str] = ()
) -> Iterator[Problem]:
    """Check durations, zones and control plane, each by itself and together.

    Args:
        lease: with defaults in place of values that cannot be read.
        hardware: what is leased.
        back_end: control plane.
        unread: the keys of these values.
    """
    queued_vm = lease.provisioning == "flex-start" and back_end == "flex_start_vm"
    patience = VM_PATIENCE_SECONDS if queued_vm else PATIENCE_SECONDS
    durations: list[tuple[str, int | None, tuple[int, int]]] = [
        ("duration", lease.duration, RUN_SECONDS),
        ("patience", lease.patience, patience),
        ("provisioning_deadline", lease.provisioning_deadline, DEADLINE_SECONDS),
        ("boot_deadline", lease.boot_deadline, DEADLINE_SECONDS),
        *((f"zones.{number}.patience", zone.patience, patience) for number, zone in enumerate(lease.zones)),
    ]
    for key, seconds, (shortest, longest) in durations:
        if seconds is not None and not shortest <= seconds <= longest:
            yield Problem(
                setting(f"lease.{key}"),
                duration_text(seconds),
                "the platform, or this plan, does not allow this duration.",
                f"write {duration_text(shortest)} to {duration_text(longest)}.",
            )
    if back_end not in hardware.back_ends:
        repair = f"write {' or '.join(hardware.back_ends)}, or leave it out."
        yield Problem(setting("lease.back_end"), back_end, f"it has no {hardware.id}.", repair)
    yield from _zones(lease, hardware, unread)


def _zones(lease: LeaseSettings, hardware: LeasedHardware, unread: Iterable[str]) -> Iterator[Problem]:
    zone_list = ", ".join(hardware.zones)
    if not lease.zones and not any(key.startswith(setting("lease.zones")) for key in unread):
        yield Problem(
            setting("lease.zones"),
            NOT_SET,
            "no machine can be requested without a zone.",
            f"write zones in order of preference, e.g. [{{zone: {hardware.zones[0]}}}]. Known to have "
            f"{hardware.id}: {zone_list}.",
        )
    zones = [preference.zone for preference in lease.zones]
    for number, zone in enumerate(zones):
        key = setting(f"lease.zones.{number}.zone")
        if not _ZONE.fullmatch(zone):
            near = closest(zone, hardware.zones)
            repair = f"did you mean {near}?" if near else f"write one, e.g. of {zone_list}."
            yield Problem(key, zone, "it is not a zone: a region has several, each with a letter.", repair)
        elif zone in hardware.zones_refused and lease.provisioning == "flex-start":
            consequence = f"it refused a flex-start request for {hardware.id} as unsupported."
            yield Problem(key, zone, consequence, f"choose one of {zone_list}.")
        elif zone in zones[:number]:
            yield Problem(key, zone, "it is listed twice: a second request there has no effect.", "remove it.")


def check_egress(settings: Settings, hardware: LeasedHardware, back_end: BackEnd) -> Iterator[Problem]:
    """Refuse sources that a machine without an external address cannot reach: all but Google's APIs."""
    unreachable = "and machines cannot reach the internet: the boot would fail after the machine is paid for."
    nat = f"set `{setting('network')}: {{nat: true}}`"
    if back_end == "flex_start_vm" and not settings.network.nat:
        consequence = f"the image of {hardware.machine_type} has no Docker, {unreachable}"
        yield Problem(setting("lease.back_end"), back_end, consequence, f"{nat}.")
    if settings.weights.loading == "hub" and not settings.network.nat:
        repair = f"{nat}, or copy the weights into the bucket (`bezel weights copy`)."
        yield Problem(setting("weights.loading"), "hub", f"the hub is on the internet, {unreachable}", repair)


def check_lease_loading(settings: Settings) -> Iterator[Problem]:
    """Refuse other loading: weights are copied to the machine before the server starts, or come from the hub."""
    if settings.weights.loading not in (None, "hub"):
        yield Problem(
            setting("weights.loading"),
            settings.weights.loading,
            "a leased machine copies the weights out of the bucket before its server starts; nothing is mounted.",
            "remove it, or write hub.",
        )


def check_tpu_arguments(values: Mapping[str, Any], hardware: LeasedHardware, *, assistant: bool) -> Iterator[Problem]:
    """Refuse options that need CUDA, or whose memory on a TPU cannot be planned."""
    if hardware.device != "tpu":
        return
    for name, moved in _THROUGH_CUDA.items():
        if real_number(values, name):
            consequence = f"{moved} offloaded through CUDA; {hardware.id} has none."
            yield of_option(name, values[name], consequence, "remove it.")
    unproven = "on a TPU are not known to work with Gemma 4, and their memory there cannot be planned."
    if values.get("enable-lora") is True:
        yield of_option("enable-lora", True, f"adapters {unproven}", "remove it.")
    if assistant:
        method = values.get("spec-method", NOT_SET)
        yield of_option("spec-method", method, f"draft models {unproven}", "write spec-method: ngram, or remove it.")


def check_leased_draft(values: Mapping[str, Any], hardware: LeasedHardware, model: Model) -> Iterator[Problem]:
    """Refuse a draft model on GPUs that load from the bucket: only the model's own folder is copied to the machine."""
    if hardware.device == "tpu":
        return
    config = values.get("speculative-config")
    written = isinstance(config, dict) and bool(config)
    where, draft = ("speculative-config", config) if written else ("spec-model", values.get("spec-model"))
    yield of_option(
        where,
        draft,
        "only the model's own folder is copied to a leased machine: vLLM does not find the draft model and exits.",
        f"set `{setting('weights.loading')}: hub` and spec-model: {model.assistant}, or use spec-method: ngram.",
    )


def check_boot_deadline(lease: LeaseSettings, start: StartEstimate) -> Iterator[Problem]:
    """Refuse a boot deadline that may end while the machine is still compiling."""
    longest = duration_text(start.seconds[1])
    if lease.boot_deadline < start.seconds[1]:
        yield Problem(
            setting("lease.boot_deadline"),
            duration_text(lease.boot_deadline),
            f"a start may take {longest} ({start.basis}): the lease would fail while the machine still loads.",
            f"set it to {longest} or more.",
        )
