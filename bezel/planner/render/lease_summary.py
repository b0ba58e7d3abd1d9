"""Text summary of a plan of leased machines: each value and its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.lease_plan import LeasePlan
from bezel.planner.assemble.provenance import COMPUTED, DEFAULT
from bezel.planner.base.durations import duration_text
from bezel.planner.base.money import text
from bezel.planner.cost.lease_cost import NOT_INCLUDED
from bezel.planner.cost.lease_total import GATEWAY_INSTANCES
from bezel.planner.render.summary import service_summary
from bezel.planner.render.text_table import (
    CATALOGUE,
    argument_rows,
    either,
    gib,
    gpu_memory_rows,
    image_origin,
    line_row,
    span,
    speed_rows,
    token_rows,
    usd,
    usd_range,
    weights_origin,
    written,
)
from bezel.planner.sizing.memory import MemoryFit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bezel.planner.assemble.plan import Plan
    from bezel.planner.render.text_table import Row
    from bezel.planner.sizing.tpu_memory import TpuFit


def plan_summary(plan: Plan | LeasePlan) -> str:
    """A plan as lines of `name  value  (origin)`, in sections."""
    if not isinstance(plan, LeasePlan):
        return service_summary(plan)
    fit = plan.fit
    hardware = plan.terms.hardware
    memory = (
        gpu_memory_rows(fit, f"each {hardware.gpu.id}" if hardware.gpu else hardware.id)
        if isinstance(fit, MemoryFit)
        else _tpu_memory(fit, hardware.id)
    )
    return written(
        [
            ("Stack", _stack(plan)),
            ("Lease", _lease(plan)),
            ("vLLM arguments", argument_rows(plan.node.arguments, plan.origins)),
            ("Memory", memory),
            ("Estimated speed of one machine", _speed(plan)),
            ("Cost", _cost(plan)),
        ]
    )


def _stack(plan: LeasePlan) -> Iterable[Row]:
    node, gateway, origin = plan.node, plan.gateway, plan.origins
    yield "stack", plan.stack, "given"
    yield "project", plan.project, "given"
    yield "environment", plan.environment, origin["environment"]
    yield "model", plan.model, origin["model"]
    yield "image", node.image.name, image_origin(origin)
    source = node.weights.address or f"hf:{node.weights.source}"
    yield "weights", source, weights_origin(origin, in_bucket=bool(node.weights.address))
    yield "copied to", node.weights.model if node.weights.bucket else "nothing: the server downloads them", COMPUTED
    yield "gateway", gateway.name, COMPUTED
    yield "its region", gateway.region, origin["region"]
    yield "its image", gateway.image.name, DEFAULT
    yield (
        "invokers",
        "everyone" if gateway.public else ", ".join(gateway.invokers) or "project members with the role",
        origin["access.public" if gateway.public else "access.invokers"],
    )
    way_out = "to the internet through NAT" if plan.network.nat else "to Google's APIs only"
    yield "network", f"{plan.network.name}: no external address, the way out {way_out}", origin["network.nat"]
    for name, value in node.environment.items():
        yield f"env {name}", value, origin[f"variables.{name}"]
    for name, secret in node.secrets.items():
        yield f"env {name}", f"secret {secret}, fetched at boot", origin[f"secrets.{name}"]


def _lease(plan: LeasePlan) -> Iterable[Row]:
    terms, origin = plan.terms, plan.origins
    hardware = terms.hardware
    machines = f"{len(terms.names)} x {hardware.id}"
    yield "machines", machines, either(origin, "accelerator", "lease.count")
    yield "asked for by", terms.back_end, origin["lease.back_end"]
    yield "bought as", terms.provisioning, origin["lease.provisioning"]
    for number, each in enumerate(terms.zones, start=1):
        known = "" if each.zone in hardware.zones else ", not known to have it"
        waits = f"waiting {duration_text(each.patience_seconds)}"
        own = plan.settings.lease.zones[number - 1].patience is not None
        said = origin["lease.zones"] if own else either(origin, "lease.zones", "lease.patience")
        yield f"zone {number}", f"{each.zone}, {waits}{known}", said
    for name, seconds, key in (
        ("granted machine runs within", terms.provisioning_deadline_seconds, "provisioning_deadline"),
        ("and answers within", terms.boot_deadline_seconds, "boot_deadline"),
        ("ends after", terms.run_seconds, "duration"),
    ):
        yield name, duration_text(seconds), origin[f"lease.{key}"]
    yield "bought again by `up`", "yes" if terms.renew else "no", origin["lease.renew"]
    if plan.start.keeps_cache:
        yield "compile cache", plan.node.compile_cache, COMPUTED


def _tpu_memory(fit: TpuFit, name: str) -> Iterable[Row]:
    yield name, gib(fit.slice_bytes), f"usable memory of {fit.chips} {'chip' if fit.chips == 1 else 'chips'}, measured"
    yield "for vLLM", gib(fit.budget_bytes), f"{fit.utilization:g} of it"
    yield "weights", gib(fit.weight_bytes), CATALOGUE
    yield "programs, copies", gib(fit.overhead_bytes), "fitted to the 12B on a v6e-4"
    yield "KV cache", gib(fit.kv_available_bytes), "what is left"
    yield "tokens in it", fit.kv_tokens, f"{fit.kv_token_bytes} bytes each; sliding layers keep the full length"
    yield f"sequences of {fit.max_model_len}", fit.full_context_sequences, "at a time"
    yield "scores of a batch", gib(fit.sampling_bytes), "on each chip, beside all that"


def _speed(plan: LeasePlan) -> Iterable[Row]:
    start = plan.start
    yield "start", span(start.seconds, "s", 0), start.basis
    if start.keeps_cache:
        yield "start with the cache", span(start.cached_seconds, "s", 0), "every further lease"
    yield from speed_rows(plan.estimate, plan.gain)


def _cost(plan: LeasePlan) -> Iterable[Row]:
    cost, limits, count = plan.cost, plan.settings.cost, len(plan.terms.names)
    length = duration_text(cost.run_seconds)
    for zone, each in cost.by_zone.items():
        name, amount, note = line_row(each.line)
        yield f"{name}, {zone}", amount, note
    machines = "machine" if count == 1 else f"{count} machines"
    yield machines, usd(cost.machines_hourly, "h", 2), "in the dearest of the zones"
    yield f"{machines} for {length}", f"{text(cost.machines_lease, 2)} USD", "until the lease ends"
    for line in cost.gateway_lines:
        name, amount, note = line_row(line)
        yield f"gateway, {name}", amount, f"only while it answers; {note}"
    yield "a million requests", f"{text(cost.requests.hourly, 2)} USD", "of the gateway"
    yield "with the gateway", usd(cost.hourly_at_max, "h", 4), f"{GATEWAY_INSTANCES} instances answering all the time"
    yield f"with the gateway for {length}", f"{text(cost.lease_at_max, 2)} USD", "at most, without the fee for requests"
    low, high = (cost.seconds(seconds) for seconds in plan.start.seconds)
    yield "one start", usd_range((low, high), 2), "paid from its beginning"
    if plan.start.keeps_cache:
        saved = plan.start.saved_seconds
        spared = usd_range((cost.seconds(saved[0]), cost.seconds(saved[1])), 2)
        yield "the cache saves", f"{saved[0] / 60:.0f} to {saved[1] / 60:.0f} min, {spared}", "of every further start"
    yield from token_rows(plan.token_cost)
    for name, key, per in (("may spend", "max_hourly_usd", "/h"), ("may spend on leases", "max_lease_usd", "")):
        limit = getattr(limits, key)
        yield name, "no limit set" if limit is None else f"{limit:g} USD{per}", plan.origins[f"cost.{key}"]
    yield "not included", None, ", ".join((*NOT_INCLUDED, "NAT") if plan.network.nat else NOT_INCLUDED)
