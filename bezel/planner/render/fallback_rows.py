"""Rows of a lease's fallback: the service, what a caller notices, how soon it serves, and the price of each state.

Leaves formatting to bezel.planner.render.text_table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.provenance import COMPUTED
from bezel.planner.fallback.gateway_checks import RETURN, detection_seconds
from bezel.planner.render.text_table import either, span, token_rows, usd
from bezel_catalog.quantities import memory_text
from bezel_catalog.sizing.roofline import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.planner.assemble.plan import LeasePlan
    from bezel.planner.render.text_table import Row


def fallback_sections(plan: LeasePlan) -> Iterator[tuple[str, Iterable[Row]]]:
    """The section of the fallback; none without one."""
    if plan.fallback is not None:
        yield "Fallback", [*_service_rows(plan), *_caller_rows(plan), *_detection_rows()]


def state_rows(plan: LeasePlan) -> Iterator[Row]:
    """What each state costs, where there is a fallback."""
    cost, fallback = plan.cost, plan.fallback
    if fallback is None or cost.fallback_at_max is None:
        return
    count = fallback.service.max_instances
    instances = "1 instance" if count == 1 else f"{count} instances"
    yield "while the lease serves", usd(cost.hourly_at_max, "h", 4), "machines and gateway, the fallback at 0"
    yield "while the fallback serves", usd(cost.fallback_at_max, "h", 4), f"at most: {instances} and the gateway"
    yield "without lease and requests", usd(cost.hourly_at_rest, "h", 4), "the fallback scales to 0"
    yield "while one takes over", usd(cost.hourly_in_a_change, "h", 4), "at most: both, and the gateway"


def _service_rows(plan: LeasePlan) -> Iterator[Row]:
    assert plan.fallback is not None  # noqa: S101 - the section has looked
    service, origin = plan.fallback.service, plan.origins
    yield "service", service.name, COMPUTED
    yield "region", service.region, origin["fallback.region"]
    yield "model", plan.fallback.plan.model, origin["fallback.model"]
    hardware = f"{service.accelerator_count} x {service.accelerator}, {service.cpu} CPUs"
    set_by = either(origin, *(f"fallback.{key}" for key in ("accelerator", "resources.cpu", "resources.memory")))
    yield "hardware", f"{hardware}, {memory_text(service.memory_gib)}", set_by
    yield "instances", f"{service.min_instances} to {service.max_instances}", origin["fallback.max_instances"]
    yield "image", service.image.name, COMPUTED
    yield "its caller", "the gateway alone, by its account's identity", COMPUTED
    for name, option in service.options.items():
        for flag, *values in option.flags:
            is_given = name in plan.settings.fallback.vllm
            yield flag, " ".join(values), either(origin, "fallback.vllm") if is_given else COMPUTED


def _caller_rows(plan: LeasePlan) -> Iterator[Row]:
    assert plan.fallback is not None  # noqa: S101 - the section has looked
    fallback = plan.fallback
    longest = f"{plan.fit.max_model_len} by the lease, {fallback.fit.max_model_len} by the fallback"
    yield "tokens of a request", longest, "what a caller notices"
    for who, speed in (("lease", plan.estimate), ("fallback", fallback.plan.estimate)):
        if isinstance(speed, Estimate):
            batch = f"{span(speed.tokens_per_second_batched, 'tokens/s', 0)} with {speed.batch} users"
            yield f"output of the {who}", f"{span(speed.tokens_per_second_alone, 'tokens/s', 0)} alone", batch
    yield "its start", span(fallback.plan.start.seconds, "s", 0), "what the first request waits for"
    for name, amount, note in token_rows(fallback.plan.token_cost):
        yield f"{name}, fallback", amount, note


def _detection_rows() -> Iterator[Row]:
    for how, seconds in detection_seconds().items():
        yield f"dead lease, {how}", f"no request after {seconds} s at most", "by the checks of the gateway"
    yield "the way back", f"over {RETURN} s", "a growing share of requests; streams end where they began"
