"""Formats of other load clients: how a load is written in each, and where it holds the core figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from bench_support.writers import llm_d, reports, serving
from bench_support.writers.requests import Load, closed_load, open_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Document = Any
FIGURES = ("rate", "duration", "tokens", "tpot", "e2e")
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BR = "results.request_performance.aggregate"


@dataclass(frozen=True)
class Format:
    """One format: its writer, its name in the audit, and the paths of its core figures (a path may be of a metric)."""

    write: Callable[[Load], Document]
    name: str
    places: dict[str, tuple[str, ...]]
    yaml: bool = False
    closed_only: bool = False

    def text(self, document: Document) -> str:
        """The file's contents."""
        return yaml.dump(document, Dumper=_Dumper, sort_keys=False) if self.yaml else json.dumps(document)

    def joined_text(self, first: str, second: str) -> str:
        """The file's contents of two documents in one, from the contents of each; neither is empty."""
        return first + second if self.yaml else f"{first[:-1]}, {second[1:]}"


_SERVING = {
    "rate": ("request_throughput", "output_throughput"),
    "duration": ("duration",),
    "tokens": ("total_output_tokens", "total_input_tokens"),
    "tpot": ("mean_tpot_ms",),
}
_NVIDIA = {
    "rate": ("request_throughput", "output_token_throughput"),
    "tokens": ("output_sequence_length",),
    "tpot": ("inter_token_latency",),
    "e2e": ("request_latency",),
}
_INFERENCE_PERF = {
    "rate": ("successes.throughput.requests_per_sec", "successes.throughput.output_tokens_per_sec",
             "load_summary.achieved_rate"),
    "duration": ("benchmark_time_seconds", "load_summary.send_duration"),
    "tokens": ("successes.output_len", "successes.prompt_tokens"),
    "tpot": ("successes.latency.time_per_output_token", "successes.latency.normalized_time_per_output_token"),
    "e2e": ("successes.latency.request_latency",),
}  # fmt: skip
FORMATS: dict[str, Format] = {
    "vllm": Format(serving.vllm, "vllm bench serve", {**_SERVING, "e2e": ("mean_e2el_ms",)}),
    "vllm detailed": Format(
        lambda load: serving.vllm(load, detailed=True, e2el=False),
        "vllm bench serve",
        {**_SERVING, "e2e": ("latencies",)},
    ),
    "sglang": Format(serving.sglang, "sglang bench_serving", {**_SERVING, "e2e": ("mean_e2e_latency_ms",)}),
    "sglang detailed": Format(
        lambda load: serving.sglang(load, detailed=True),
        "sglang bench_serving",
        {**_SERVING, "e2e": ("mean_e2e_latency_ms",)},
    ),
    "guidellm": Format(
        reports.guidellm,
        "guidellm",
        {
            "rate": ("benchmarks.0.metrics.requests_per_second", "benchmarks.0.metrics.output_tokens_per_second"),
            "duration": ("benchmarks.0.duration",),
            "tokens": ("benchmarks.0.metrics.output_token_count", "benchmarks.0.metrics.prompt_token_count"),
            "tpot": ("benchmarks.0.metrics.inter_token_latency_ms", "benchmarks.0.metrics.time_per_output_token_ms"),
            "e2e": ("benchmarks.0.metrics.request_latency",),
        },
    ),
    "aiperf": Format(reports.aiperf, "aiperf", {**_NVIDIA, "duration": ("benchmark_duration",)}),
    "genai-perf": Format(reports.genai_perf, "genai-perf", dict(_NVIDIA)),
    "inference-perf": Format(reports.inference_perf, "inference-perf", dict(_INFERENCE_PERF)),
    "inference-perf yaml": Format(reports.inference_perf, "inference-perf", dict(_INFERENCE_PERF), yaml=True),
    "llmperf": Format(
        reports.llmperf,
        "llmperf",
        {
            "rate": ("results_num_completed_requests_per_min", "results_mean_output_throughput_token_per_s"),
            "tokens": ("results_number_output_tokens_mean",),
            "tpot": ("results_inter_token_latency_s_mean",),
            "e2e": ("results_end_to_end_latency_s_mean",),
        },
        closed_only=True,
    ),
    "llm-d 0.2": Format(
        llm_d.report_0_2,
        "llm-d benchmark report 0.2",
        {
            "rate": (f"{_BR}.throughput.request_rate", f"{_BR}.throughput.output_token_rate"),
            "tokens": (f"{_BR}.requests.output_length",),
            "tpot": (f"{_BR}.latency.time_per_output_token",),
            "e2e": (f"{_BR}.latency.request_latency",),
        },
        yaml=True,
    ),
    "llm-d 0.1": Format(
        llm_d.report_0_1,
        "llm-d benchmark report 0.1",
        {
            "rate": ("metrics.throughput.requests_per_sec", "metrics.throughput.output_tokens_per_sec"),
            "duration": ("metrics.time.duration",),
            "tokens": ("metrics.requests.output_length",),
            "tpot": ("metrics.latency.time_per_output_token",),
            "e2e": ("metrics.latency.request_latency",),
        },
        yaml=True,
    ),
}


def loads(seed: int, kind: Format) -> Iterator[tuple[str, Load]]:
    """Loads of every pattern and of fixed and varied lengths."""
    for varied in (False, True):
        yield f"closed, {'varied' if varied else 'fixed'}", closed_load(seed, varied=varied)
        if not kind.closed_only:
            yield f"open, {'varied' if varied else 'fixed'}", open_load(seed, varied=varied)


def scale_figure(document: Document, path: str, factor: float, *, whole: bool) -> Document:
    """A document with one figure multiplied: of a metric its mean, or all its statistics."""
    return with_change(document, steps_of(path), lambda figure: _times(figure, factor, whole=whole))


def steps_of(path: str) -> tuple[str | int, ...]:
    """The names and the places in lists of a dotted path."""
    return tuple(int(step) if step.isdigit() else step for step in path.split("."))


def with_change(document: Document, path: Sequence[Any], change: Callable[[Any], Any]) -> Document:
    """A document with one part changed, and the others shared with the document that was given."""
    if not path:
        return change(document)
    changed = document.copy()
    changed[path[0]] = with_change(document[path[0]], path[1:], change)
    return changed


def _times(value: Any, factor: float, *, whole: bool) -> Any:
    if isinstance(value, int | float):
        return value * factor if isinstance(value, float) else round(value * factor)
    if isinstance(value, list):
        return [part * factor for part in value]
    if "successful" in value:
        return value | {"successful": _times(value["successful"], factor, whole=whole)}
    means = {"mean", "avg"}
    changed = {}
    for name, part in value.items():
        if isinstance(part, dict):
            changed[name] = _times(part, factor, whole=whole) if whole else part
        elif isinstance(part, int | float) and (whole or name in means) and name not in ("count", "variance"):
            changed[name] = part * factor
        else:
            changed[name] = part
    return changed
