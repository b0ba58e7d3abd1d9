"""Rows of what a team asks for: vLLM's figures over time with their samples, and the door with its price.

Leaves formatting to bezel.planner.render.text_table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.plan import LEASES, LeasePlan
from bezel.planner.assemble.provenance import COMPUTED
from bezel.planner.base.money import text
from bezel.planner.render.text_table import line_row, usd
from bezel_catalog.metrics import SAMPLES, SERIES_READ, monitoring_prices
from bezel_catalog.vllm.kept_series import (
    KEPT_SERIES,
    RECORDED_SAMPLES,
    SAMPLES_ABOUT_A_SCRAPE,
    SAMPLES_ABOUT_A_TARGET,
    SAMPLES_ABOUT_ITSELF,
    samples_of_scrape,
)
from bezel_catalog.volume_prices.secret_manager import ACCESSES, ACTIVE_VERSIONS, secret_price

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from decimal import Decimal

    from bezel.planner.assemble.plan import Plan
    from bezel.planner.cost.door_cost import DoorCost
    from bezel.planner.cost.metrics_cost import MetricsCost
    from bezel.planner.render.text_table import Row

# Source: cloud.google.com/stackdriver/pricing (November 2026), "All Monitoring data except data ingested by using
# Managed Service for Prometheus", of which metrics that a user defines on the log are a part.
_LOG_METRICS = "0.258 USD a MiB above the first 150 MiB of a billing account's month, by series and minute"


def team_sections(plan: Plan | LeasePlan) -> Iterator[tuple[str, Iterable[Row]]]:
    """The sections of figures over time and of the door; none without them."""
    if plan.metrics is not None:
        yield "Figures over time", _metrics_rows(plan)
    if plan.door is not None:
        yield "Door for keys", _door_rows(plan)


def door_cost_rows(cost: DoorCost | None) -> Iterator[Row]:
    """What a door costs; nothing without one."""
    if cost is None:
        return
    for line in cost.lines:
        name, amount, note = line_row(line)
        yield name, amount, f"only while it serves requests; {note}"
    yield "a million requests, door", f"{text(cost.requests.hourly, 2)} USD", "in addition"
    instances = f"{cost.max_instances} instances serving requests all the time"
    yield "door at most", usd(cost.hourly_at_max, "h", 4), instances


def short_team_rows(plan: Plan | LeasePlan) -> Iterator[tuple[str, object]]:
    """Figures over time and door, each in one line; nothing without them."""
    if plan.metrics is not None:
        period, hours = list(plan.server_hours.items())[-1]
        reads = " with reads of their configuration" if plan.metrics.cost.reads else ""
        amount = f"{_millions(plan.metrics.cost, hours)}, {text(plan.metrics.cost.usd(hours), 2)} USD{reads}"
        until = "until the leases end" if period == LEASES else "in a month"
        yield "figures over time", f"at most {amount} {until}"
    if plan.door is not None:
        serving = f"{usd(plan.door.cost.hourly, 'h', 4)} an instance that serves, 0 without requests"
        yield "door for keys", f"{plan.door.name} in {plan.door.region}; {serving}"


def _metrics_rows(plan: Plan | LeasePlan) -> Iterator[Row]:
    metrics = plan.metrics
    assert metrics is not None  # noqa: S101 - the section has looked
    cost = metrics.cost
    chosen = plan.origins["observability.metrics"]
    if isinstance(plan, LeasePlan):
        yield "collector", "on each machine, in its price", chosen
    else:
        yield "collector", metrics.image.name, chosen
        size = f"{metrics.cpu} vCPU, {metrics.memory_gib} GiB in each instance"
        yield "size of the collector", size, "computed; no source says what is left beside a GPU, and none was tried"
        yield "starts", "once the server has passed its startup probe", COMPUTED
    yield "role of its account", "roles/monitoring.metricWriter on the project", COMPUTED
    yield "scraped", f"every {metrics.interval_seconds} s, from the server's start to its end", COMPUTED
    yield "kept", f"{len(KEPT_SERIES)} families of vLLM's /metrics", "docs/observability.md lists them"
    recorded = f"{RECORDED_SAMPLES} as recorded under a mixed load, and {SAMPLES_ABOUT_A_SCRAPE} about the scrape"
    yield "samples of a scrape", f"{samples_of_scrape()} at most", recorded
    if not isinstance(plan, LeasePlan):
        besides = f"{SAMPLES_ABOUT_A_TARGET} with each scrape, {SAMPLES_ABOUT_ITSELF} a minute"
        yield "samples about the collector", besides, "at most, billed as the others"
    for period, hours in plan.server_hours.items():
        amount = f"{_millions(cost, hours)}, {text(cost.usd_of_samples(hours), 2)} USD"
        yield f"samples, {period}", amount, f"at most; {text(cost.usd_as_recorded(hours), 2)} USD as recorded"
    if cost.reads:
        yield from _secret_rows(plan, cost)
    first, *others = monitoring_prices(SAMPLES)
    cheaper = ", ".join(f"{row.usd_per_million} above {row.above_millions // 1000} billion" for row in others)
    yield "a million samples", f"{first.usd_per_million} USD", f"{cheaper} a month; {first.as_of}, {first.source}"
    (read,) = monitoring_prices(SERIES_READ)
    yield "a million series read", f"{read.usd_per_million} USD", f"not included; {read.as_of}, {read.source}"


def _secret_rows(plan: Plan | LeasePlan, cost: MetricsCost) -> Iterator[Row]:
    """Reads of the secret with the collector's configuration, and its version."""
    for period, hours in plan.server_hours.items():
        amount = f"{cost.reads * hours:,.0f} of its secret, {text(cost.usd_of_reads(hours), 2)} USD"
        yield f"reads, {period}", amount, f"{cost.reads} an hour for each instance"
    row = secret_price(ACCESSES)
    yield f"{row.number:,} reads", f"{row.usd} USD", f"beyond {row.free:,} a month; {row.as_of}, {row.source}"
    yield _version_row()


def _version_row() -> Row:
    """The version of a secret that a stack makes for itself."""
    row = secret_price(ACTIVE_VERSIONS)
    price = f"{row.usd} USD a month each beyond {row.free} of the billing account; {row.as_of}, {row.source}"
    return "active versions of its secret", "1", price


def _door_rows(plan: Plan | LeasePlan) -> Iterator[Row]:
    door = plan.door
    assert door is not None  # noqa: S101 - the section has looked
    yield "service", door.name, COMPUTED
    yield "region", door.region, COMPUTED
    yield "image", door.image.name, COMPUTED
    yield "instances", f"0 to {door.max_instances}, {door.request_concurrency} requests at a time in each", COMPUTED
    yield "request timeout", f"{door.timeout_seconds} s", COMPUTED
    yield "calls", _target(plan), COMPUTED
    yield _version_row()
    yield "bucket", f"gs://{door.bucket}: the keys' hashes, and their use", COMPUTED
    yield (
        "its callers",
        "anyone with a key; callers with an identity call the server as before",
        plan.origins["access.keys"],
    )
    if plan.settings.observability.dashboard:
        yield "use by team", "3 metrics of its log, for the dashboard", f"not included: {_LOG_METRICS}"


def _target(plan: Plan | LeasePlan) -> str:
    if plan.address is not None:
        return plan.address.url
    return f"the gateway {plan.gateway.name}" if isinstance(plan, LeasePlan) else f"the service {plan.service.name}"


def _millions(cost: MetricsCost, hours: Decimal) -> str:
    return f"{cost.millions(hours):.1f} million samples"
