"""Short summary of a plan: what is served, where, for how much, within which limits, and what the stack file changes.

Owns what a person reads first; each value with its origin is in bezel.planner.render.summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.plan import LeasePlan
from bezel.planner.assemble.provenance import STACK_FILE
from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.expiry import EXPIRY, NEVER
from bezel.planner.base.money import text
from bezel.planner.cost.token_cost import POOLED_DIGITS
from bezel.planner.render.address_rows import (
    NO_RETRIES,
    address_price,
    failover_text,
    place_text,
    records_text,
    short_price_rows,
)
from bezel.planner.render.team_rows import short_team_rows
from bezel.planner.render.text_table import argument_rows, callers, gib, span, usd, usd_range
from bezel_base.terminal.blocks import Line, NamedValues, Role
from bezel_base.text.shell import shell_word
from bezel_catalog.quantities import duration_text, memory_text
from bezel_catalog.sizing.roofline import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.assemble.plan import Plan
    from bezel_base.terminal.blocks import Block

_Row = tuple[str, object]


def short_blocks(plan: Plan | LeasePlan) -> Iterator[Block]:
    """What a person needs of a plan, in one look."""
    yield Line(f"{plan.stack}: {plan.model}", Role.HEADING)
    yield NamedValues([*_place(plan), *_size(plan), *_cost(plan), *_limits(plan)])
    changed = [row[:2] for row in argument_rows(plan.server, plan.origins) if row[2] == STACK_FILE]
    if changed:
        yield Line("vLLM arguments of the stack file", Role.HEADING)
        yield NamedValues(changed)
    yield from (Line(f"warning: {warning}") for warning in plan.warnings)
    yield Line(f"each value with its origin: `bezel plan {shell_word(plan.stack)} --all`", Role.FAINT)


def _place(plan: Plan | LeasePlan) -> Iterator[_Row]:
    weights = plan.weights
    copies = ", a copy in each region" if plan.settings.weights.regional_buckets else ""
    yield "weights", (weights.address or f"hf:{weights.source}") + copies
    if plan.settings.adapters:
        yield "adapters", ", ".join(adapter.name for adapter in plan.settings.adapters)
    yield "image", plan.server.image.name
    if isinstance(plan, LeasePlan):
        terms = plan.terms
        yield "machines", f"{len(terms.names)} x {terms.hardware.id}, {terms.provisioning}, by {terms.back_end}"
        yield "zones", ", ".join(dict.fromkeys(zone.zone for zone in terms.zones))
        windows = "".join(f"; {each.start} until {each.end} ({each.zone})" for each in terms.hours)
        renewed = ", renewed by `up`" if terms.renew else ""
        yield "lease", f"{duration_text(terms.run_seconds)}{renewed}{windows}"
        yield "gateway", f"{plan.gateway.name} in {plan.gateway.region}"
        if plan.fallback is not None:
            service = plan.fallback.service
            yield "fallback", f"{plan.fallback.plan.model} on {service.accelerator} in {service.region}"
    else:
        service = plan.service
        yield "service", f"{service.name} in {place_text(plan)}"
        cores = f"{service.cpu} CPUs, {memory_text(service.memory_gib)}"
        yield "hardware", f"{service.accelerator_count} x {service.accelerator}, {cores}"
        count = f"{service.min_instances} to {service.max_instances}"
        yield "instances", f"{count}, {service.request_concurrency} requests at a time in each"
    if plan.address:
        yield "address", plan.address.url
        yield "records", records_text(plan.address)
    if not isinstance(plan, LeasePlan) and len(plan.regions) > 1:
        yield "failover", failover_text(plan.address)
    if plan.address:
        yield "retries", NO_RETRIES
    yield "callers", callers(plan.settings.access)
    yield from short_team_rows(plan)
    expiry = plan.settings.labels.get(EXPIRY, NEVER)
    until = "" if expiry == NEVER else f", needed until {expiry} in UTC"
    yield "environment", f"{plan.environment}, project {plan.project}{until}"


def _size(plan: Plan | LeasePlan) -> Iterator[_Row]:
    fit, speed = plan.fit, plan.estimate
    cache = f", {gib(fit.kv_available_bytes)} KV cache" if fit.keeps_cache else ""
    yield "memory", f"{gib(fit.weight_bytes)} weights{cache}, of {gib(fit.budget_bytes)}"
    yield "sequences", f"{fit.full_context_sequences} of {fit.max_model_len} tokens at a time"
    yield "estimated start", span(plan.start.seconds, "s", 0)
    if isinstance(speed, Estimate):
        alone, batch = speed.tokens_per_second_alone, speed.tokens_per_second_batched
        many = f"{batch[0]:.0f} to {batch[1]:.0f} with {speed.batch} users"
        yield "estimated speed", f"{span(alone, 'output tokens/s', 0)} alone, {many}"
    else:
        yield "asked at", plan.smoke.pooled_at or "no endpoint: only a plugin asks it"
        tokens = span(speed.tokens_per_second, "tokens/s", 0)
        yield (
            "estimated speed",
            f"{span(speed.inputs_per_second, 'inputs/s', 0)} of {speed.prompt_tokens} tokens, {tokens}",
        )


def _cost(plan: Plan | LeasePlan) -> Iterator[_Row]:
    if isinstance(plan, LeasePlan):
        cost = plan.cost
        length = duration_text(cost.run_seconds)
        yield "price", f"{usd(cost.machines_hourly, 'h', 2)}, {text(cost.machines_lease, 2)} USD in {length}"
        yield "at most", f"{usd(cost.hourly_at_max, 'h', 4)}, {text(cost.lease_at_max, 2)} USD in {length}"
        if cost.address:
            yield "price of the address", address_price(cost.address)
        if cost.fallback_at_max is not None:
            yield "fallback", f"{usd(cost.fallback_at_max, 'h', 4)} under load, 0 without requests"
        digits = 2
    elif not plan.total.is_one_service:
        yield from short_price_rows(plan)
        digits = 4
    else:
        of = plan.cost
        yield "price", f"{usd(of.hourly, 'h', 4)} an instance, {usd(of.monthly_always_on, 'month', 2)} always on"
        yield "without traffic", usd(of.monthly_without_traffic, "month", 2)
        yield "at most", usd(of.hourly_at_max, "h", 4)
        digits = 4
    basis = "estimated"
    if not isinstance(plan, LeasePlan) and len(plan.regions) > 1:
        basis = f"estimated, in {plan.service.region}"
    low, high = map(plan.cost.start, plan.start.seconds)
    yield "one start", f"{usd_range((low, high), digits)} ({basis})"
    tokens = plan.token_cost
    if tokens.output is None:
        yield "a million tokens in", f"{usd_range(tokens.input, POOLED_DIGITS)} ({basis})"
    else:
        yield "a million tokens", f"{usd_range(tokens.input, 2)} in, {usd_range(tokens.output, 2)} out ({basis})"


def _limits(plan: Plan | LeasePlan) -> Iterator[_Row]:
    limits = plan.settings.cost
    other = "lease" if isinstance(plan, LeasePlan) else "idle"
    second = limits.max_lease_usd if isinstance(plan, LeasePlan) else limits.max_idle_hourly_usd
    if second is None and other == "idle" and plan.environment == THROW_AWAY:
        second = 0
    texts = [
        f"{amount:g} USD{per}"
        for amount, per in ((limits.max_hourly_usd, "/h"), (second, " a lease" if other == "lease" else "/h idle"))
        if amount is not None
    ]
    yield "spending limits", ", ".join(texts) or "none set"
