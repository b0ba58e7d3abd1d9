"""A plan as text to read: each value, and where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.origins import COMPUTED, DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.planner.plan import Plan

Row = tuple[str, object, str]


def plan_summary(plan: Plan) -> str:
    """The plan as lines of `name  value  (origin)`, in sections."""
    sections = [
        ("Stack", _stack(plan)),
        ("vLLM arguments", _arguments(plan)),
        ("Memory (GiB)", _computed(plan.fit.as_output())),
        ("Estimated speed", _computed(plan.estimate.as_output())),
        ("Cost", _cost(plan)),
    ]
    return "\n\n".join(_section(title, rows) for title, rows in sections)


def _stack(plan: Plan) -> Iterable[Row]:
    service, weights, origin = plan.service, plan.service.weights, plan.origins
    probe = service.startup_probe
    window = probe.period_seconds * probe.failure_threshold
    yield "stack", plan.stack, "given"
    yield "project", plan.project, "given"
    yield "environment", plan.environment, origin["environment"]
    yield "model", plan.model, origin["model"]
    yield "image", f"{service.image.registry}/{service.image.repository}:{service.image.tag}", origin["vllm_version"]
    yield "service", service.name, COMPUTED
    yield "region", service.region, origin["region"]
    yield "accelerator", f"{service.accelerator_count} x {service.accelerator}", origin["accelerator"]
    yield "cpu", service.cpu, origin["resources.cpu"]
    yield "memory", f"{service.memory_gib}Gi", origin["resources.memory"]
    yield "weights", f"gs://{weights.bucket}/{weights.path}", _either(origin, "weights.bucket", "weights.path")
    yield (
        "instances",
        f"{service.min_instances} to {service.max_instances}",
        _either(origin, "scaling.min_instances", "scaling.max_instances"),
    )
    yield "requests at a time", service.request_concurrency, origin["scaling.request_concurrency"]
    yield (
        "startup probe",
        (f"GET {probe.path} after {probe.initial_delay_seconds} s, every {probe.period_seconds} s, at most {window} s"),
        _either(origin, "probe.initial_delay_seconds", "probe.period_seconds", "probe.failure_threshold"),
    )
    yield (
        "invokers",
        "everyone" if service.public else ", ".join(service.invokers) or "project members with the role",
        (_either(origin, "access.public", "access.invokers")),
    )
    for name, value in service.environment.items():
        yield f"env {name}", value, DEFAULT
    for name, secret in service.secrets.items():
        yield f"env {name}", f"secret {secret}", origin["secrets"]


def _arguments(plan: Plan) -> Iterable[Row]:
    yield plan.service.arguments[0], "", COMPUTED
    for word in plan.service.arguments[1:]:
        flag, _, value = word.partition("=")
        name = flag.removeprefix("--")
        known = plan.origins.get(f"vllm.{name}") or plan.origins.get(f"vllm.{name.removeprefix('no-')}") or ""
        yield flag, value, known


def _computed(output: Mapping[str, object]) -> Iterable[Row]:
    for name, value in output.items():
        yield name.replace("_", " "), _plain(value), COMPUTED


def _cost(plan: Plan) -> Iterable[Row]:
    for line in plan.cost.lines:
        hourly = "unknown" if line.hourly_usd is None else f"{line.hourly_usd:.5f} USD/h"
        source = getattr(line.price, "source", "missing row")
        yield f"{line.quantity} x {line.item}", hourly, f"{source}, {getattr(line.price, 'as_of', 'no date')}"
    output = plan.cost.as_output()
    yield "one instance running", f"{_usd(output['usd_per_hour'])}/h", COMPUTED
    yield "always on (730 h)", f"{_usd(output['usd_per_month_always_on'])}/month", COMPUTED
    yield "without traffic", f"{_usd(output['usd_per_month_without_traffic'])}/month", COMPUTED
    limit = plan.settings.cost.max_hourly_usd
    yield "may spend", "no limit set" if limit is None else f"{limit:g} USD/h", plan.origins["cost.max_hourly_usd"]
    yield "not included", ", ".join(str(part) for part in _list(output["not_included"])), DEFAULT


def _usd(value: object) -> str:
    return f"{value} USD" if isinstance(value, float) else str(value)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _plain(value: object) -> object:
    return " to ".join(str(part) for part in value) if isinstance(value, list) else value


def _either(origin: Mapping[str, str], *paths: str) -> str:
    found = [origin[path] for path in paths]
    return found[0] if len(set(found)) == 1 else " and ".join(dict.fromkeys(found))


def _section(title: str, rows: Iterable[Row]) -> str:
    table = [(str(name), str(value), note) for name, value, note in rows]
    first = max(len(name) for name, _, _ in table)
    second = min(60, max(len(value) for _, value, _ in table))
    lines = [f"  {name:<{first}}  {value:<{second}}  ({note})" for name, value, note in table]
    return "\n".join([title, *lines])
