"""Summary of a plan: each value and its origin, as fields of `name  value  (origin)` in sections.

Owns the choice of the rows for both kinds of plans. Leaves their formatting to bezel.planner.render.text_table, and
what a person reads first to bezel.planner.render.short_summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.plan import LeasePlan
from bezel.planner.assemble.provenance import COMPUTED, DEFAULT
from bezel.planner.base.deployment import HEALTH_PATH
from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.expiry import EXPIRY, NEVER
from bezel.planner.base.money import Priced, text
from bezel.planner.cost import lease_cost, service_cost
from bezel.planner.render.address_rows import address_cost_rows, address_rows, region_cost_rows, region_rows
from bezel.planner.render.fallback_rows import fallback_sections, state_rows
from bezel.planner.render.team_rows import door_cost_rows, team_sections
from bezel.planner.render.text_table import (
    CATALOGUE,
    adapter_text,
    argument_rows,
    callers,
    either,
    gib,
    gpu_memory_rows,
    image_origin,
    line_row,
    no_cache_row,
    pooled_rows,
    section_blocks,
    span,
    speed_rows,
    token_rows,
    usd,
    usd_range,
    weights_origin,
)
from bezel.planner.rules.startup import estimate_start
from bezel.planner.vllm.loading import LOADINGS
from bezel_base.terminal.layout import lay_out
from bezel_catalog.quantities import duration_text, memory_text
from bezel_catalog.sizing.memory import MemoryFit
from bezel_catalog.sizing.roofline import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.planner.assemble.plan import Plan
    from bezel.planner.render.text_table import Row
    from bezel_base.terminal.blocks import Block


def plan_summary(plan: Plan | LeasePlan) -> str:
    """A plan as lines of `name  value  (origin)`, in sections."""
    return "\n".join(lay_out(plan_blocks(plan)))


def plan_blocks(plan: Plan | LeasePlan) -> Iterator[Block]:
    """Every value of a plan with its origin, in sections."""
    arguments = ("vLLM arguments", argument_rows(plan.server, plan.origins))
    if isinstance(plan, LeasePlan):
        return section_blocks(
            [
                ("Stack", [*_common(plan), *_gateway(plan), *address_rows(plan), *_variables(plan)]),
                ("Lease", _lease(plan)),
                arguments,
                ("Memory", _leased_memory(plan)),
                ("Estimated speed of one machine", [*_lease_start(plan), *_speed(plan)]),
                *fallback_sections(plan),
                *team_sections(plan),
                ("Cost", [*_lease_cost(plan), *state_rows(plan), *_lease_limits(plan)]),
                *_warnings(plan),
            ]
        )
    return section_blocks(
        [
            ("Stack", [*_common(plan), *_service(plan), *address_rows(plan), *_variables(plan)]),
            arguments,
            ("Memory", gpu_memory_rows(plan.fit, plan.service.accelerator)),
            ("Estimated speed of one instance", [*_service_start(plan), *_speed(plan)]),
            *team_sections(plan),
            ("Cost", _service_cost(plan)),
            *_warnings(plan),
        ]
    )


def _speed(plan: Plan | LeasePlan) -> Iterable[Row]:
    if isinstance(plan.estimate, Estimate):
        return speed_rows(plan.estimate, plan.gain)
    return pooled_rows(plan.estimate, plan.smoke.pooled_at or "")


def _common(plan: Plan | LeasePlan) -> Iterable[Row]:
    weights, origin = plan.weights, plan.origins
    yield "stack", plan.stack, "given"
    yield "project", plan.project, "given"
    yield "environment", plan.environment, origin["environment"]
    if (expiry := plan.settings.labels.get(EXPIRY, NEVER)) != NEVER:
        yield "needed until", f"{expiry} in UTC", origin["labels"]
    yield "model", plan.model, origin["model"]
    yield "image", plan.server.image.name, image_origin(origin)
    source = weights.address or f"hf:{weights.source}"
    yield "weights", source, weights_origin(origin, in_bucket=bool(weights.address))
    for adapter in plan.settings.adapters:
        yield f"adapter {adapter.name}", adapter_text(adapter, plan.weights), origin["adapters"]


def _variables(plan: Plan | LeasePlan) -> Iterable[Row]:
    fetched = ", fetched at boot" if isinstance(plan, LeasePlan) else ""
    for name, value in plan.server.environment.items():
        yield f"env {name}", value, plan.origins[f"variables.{name}"]
    for name, secret in plan.secrets.items():
        yield f"env {name}", f"secret {secret}{fetched}", plan.origins[f"secrets.{name}"]


def _invokers(plan: Plan | LeasePlan) -> Row:
    access = plan.settings.access
    return "invokers", callers(access), plan.origins["access.public" if access.public else "access.invokers"]


def _service(plan: Plan) -> Iterable[Row]:
    service, weights, origin = plan.service, plan.weights, plan.origins
    probe = service.startup_probe
    yield "service", service.name, COMPUTED
    yield from region_rows(plan)
    yield "accelerator", f"{service.accelerator_count} x {service.accelerator}", origin["accelerator"]
    yield "cpu", service.cpu, origin["resources.cpu"]
    yield "memory", memory_text(service.memory_gib), origin["resources.memory"]
    yield "loaded by", weights.loading, origin["weights.loading"]
    mount = f"gs://{weights.bucket} at {weights.mount_path}, read-only" if weights.mount_path else "nothing"
    yield "mounted", mount, COMPUTED
    scaling = either(origin, "scaling.min_instances", "scaling.max_instances")
    yield "instances", f"{service.min_instances} to {service.max_instances}", scaling
    for each in service.schedule:
        yield f"minimum {each.minimum} from", f"{each.cron} ({each.zone})", origin["scaling.schedule"]
    yield "requests at a time", service.request_concurrency, origin["scaling.request_concurrency"]
    yield "request timeout", f"{service.timeout_seconds} s", origin["scaling.request_timeout_seconds"]
    if service.zonal_redundancy:
        yield "zonal redundancy", "on: GPUs of another zone in reserve", origin["scaling.zonal_redundancy"]
    if service.cpu_boost:
        yield "startup CPU boost", "on", origin["resources.cpu_boost"]
    yield "ingress", service.ingress, origin["access.ingress"]
    if service.vpc:
        name = service.vpc.subnetwork or service.vpc.network
        yield "outgoing network", f"{name}, {service.vpc.egress}", either(origin, "vpc.network", "vpc.subnetwork")
    yield "rollout", plan.settings.rollout, origin["rollout"]
    if service.restarted_at:
        yield "restarted at", service.restarted_at, origin["restarted_at"]
    wait = f"after {probe.initial_delay_seconds} s, every {probe.period_seconds} s"
    window = f"at most {probe.period_seconds * probe.failure_threshold} s"
    set_by = either(origin, *(f"probe.{name}" for name in type(probe).model_fields))
    target = f"GET {HEALTH_PATH}" if probe.kind == "http" else f"TCP port {service.port}"
    yield "startup probe", f"{target} {wait}, {window}", set_by
    yield _invokers(plan)


def _gateway(plan: LeasePlan) -> Iterable[Row]:
    weights, gateway, origin = plan.weights, plan.gateway, plan.origins
    yield "copied to", weights.model if weights.bucket else "nothing: the server downloads them", COMPUTED
    yield "gateway", gateway.name, COMPUTED
    yield "gateway region", gateway.region, origin["region"]
    yield "gateway image", gateway.image.name, DEFAULT
    yield "request timeout", f"{gateway.timeout_seconds} s", origin["scaling.request_timeout_seconds"]
    yield _invokers(plan)
    egress = "to the internet through NAT" if plan.network.nat else "to Google's APIs only"
    network = f"{plan.network.name}: no external address, outgoing requests {egress}"
    yield "network", network, origin["network.nat"]


def _lease(plan: LeasePlan) -> Iterable[Row]:
    terms, origin = plan.terms, plan.origins
    hardware = terms.hardware
    yield "machines", f"{len(terms.names)} x {hardware.id}", either(origin, "accelerator", "lease.count")
    yield "control plane", terms.back_end, origin["lease.back_end"]
    yield "provisioning", terms.provisioning, origin["lease.provisioning"]
    for number, zone in enumerate(terms.zones, start=1):
        note = "" if zone.zone in hardware.zones else ", not known to have it"
        has_own_patience = plan.settings.lease.zones[number - 1].patience is not None
        set_by = origin["lease.zones"] if has_own_patience else either(origin, "lease.zones", "lease.patience")
        yield f"zone {number}", f"{zone.zone}, waiting {duration_text(zone.patience_seconds)}{note}", set_by
    for name, seconds, key in (
        ("start time limit", terms.provisioning_deadline_seconds, "provisioning_deadline"),
        ("boot time limit", terms.boot_deadline_seconds, "boot_deadline"),
        ("ends after", terms.run_seconds, "duration"),
    ):
        yield name, duration_text(seconds), origin[f"lease.{key}"]
    for window in terms.hours:
        yield "leased from", f"{window.start} until {window.end} ({window.zone})", origin["lease.hours"]
    yield "renewed by `up`", "yes" if terms.renew else "no", origin["lease.renew"]
    if plan.node.compile_cache:
        yield "compile cache", plan.node.compile_cache, COMPUTED


def _leased_memory(plan: LeasePlan) -> Iterable[Row]:
    fit, hardware = plan.fit, plan.terms.hardware
    if isinstance(fit, MemoryFit):
        yield from gpu_memory_rows(fit, f"each {hardware.gpu.id}" if hardware.gpu else hardware.id)
        return
    chips = f"{fit.chips} {'chip' if fit.chips == 1 else 'chips'}"
    yield hardware.id, gib(fit.slice_bytes), f"usable memory of {chips}, measured"
    yield "for vLLM", gib(fit.budget_bytes), f"{fit.utilization:g} of it"
    yield "weights", gib(fit.weight_bytes), CATALOGUE
    yield "programs, copies", gib(fit.overhead_bytes), "fitted to the 12B on a v6e-4"
    if fit.keeps_cache:
        yield "KV cache", gib(fit.kv_available_bytes), "the rest"
        yield "tokens in it", fit.kv_tokens, f"{fit.kv_token_bytes} bytes each; sliding layers keep the full length"
    else:
        yield no_cache_row(fit.kv_available_bytes)
    yield f"sequences of {fit.max_model_len}", fit.full_context_sequences, "at a time"
    yield "logits of a batch", gib(fit.sampling_bytes), "on each chip, in addition"


def _service_start(plan: Plan) -> Iterable[Row]:
    yield "cold start", span(plan.start.seconds, "s", 0), plan.start.basis
    others = [loading for loading in LOADINGS.values() if loading.id != plan.weights.loading]
    starts = [f"{loading.id} {span(estimate_start(plan.fit, loading).seconds, 's', 0)}" for loading in others]
    yield "other loadings", "; ".join(starts), "weights.loading, estimated"


def _lease_start(plan: LeasePlan) -> Iterable[Row]:
    yield "start", span(plan.start.seconds, "s", 0), plan.start.basis
    if plan.start.cached_seconds:
        yield "start with the cache", span(plan.start.cached_seconds, "s", 0), "every further lease"


def _service_cost(plan: Plan) -> Iterable[Row]:
    cost = plan.cost
    yield from map(line_row, cost.lines)
    yield "one instance running", usd(cost.hourly, "h", 4), COMPUTED
    yield "always on", usd(cost.monthly_always_on, "month", 2), f"{service_cost.HOURS_PER_MONTH} h"
    of_schedule = cost.average_min is not None
    without = f"{cost.average_min:.2f} instances on average" if of_schedule else _instances(cost.min_instances)
    yield "without traffic", usd(cost.monthly_without_traffic, "month", 2), without
    if of_schedule:
        dearest = f"{_instances(cost.min_instances)} in the dearest hour"
        yield "saved by the schedule", usd(cost.monthly_saved, "month", 2), f"against {dearest} at all times"
    yield "at most", usd(cost.hourly_at_max, "h", 4), _instances(cost.max_instances)
    yield from region_cost_rows(plan)
    low, high = map(cost.start, plan.start.seconds)
    yield "one start", usd_range((low, high), 4), "billed from its beginning"
    yield from _transfer(plan)
    yield from token_rows(plan.token_cost)
    idle = plan.settings.cost.max_idle_hourly_usd
    yield _limit(plan, "spending limit", "max_hourly_usd", "/h")
    if idle is None and plan.environment == THROW_AWAY:
        yield "spending limit, idle", "0 USD/h", plan.origins["cost.max_idle_hourly_usd"]
    else:
        yield _limit(plan, "spending limit, idle", "max_idle_hourly_usd", "/h")
    yield "not included", None, ", ".join(cost.not_included)


def _transfer(plan: Plan | LeasePlan) -> Iterable[Row]:
    """What a start pays for reading its weights from another location; nothing without a bucket."""
    transfer = plan.transfer()
    if transfer is None:
        return
    amount, read = transfer.usd, f"{transfer.gib * transfer.servers:.1f} GiB"
    if isinstance(amount, Priced):
        note = f"{read} from {transfer.place}" if amount.usd else f"{read} from the same region"
        yield "weights of a start", f"{text(amount, 2)} USD", note
        return
    where = "`bezel doctor` looks" if transfer.place is None else amount.reason
    yield "weights of a start", "unknown", f"{read}, by the bucket's location: {where}"


def _warnings(plan: Plan | LeasePlan) -> list[tuple[str, Iterable[Row]]]:
    """The section of the warnings; none where there is nothing to warn of."""
    return [("Warnings", [("warning", None, warning) for warning in plan.warnings])] if plan.warnings else []


def _instances(number: int) -> str:
    return "1 instance" if number == 1 else f"{number} instances"


def _limit(plan: Plan | LeasePlan, name: str, key: str, per: str) -> Row:
    limit = getattr(plan.settings.cost, key)
    return name, "no limit set" if limit is None else f"{limit:g} USD{per}", plan.origins[f"cost.{key}"]


def _lease_cost(plan: LeasePlan) -> Iterable[Row]:
    cost, length = plan.cost, duration_text(plan.cost.run_seconds)
    for zone, line in cost.by_zone.items():
        name, amount, note = line_row(line)
        yield f"{name}, {zone}", amount, note
    machines = "machine" if cost.count == 1 else f"{cost.count} machines"
    yield machines, usd(cost.machines_hourly, "h", 2), "in the most expensive zone"
    yield f"{machines} for {length}", f"{text(cost.machines_lease, 2)} USD", "until the lease ends"
    if cost.share is not None and cost.machines_monthly is not None and cost.monthly_saved is not None:
        yield f"{machines} in the hours", usd(cost.machines_monthly, "month", 2), f"{cost.share:.0%} of the time"
        yield "saved by the hours", usd(cost.monthly_saved, "month", 2), "against leases at all times"
    for line in cost.gateway_lines:
        name, amount, note = line_row(line)
        yield f"gateway, {name}", amount, f"only while it serves requests; {note}"
    yield "a million requests", f"{text(cost.requests.hourly, 2)} USD", "of the gateway"
    if plan.address:
        yield from address_cost_rows(plan.address.cost)
    yield from door_cost_rows(cost.door)
    busy = f"{lease_cost.GATEWAY_INSTANCES} instances serving requests all the time"
    front = "gateway and door" if cost.door else "the gateway"
    yield f"with {front}", usd(cost.hourly_at_max, "h", 4), busy
    yield f"with {front} for {length}", f"{text(cost.lease_at_max, 2)} USD", "at most, without the fee for requests"
    low, high = map(cost.start, plan.start.seconds)
    yield "one start", usd_range((low, high), 2), "billed from its beginning"
    yield from _transfer(plan)
    if plan.start.cached_seconds:
        low_seconds, high_seconds = plan.start.saved_seconds
        spared = usd_range((cost.start(low_seconds), cost.start(high_seconds)), 2)
        minutes = f"{low_seconds / 60:.0f} to {high_seconds / 60:.0f} min"
        yield "the cache saves", f"{minutes}, {spared}", "of every further start"


def _lease_limits(plan: LeasePlan) -> Iterable[Row]:
    yield from token_rows(plan.token_cost)
    yield _limit(plan, "spending limit", "max_hourly_usd", "/h")
    yield _limit(plan, "spending limit, leases", "max_lease_usd", "")
    nat = ("NAT",) if plan.network.nat else ()
    yield "not included", None, ", ".join((*plan.cost.not_included, *nat))
