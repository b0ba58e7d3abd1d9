"""Comparison of a server's memory with the plan's fit, figure by figure, and where the plan was wrong. Pure.

A figure that is unknown on one side is compared with nothing. The plan is wrong where it differs by more than
TOLERANCE, a decision of this project: logs have two decimals, and the plan takes the datasheet's memory. A setting that
differs is no mistake of the plan: another one is running.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from bezel.operations.memory.reported import GIB, Reported, ReportedFigure
from bezel.operations.results import Result

TOLERANCE = 0.05
"""Largest deviation of a figure of the plan from the server's, as a share of the planned one."""

_LEAST_GIB = 1.0  # below it the second decimal of a log is more than 1 %
_LEAST_GIB_SHOWN = 0.01

Name = Literal[
    "total",
    "cap",
    "weights",
    "used_before_cache",
    "kv_cache",
    "kv_tokens",
    "concurrency",
    "full_context_sequences",
    "kv_token",
    "max_model_len",
    "gpu_memory_utilization",
]
_TITLES: Mapping[Name, tuple[str, str]] = {
    "total": ("total", "GiB"),
    "cap": ("cap of the server", "GiB"),
    "weights": ("weights", "GiB"),
    "used_before_cache": ("used before the KV cache", "GiB"),
    "kv_cache": ("KV cache", "GiB"),
    "kv_tokens": ("KV cache", "tokens"),
    "concurrency": ("maximum concurrency, as vLLM counts it", "sequences"),
    "full_context_sequences": ("sequences at full context", "sequences"),
    "kv_token": ("KV cache of a token", "bytes"),
    "max_model_len": ("longest sequence", "tokens"),
    "gpu_memory_utilization": ("gpu-memory-utilization", "share"),
}
_OF_CACHE = frozenset({"used_before_cache", "kv_cache", "kv_token", "kv_tokens", "concurrency"})
"""Figures that only a server with a KV cache has: vLLM measures no memory where the model is an encoder."""
_SETTINGS = frozenset({"max_model_len", "gpu_memory_utilization"})
_BOUNDS = frozenset({"full_context_sequences"})
"""Figures of which the server reports a bound only: nothing follows where it differs from the plan."""
_CONSEQUENCES: Mapping[str, tuple[str, str]] = {
    # Larger than planned, smaller than planned.
    "total": ("more is left for the KV cache", "less is left for the KV cache"),
    "cap": ("more is left for the KV cache", "less is left for the KV cache"),
    "weights": ("less is left for the KV cache", "more is left for the KV cache"),
    "used_before_cache": ("less is left for the KV cache", "more is left for the KV cache"),
    "kv_cache": ("more sequences fit", "fewer sequences fit"),
    "kv_tokens": ("more sequences fit", "fewer sequences fit"),
    "concurrency": ("more sequences fit", "requests wait earlier"),
    "kv_token": ("fewer sequences fit", "more sequences fit"),
}
NOTHING: frozenset[Name] = frozenset()
EVERYTHING: frozenset[Name] = frozenset(_TITLES)
OF_THE_MACHINE: frozenset[Name] = EVERYTHING - {"weights", "kv_token", "max_model_len"}
"""Figures that another machine changes; the others are those of the model and of its options."""


class MemoryFigure(Result):
    """A figure of a server's memory: measured, and planned. Unknown is null, with the reason as its origin."""

    name: Name = Field(description="name of the figure")
    title: str = Field(description="name for people")
    unit: str = Field(
        description="GiB, tokens, sequences, bytes or share; GiB of one GPU, or of all chips of a TPU slice"
    )
    measured: float | None = Field(description="as the server reports it")
    measured_origin: str = Field(description="where that comes from, or why it is unknown")
    planned: float | None = Field(description="as the plan has it")
    planned_origin: str = Field(description="where that comes from, or why it is unknown")
    deviation: float | None = Field(description="measured / planned - 1; null where one of them is unknown")
    is_plan_wrong: bool | None = Field(description="whether the plan is off by more than 5%; null where unknown")


def another_model(reported: Reported, planned_model: str) -> str:
    """Why the plan says nothing about this server, "" where it may: it runs another model than the planned one.

    Args:
        reported: What the server reports.
        planned_model: vLLM's model argument in the plan; "" is unknown, and nothing is said then.
    """
    if not reported.model or not planned_model or reported.model == planned_model:
        return ""
    return f"the server runs {reported.model}, and the plan is of {planned_model}"


def figures_of(
    reported: Reported, fit: Mapping[str, Any], origin: str, unread: str, *, not_judged: frozenset[Name] = NOTHING
) -> tuple[MemoryFigure, ...]:
    """Every figure, in the order in which memory is taken.

    Args:
        reported: What the server reports.
        fit: `as_output()` of the plan's fit; {} without a plan.
        origin: Where the plan is from, or why there is none.
        unread: Why a figure of the server is unknown.
        not_judged: Names of the figures that are not compared.
    """
    measured = {
        "total": reported.total,
        "cap": reported.cap,
        "weights": reported.weights,
        "used_before_cache": reported.used,
        "kv_cache": reported.cache,
        "kv_tokens": reported.tokens,
        "concurrency": reported.concurrency,
        "full_context_sequences": sequences(reported),
        "kv_token": token_bytes(reported),
        "max_model_len": reported.length,
        "gpu_memory_utilization": reported.utilization,
    }
    values = planned_figures(fit)
    names = [name for name in _TITLES if "unused_gib" not in fit or name not in _OF_CACHE]
    missing = f"not a figure of the {origin}" if fit else origin
    return tuple(
        _figure(
            name,
            measured[name],
            values.get(name),
            origin if name in values else missing,
            unread,
            is_judged=name not in not_judged,
        )
        for name in names
    )


def planned_figures(fit: Mapping[str, Any]) -> dict[str, float]:
    """The plan's figures by their names here; a fit of a GPU counts its cache as vLLM reports it at its start."""
    total, budget = _of(fit, "accelerator_gib", "total_gib", "slice_gib"), _of(fit, "budget_gib")
    weights, overhead = _sum(fit, "weights_gib", "draft_gib", "adapters_gib"), _of(fit, "overhead_gib")
    length, concurrency = _of(fit, "max_model_len"), _of(fit, "vllm_reported_concurrency")
    tokens = _of(fit, "kv_tokens")
    if tokens is not None and length:
        concurrency = tokens / length
    elif concurrency is not None and length:
        tokens = float(int(concurrency * length))
    cache = _of(fit, "kv_cache_gib")
    figures = {
        "total": total,
        "cap": budget,
        "weights": weights,
        "used_before_cache": None if weights is None or overhead is None else weights + overhead,
        "kv_cache": cache,
        "kv_tokens": tokens,
        "concurrency": concurrency,
        "full_context_sequences": _of(fit, "full_context_sequences"),
        "kv_token": cache * GIB / tokens if cache and tokens else None,
        "max_model_len": length,
        "gpu_memory_utilization": round(budget / total, 2) if budget is not None and total else None,
    }
    return {name: value for name, value in figures.items() if value is not None}


def sequences(reported: Reported) -> ReportedFigure | None:
    """Sequences of full length that the server's cache holds at a time, at least.

    It is the whole part of vLLM's concurrency, which counts every sequence as if it were just being admitted. A closer
    count would need the plan's size of a sequence, and would be no measurement.
    """
    if reported.concurrency is None:
        return None
    return ReportedFigure(float(int(reported.concurrency.value)), f"at least, {reported.concurrency.origin}")


def token_bytes(reported: Reported) -> ReportedFigure | None:
    """Bytes of the KV cache for each token that the server counts in it; None where a log's two decimals are too few.

    Both are the server's own figures, and their quotient does not depend on how much memory it has.
    """
    cache, tokens = reported.cache, reported.tokens
    if (
        cache is None
        or tokens is None
        or not tokens.value
        or (cache.value < _LEAST_GIB and not reported.is_cache_exact)
    ):
        return None
    return ReportedFigure(cache.value * GIB / tokens.value, f"its KV cache by its tokens: {cache.origin}")


def findings_of(figures: tuple[MemoryFigure, ...]) -> tuple[str, ...]:
    """Sentences on where the plan was wrong, in the order in which memory is taken; () where it was right."""
    sentences = []
    for each in figures:
        if not each.is_plan_wrong or each.measured is None or each.planned is None or each.deviation is None:
            continue
        shown = f"{each.title}: planned {number(each.planned, each.unit)}, measured {number(each.measured, each.unit)}"
        if each.name in _SETTINGS:
            sentences.append(
                f"{shown}: the server runs with another setting than the plan; deploy the stack, then compare"
            )
        else:
            more, less = _CONSEQUENCES[each.name]
            sentences.append(f"{shown} ({each.deviation:+.0%}): {more if each.deviation > 0 else less}")
    return tuple(sentences)


def number(value: float, unit: str) -> str:
    """A figure with its unit, for people."""
    if unit == "GiB":
        return f"{value * 1024:.2f} MiB" if 0 < value < _LEAST_GIB_SHOWN else f"{value:.2f} GiB"
    return f"{value:,.0f} {unit}" if value == int(value) else f"{value:,.2f} {unit}"


def _figure(
    name: Name, measured: ReportedFigure | None, planned: float | None, origin: str, unread: str, *, is_judged: bool
) -> MemoryFigure:
    title, unit = _TITLES[name]
    deviation = None if measured is None or not planned else measured.value / planned - 1
    if not is_judged or name in _BOUNDS:
        deviation = None
    allowed = 0.0 if name in _SETTINGS else TOLERANCE
    return MemoryFigure(
        name=name,
        title=title,
        unit=unit,
        measured=None if measured is None else round(measured.value, 6),
        measured_origin=unread if measured is None else measured.origin,
        planned=None if planned is None else round(planned, 6),
        planned_origin=origin,
        deviation=None if deviation is None else round(deviation, 4),
        is_plan_wrong=None if deviation is None else abs(round(deviation, 4)) > allowed,
    )


def _of(fit: Mapping[str, Any], *names: str) -> float | None:
    value = next((fit[name] for name in names if name in fit), None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _sum(fit: Mapping[str, Any], first: str, *others: str) -> float | None:
    base = _of(fit, first)
    return None if base is None else base + sum(_of(fit, name) or 0.0 for name in others)
