"""Figures of a vLLM server from one sample of its metrics, or from two: values, units, and a judgement of each. Pure.

A mean since the server's start says little about the present minute: with two samples of one process, means and rates
are of the time between them. A figure that a server does not report, or that had no event, is null, never 0.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.sample import Sample

_BEAMS = 0.05
"""Share of steps of beam searches up to which a mean over the engine's requests is one over those of callers: a
decision of this project, below which a mean is off by a twentieth at most."""

Basis = Literal["now", "since the start", "in the interval", "highest in the interval"]
INSTANCE = "instance now"
"""Source of a figure: the server itself, as it answers."""

# Requests that ended without the server's fault: of the reasons of vLLM, and of the classes of HTTP.
_FAILED_REASONS = frozenset({"abort", "error"})
_REASONS = {
    (names.FINISHED, "stop"): "the model ended its answer",
    (names.FINISHED, "length"): "the answer reached max_tokens, or vllm.max-model-len",
    (names.FINISHED, "repetition"): "the answer repeated itself and was ended",
    (names.FINISHED, "abort"): "the client went away (vLLM 0.32.0 counts none of these)",
    (names.FINISHED, "error"): "the engine failed: see the log",
    (names.REJECTED, "max_num_queued_reqs"): "refused with 503: the queue was full (vllm.max-num-queued-reqs)",
    (names.REJECTED, "max_num_queued_tokens"): "refused with 503: the queue was full (vllm.max-num-queued-tokens)",
    (names.HTTP, "2xx"): "answered",
    (names.HTTP, "4xx"): "refused as the client's mistake: a prompt that is too long, an unknown model, a wrong field",
    (names.HTTP, "5xx"): "failed by the server: see the log",
}
_COUNTED_BY = {names.FINISHED: "engine", names.REJECTED: "queue", names.HTTP: "http"}


class Figure(BaseModel):
    """One figure of a server."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="name of the figure")
    title: str = Field(description="name for people")
    value: float | None = Field(description="its value in `unit`; null where the server does not report it")
    unit: str = Field(description="unit of the value; a share is from 0 to 1")
    basis: Basis = Field(description="the time that it is about")
    source: str = Field(INSTANCE, description="what it was read from: the instance now, or series until a time")
    meaning: str = Field(description="what it counts")
    unhealthy_when: str = Field(description="what value is unhealthy, and what that does")
    is_unhealthy: bool | None = Field(description="whether the value is unhealthy; null where no limit can tell")
    repair: str = Field(description="what to do where it is unhealthy")


class RequestOutcome(BaseModel):
    """Requests that ended in one way."""

    model_config = ConfigDict(frozen=True)

    counted_by: Literal["engine", "queue", "http"] = Field(description="part of the server that counted them")
    outcome: str = Field(description="the finish reason, the reason of the refusal, or the class of the HTTP status")
    requests: int = Field(description="number of requests")
    is_failure: bool = Field(description="whether the server failed these requests")
    meaning: str = Field(description="what the outcome says")


def figures_of(
    last: Sample,
    first: Sample | None = None,
    *,
    generates: bool = True,
    keeps_cache: bool = True,
    source: str = INSTANCE,
) -> tuple[Figure, ...]:
    """Every figure of a sample; means and rates are of the time since `first`, an earlier one of the same process.

    Args:
        last: The sample.
        first: The earlier one; None without.
        generates: Whether the model generates; of one that pools there are no figures of generated tokens.
        keeps_cache: Whether the server has a KV cache; that of an encoder has none, and no figure of it.
        source: What the samples were read from. Of series, gauges are their highest values.
    """
    values = _values(last, first)
    basis: Basis = "in the interval" if first else "since the start"
    of_gauges: Basis = "now" if source == INSTANCE else "highest in the interval"
    without = {*(() if generates else ("generated tokens",)), *(() if keeps_cache else ("KV cache",))}
    return tuple(
        _figure(
            name,
            row if generates else {**row, **row.get("pooled", {})},
            values.get(name),
            of_gauges if name in _GAUGES else basis,
            source,
        )
        for name, row in _rows().items()
        if row.get("of") not in without
    )


def outcomes_of(last: Sample, first: Sample | None = None) -> tuple[RequestOutcome, ...]:
    """Requests by their outcome, since `first` or since the server's start."""
    return tuple(
        RequestOutcome(
            counted_by=_COUNTED_BY[metric],
            outcome=outcome,
            requests=int(count - (first.outcomes.get((metric, outcome), 0.0) if first else 0.0)),
            is_failure=_is_failure(metric, outcome),
            meaning=_REASONS.get((metric, outcome), "not known to this version of bezel"),
        )
        for (metric, outcome), count in sorted(last.outcomes.items())
    )


def notes_of(last: Sample, first: Sample | None = None) -> tuple[str, ...]:
    """What limits the figures of these samples: () where they are of callers' requests."""
    share = beam_share(last, first)
    if share <= _BEAMS:
        return ()
    what = f"up to {share:.0%} of the engine's requests are steps of a beam search, each with a first token of its own"
    return (f"{what}: TTFT and queue time are not judged",)


def figure_text(figure: Figure) -> str:
    """The value of a figure with its unit, for people."""
    if figure.value is None:
        return "unknown"
    if figure.unit == "share":
        return f"{figure.value:.1%}"
    if figure.unit == "seconds":
        return f"{figure.value * 1000:.1f} ms" if figure.value < 1 else f"{figure.value:.2f} s"
    number = f"{figure.value:.0f}" if figure.value == int(figure.value) else f"{figure.value:.2f}"
    return f"{number} {figure.unit}"


_GAUGES = frozenset({"running", "waiting", "kv_cache_usage"})


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("explained.toml").read_text(encoding="utf-8"))


def _figure(name: str, row: Mapping[str, Any], value: float | None, basis: Basis, source: str) -> Figure:
    # The highest value of hours may be that of a moment, which proves nothing.
    is_highest = basis == "highest in the interval"
    return Figure(
        name=name,
        title=row["title"],
        value=value,
        unit=row["unit"],
        basis=basis,
        source=source,
        meaning=f"highest of one server: {row['meaning']}" if is_highest else row["meaning"],
        unhealthy_when=row["unhealthy_when"],
        is_unhealthy=None if is_highest or _is_old_news(name, value, basis) else _is_unhealthy(row, value),
        repair=row["repair"],
    )


def _is_old_news(name: str, value: float | None, basis: Basis) -> bool:
    """Whether a count since the start may be of last week: only its growth can be judged."""
    return name == "preemptions" and basis == "since the start" and bool(value)


def _is_unhealthy(row: Mapping[str, Any], value: float | None) -> bool | None:
    if value is None or not row.keys() & {"above", "below"}:
        return None
    return bool(value > row["above"]) if "above" in row else bool(value < row["below"])


def _values(last: Sample, first: Sample | None) -> dict[str, float | None]:
    gained = {name: _gain(name, last, first) for name in _counter_names()}
    seconds = last.read_at - first.read_at if first else 0.0
    well, failed = ended_requests(last, first)
    beams = beam_share(last, first)
    drafts = gained[names.DRAFTS]
    return {
        "running": last.get(names.RUNNING),
        # One sample in which a request waits is no queue: it may enter the next step's batch.
        "waiting": _waiting(last, first),
        "kv_cache_usage": last.kv_usage,
        "ttft": None if beams > _BEAMS else _mean(gained, names.TTFT),
        "itl": _mean(gained, names.ITL),
        "tpot": _tpot(gained),
        "queue_time": None if beams > _BEAMS else _mean(gained, names.QUEUE),
        "prefix_cache_hit_rate": _ratio(gained[names.CACHE_HITS], gained[names.CACHE_QUERIES]),
        "acceptance_rate": _ratio(gained[names.ACCEPTED], gained[names.DRAFT_TOKENS]),
        "acceptance_length": None if not drafts else 1 + (gained[names.ACCEPTED] or 0.0) / drafts,
        "preemptions": gained[names.PREEMPTIONS],
        "success_rate": _ratio(well, well + failed),
        "prompt_throughput": _ratio(gained[names.PROMPT], seconds),
        "generation_throughput": _ratio(gained[names.GENERATED], seconds),
        "requests_rate": _ratio(well + failed, seconds),
    }


def _waiting(last: Sample, first: Sample | None) -> float | None:
    after = last.get(names.WAITING)
    before = after if first is None else first.get(names.WAITING)
    return None if after is None or before is None else min(after, before)


def _counter_names() -> tuple[str, ...]:
    others = (names.ENGINE_REQUESTS, names.ONE_TOKEN, names.ONE_TOKEN_ASKED)
    return (*names.COUNTERS, *others, *(f"{name}_{part}" for name in names.HISTOGRAMS for part in ("sum", "count")))


def _gain(name: str, last: Sample, first: Sample | None) -> float | None:
    after, before = last.get(name), first.get(name) if first else 0.0
    return None if after is None or before is None else after - before


def beam_share(last: Sample, first: Sample | None = None) -> float:
    """The largest share of the engine's requests that may be steps of a beam search, 0 to 1.

    vLLM 0.32 runs each beam of each step as a request of one token (entrypoints/generate/beam_search/online.py): with
    its own time to the first token and its own time in the queue, both near 0. They are the requests of at most one
    token that no call over HTTP accounts for; a list of prompts with answers of one token looks the same.
    """
    calls = _calls(last, first)
    engine, one = (_gain(name, last, first) for name in (names.ENGINE_REQUESTS, names.ONE_TOKEN_ASKED))
    if calls is None or not engine or one is None:
        return 0.0
    return max(0.0, min(one, engine - calls[0])) / engine


def _tpot(gained: Mapping[str, float | None]) -> float | None:
    """The mean TPOT of the sequences that had further tokens: vLLM 0.32 observes 0 for each one of a single token."""
    count, single = gained[f"{names.TPOT}_count"], gained[names.ONE_TOKEN]
    return None if count is None or single is None else _ratio(gained[f"{names.TPOT}_sum"], count - single)


def ended_requests(last: Sample, first: Sample | None = None) -> tuple[float, float]:
    """Requests that ended well, and those that the server failed: by its engine, its queue, or with a 5xx.

    Counted as calls over HTTP where the server reports these: of the engine's requests, n > 1 answers are several, and
    a beam search is one for each of its tokens. A call whose client went away is one that ended well.
    """
    gained = {key: count - (first.outcomes.get(key, 0.0) if first else 0.0) for key, count in last.outcomes.items()}
    failed = sum(count for (metric, outcome), count in gained.items() if _is_failure_of_engine(metric, outcome))
    calls = _calls(last, first)
    if calls is None:
        well = sum(count for (metric, _), count in gained.items() if metric == names.FINISHED)
        return well - sum(gained.get((names.FINISHED, reason), 0.0) for reason in _FAILED_REASONS), failed
    # A request that the engine or the queue failed is a 5xx too, where it was no stream: counted once.
    answered, errors = calls
    streams = min(answered, max(0.0, failed - errors))
    return answered - streams, errors + streams


def _calls(last: Sample, first: Sample | None) -> tuple[float, float] | None:
    """Calls of the model over HTTP that were answered, and that the server failed; None where it counts none."""
    calls = {outcome: count for (metric, outcome), count in last.outcomes.items() if metric == names.HTTP}
    if not calls:
        return None
    if first:
        calls = {outcome: count - first.outcomes.get((names.HTTP, outcome), 0.0) for outcome, count in calls.items()}
    return calls.get("2xx", 0.0), sum(count for outcome, count in calls.items() if outcome.startswith("5"))


def _is_failure_of_engine(metric: str, outcome: str) -> bool:
    return metric != names.HTTP and _is_failure(metric, outcome)


def _is_failure(metric: str, outcome: str) -> bool:
    if metric == names.FINISHED:
        return outcome in _FAILED_REASONS
    return metric == names.REJECTED or outcome.startswith("5")


def _mean(gained: Mapping[str, float | None], histogram: str) -> float | None:
    return _ratio(gained[f"{histogram}_sum"], gained[f"{histogram}_count"])


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole or whole <= 0 else part / whole
