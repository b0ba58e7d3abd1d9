"""Text summary of a Cloud Run service's plan: each value and its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog import accelerator
from bezel.planner.assemble.provenance import COMPUTED
from bezel.planner.cost.service_cost import HOURS_PER_MONTH, NOT_INCLUDED
from bezel.planner.render.text_table import (
    argument_rows,
    either,
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
from bezel.planner.rules.startup import estimate_start
from bezel.planner.vllm.loading import LOADINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bezel.planner.assemble.plan import Plan
    from bezel.planner.render.text_table import Row


def service_summary(plan: Plan) -> str:
    """The plan of a service as lines of `name  value  (origin)`, in sections."""
    return written(
        [
            ("Stack", _stack(plan)),
            ("vLLM arguments", argument_rows(plan.service.arguments, plan.origins)),
            ("Memory", gpu_memory_rows(plan.fit, plan.service.accelerator)),
            ("Estimated speed of one instance", _speed(plan)),
            ("Cost", _cost(plan)),
        ]
    )


def _stack(plan: Plan) -> Iterable[Row]:
    service, weights, origin = plan.service, plan.service.weights, plan.origins
    probe = service.startup_probe
    window = probe.period_seconds * probe.failure_threshold
    yield "stack", plan.stack, "given"
    yield "project", plan.project, "given"
    yield "environment", plan.environment, origin["environment"]
    yield "model", plan.model, origin["model"]
    yield "image", service.image.name, image_origin(origin)
    yield "service", service.name, COMPUTED
    invited = service.region in accelerator(service.accelerator).regions_on_invitation
    yield "region", service.region + (" (on invitation)" if invited else ""), origin["region"]
    yield "accelerator", f"{service.accelerator_count} x {service.accelerator}", origin["accelerator"]
    yield "cpu", service.cpu, origin["resources.cpu"]
    yield "memory", f"{service.memory_gib}Gi", origin["resources.memory"]
    source = f"gs://{weights.bucket}/{weights.path}" if weights.bucket else f"hf:{weights.source}"
    yield "weights", source, weights_origin(origin, in_bucket=weights.bucket is not None)
    yield "loaded by", weights.loading, origin["weights.loading"]
    mount = f"gs://{weights.bucket} at {weights.mount_path}, read-only" if weights.mount_path else "nothing"
    yield "mounted", mount, COMPUTED
    yield (
        "instances",
        f"{service.min_instances} to {service.max_instances}",
        either(origin, "scaling.min_instances", "scaling.max_instances"),
    )
    yield "requests at a time", service.request_concurrency, origin["scaling.request_concurrency"]
    if service.zonal_redundancy:
        yield "zonal redundancy", "on: GPUs of another zone in reserve", origin["scaling.zonal_redundancy"]
    if service.cpu_boost:
        yield "startup CPU boost", "on", origin["resources.cpu_boost"]
    yield "ingress", service.ingress, origin["access.ingress"]
    if service.vpc:
        name = service.vpc.subnetwork or service.vpc.network
        yield "sends through", f"{name}, {service.vpc.egress}", either(origin, "vpc.network", "vpc.subnetwork")
    yield "rollout", plan.settings.rollout, origin["rollout"]
    yield (
        "startup probe",
        f"GET {probe.path} after {probe.initial_delay_seconds} s, every {probe.period_seconds} s, at most {window} s",
        either(origin, "probe.initial_delay_seconds", "probe.period_seconds", "probe.failure_threshold"),
    )
    yield (
        "invokers",
        "everyone" if service.public else ", ".join(service.invokers) or "project members with the role",
        origin["access.public" if service.public else "access.invokers"],
    )
    for name, value in service.environment.items():
        yield f"env {name}", value, origin[f"variables.{name}"]
    for name, secret in service.secrets.items():
        yield f"env {name}", f"secret {secret}", origin[f"secrets.{name}"]


def _speed(plan: Plan) -> Iterable[Row]:
    yield "cold start", span(plan.start.seconds, "s", 0), plan.start.basis
    others = [loading for loading in LOADINGS.values() if loading.id != plan.service.weights.loading]
    starts = [f"{loading.id} {span(estimate_start(plan.fit, loading).seconds, 's', 0)}" for loading in others]
    yield "otherwise loaded", "; ".join(starts), "weights.loading, estimated"
    yield from speed_rows(plan.estimate, plan.gain)


def _cost(plan: Plan) -> Iterable[Row]:
    for line in plan.cost.lines:
        yield line_row(line)
    yield "one instance running", usd(plan.cost.hourly, "h", 4), COMPUTED
    yield "always on", usd(plan.cost.monthly_always_on, "month", 2), f"{HOURS_PER_MONTH} h"
    yield "without traffic", usd(plan.cost.monthly_without_traffic, "month", 2), _instances(plan.cost.min_instances)
    yield "at most", usd(plan.cost.hourly_at_max, "h", 4), _instances(plan.cost.max_instances)
    low, high = (plan.cost.cold_start(seconds) for seconds in plan.start.seconds)
    yield "one start", usd_range((low, high), 4), "paid from its beginning"
    yield from token_rows(plan.token_cost)
    for name, key in (("may spend", "max_hourly_usd"), ("may spend idle", "max_idle_hourly_usd")):
        limit = getattr(plan.settings.cost, key)
        if limit is None and key == "max_idle_hourly_usd" and plan.environment == "dev":
            limit = 0
        yield name, "no limit set" if limit is None else f"{limit:g} USD/h", plan.origins[f"cost.{key}"]
    yield "not included", None, ", ".join(NOT_INCLUDED)


def _instances(number: int) -> str:
    return "1 instance" if number == 1 else f"{number} instances"
