"""A plan as text to read: each value, and where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.catalog import Price, accelerator
from bezel.planner.cost import HOURS_PER_MONTH, NOT_INCLUDED
from bezel.planner.loading import LOADINGS
from bezel.planner.memory import CUDA_PART_BYTES, CUDA_SOURCE, GIB
from bezel.planner.money import Unpriced, text
from bezel.planner.origins import COMPUTED, DEFAULT
from bezel.planner.start import estimate_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.planner.money import Amount
    from bezel.planner.plan import Plan

Row = tuple[str, object, str]
CATALOGUE = "catalogue"


def plan_summary(plan: Plan) -> str:
    """The plan as lines of `name  value  (origin)`, in sections."""
    sections = [
        ("Stack", _stack(plan)),
        ("vLLM arguments", _arguments(plan)),
        ("Memory", _memory(plan)),
        ("Estimated speed of one instance", _speed(plan)),
        ("Cost", _cost(plan)),
    ]
    return "\n\n".join(_section(title, list(rows)) for title, rows in sections)


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
    invited = service.region in accelerator(service.accelerator).regions_on_invitation
    yield "region", service.region + (" (on invitation)" if invited else ""), origin["region"]
    yield "accelerator", f"{service.accelerator_count} x {service.accelerator}", origin["accelerator"]
    yield "cpu", service.cpu, origin["resources.cpu"]
    yield "memory", f"{service.memory_gib}Gi", origin["resources.memory"]
    source = f"gs://{weights.bucket}/{weights.path}" if weights.bucket else f"hf:{weights.source}"
    yield "weights", source, _either(origin, "weights.bucket", "weights.path")
    yield "loaded by", weights.loading, origin["weights.loading"]
    mount = f"gs://{weights.bucket} at {weights.mount_path}, read-only" if weights.mount_path else "nothing"
    yield "mounted", mount, COMPUTED
    yield (
        "instances",
        f"{service.min_instances} to {service.max_instances}",
        _either(origin, "scaling.min_instances", "scaling.max_instances"),
    )
    yield "requests at a time", service.request_concurrency, origin["scaling.request_concurrency"]
    yield "rollout", plan.settings.rollout, origin["rollout"]
    yield (
        "startup probe",
        f"GET {probe.path} after {probe.initial_delay_seconds} s, every {probe.period_seconds} s, at most {window} s",
        _either(origin, "probe.initial_delay_seconds", "probe.period_seconds", "probe.failure_threshold"),
    )
    yield (
        "invokers",
        "everyone" if service.public else ", ".join(service.invokers) or "project members with the role",
        _either(origin, "access.public", "access.invokers"),
    )
    for name, value in service.environment.items():
        yield f"env {name}", value, DEFAULT
    for name, secret in service.secrets.items():
        yield f"env {name}", f"secret {secret}", origin["secrets"]


def _arguments(plan: Plan) -> Iterable[Row]:
    model, *words = plan.service.arguments
    yield "model", model, COMPUTED
    rows: list[tuple[str, str]] = []
    for word in words:
        flag, _, value = word.partition("=")
        if flag.startswith("--"):
            rows.append((flag, value))
        else:  # a further value of the flag before it
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {word}".strip())
    for flag, value in rows:
        yield flag, value, _origin_of(flag, plan.origins)


def _origin_of(flag: str, origin: Mapping[str, str]) -> str:
    name = flag.removeprefix("--")
    spellings = (name, name.removeprefix("no-"), name.replace("disable-", "enable-", 1))
    return next((origin[f"vllm.{one}"] for one in spellings if f"vllm.{one}" in origin), COMPUTED)


def _memory(plan: Plan) -> Iterable[Row]:
    fit = plan.fit
    yield plan.service.accelerator, _gib(fit.accelerator_bytes), "datasheet, decimal GB"
    yield "for vLLM", _gib(fit.budget_bytes), f"{fit.utilization:g} of it"
    yield "weights", _gib(fit.weight_bytes - fit.offloaded_bytes), CATALOGUE
    if fit.draft_bytes:
        yield "draft model", _gib(fit.draft_bytes), CATALOGUE
    if fit.offloaded_bytes:
        yield "offloaded weights", _gib(fit.offloaded_bytes), "in the host's memory, read from there in each step"
    yield "working memory", _gib(fit.activation_bytes), "of one step, by arithmetic; estimated, not measured"
    yield "context, kernels, graphs", _gib(fit.fixed_bytes), f"{CUDA_PART_BYTES / GIB:g} GiB each, {CUDA_SOURCE}"
    yield "KV cache", _gib(fit.kv_available_bytes), "what is left"
    yield f"one sequence of {fit.max_model_len}", _gib(fit.kv_sequence_bytes), COMPUTED
    yield "such sequences at a time", fit.full_context_sequences, f"vLLM will log {fit.reported_concurrency:.2f}x"
    yield "host while loading", _gib(fit.host_needed_bytes), f"of {_gib(fit.host_bytes)}, estimated"


def _speed(plan: Plan) -> Iterable[Row]:
    found = plan.estimate
    yield "cold start", _range(plan.start.seconds, "s", 0), plan.start.basis
    others = [loading for loading in LOADINGS.values() if loading.id != plan.service.weights.loading]
    starts = [f"{loading.id} {_range(estimate_start(plan.fit, loading).seconds, 's', 0)}" for loading in others]
    yield "otherwise loaded", "; ".join(starts), "weights.loading, estimated"
    yield "first token", _range(found.ttft_seconds, "s", 2), f"prompt of {found.prompt_tokens} tokens"
    yield "output alone", _range(found.tokens_per_second_alone, "tokens/s", 0), "one user"
    yield "output together", _range(found.tokens_per_second_batched, "tokens/s", 0), f"{found.batch} users"
    yield (
        "with their prompts",
        _range(found.tokens_per_second_served, "tokens/s", 0),
        f"answers of {found.output_tokens}",
    )
    if plan.gain:
        yield "drafts, alone", _range(plan.gain.alone, "times as fast", 1), plan.gain.basis
        yield "drafts, together", _range(plan.gain.batched, "times as fast", 1), f"{found.batch} users"
    yield "basis", None, str(found.as_output()["basis"])


def _cost(plan: Plan) -> Iterable[Row]:
    for line in plan.cost.lines:
        note = f"{line.price.as_of}, {line.price.source}" if isinstance(line.price, Price) else str(line.price)
        kind = "" if line.kind in note else f"{line.kind}, "
        yield f"{line.quantity} x {line.item}", _usd(line.hourly, "h", 5), kind + note
    yield "one instance running", _usd(plan.cost.hourly, "h", 4), COMPUTED
    yield "always on", _usd(plan.cost.monthly_always_on, "month", 2), f"{HOURS_PER_MONTH} h"
    yield "without traffic", _usd(plan.cost.monthly_without_traffic, "month", 2), _instances(plan.cost.min_instances)
    yield "at most", _usd(plan.cost.hourly_at_max, "h", 4), _instances(plan.cost.max_instances)
    low, high = (plan.cost.cold_start(seconds) for seconds in plan.start.seconds)
    yield "one start", _usd_range((low, high), 4), "paid from its beginning"
    tokens = plan.token_cost
    yield "a million tokens in", _usd_range(tokens.input, 2), tokens.basis
    yield "a million tokens out", _usd_range(tokens.output, 2), f"{tokens.utilisation:.0%} utilisation"
    for name, key in (("may spend", "max_hourly_usd"), ("may spend idle", "max_idle_hourly_usd")):
        limit = getattr(plan.settings.cost, key)
        if limit is None and key == "max_idle_hourly_usd" and plan.environment == "dev":
            limit = 0
        yield name, "no limit set" if limit is None else f"{limit:g} USD/h", plan.origins[f"cost.{key}"]
    yield "not included", None, ", ".join(NOT_INCLUDED)


def _usd(amount: Amount, per: str, digits: int) -> str:
    return text(amount, digits) if isinstance(amount, Unpriced) else f"{text(amount, digits)} USD/{per}"


def _usd_range(ends: tuple[Amount, Amount], digits: int) -> str:
    return " to ".join(text(end, digits) for end in ends) + " USD"


def _instances(number: int) -> str:
    return "1 instance" if number == 1 else f"{number} instances"


def _gib(number: int) -> str:
    return f"{number / GIB:.2f} GiB"


def _range(values: tuple[float, float], unit: str, digits: int) -> str:
    return f"{values[0]:.{digits}f} to {values[1]:.{digits}f} {unit}"


def _either(origin: Mapping[str, str], *paths: str) -> str:
    found = [origin[path] for path in paths]
    return found[0] if len(set(found)) == 1 else " and ".join(dict.fromkeys(found))


def _section(title: str, rows: Sequence[Row]) -> str:
    """Columns of name, value and note; a row whose value is None has its note in place of both."""
    table = [(str(name), "" if value is None else str(value), note, value is None) for name, value, note in rows]
    first = max(len(name) for name, _, _, _ in table)
    second = max(len(value) for _, value, _, _ in table)
    lines = [
        f"  {name:<{first}}  {note}" if alone else f"  {name:<{first}}  {value:<{second}}  ({note})"
        for name, value, note, alone in table
    ]
    return "\n".join([title, *lines])
