"""guidellm, aiperf, genai-perf, inference-perf and llmperf.

guidellm 0.8.1: guidellm/benchmark/schemas/metrics.py (compile), schemas/base/statistics.py (DistributionSummary).
aiperf 0.13: src/aiperf/exporters/metrics_json_exporter.py; genai-perf: genai_perf/export_data/json_exporter.py.
inference-perf 0.7: inference_perf/reportgen/base.py, summarize_requests and summarize.
llmperf: token_benchmark_ray.py, metrics_summary, flattened by src/llmperf/utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bench_support.writers.requests import Load

_MODEL = "meta-llama/Llama-3.1-8B-Instruct"
_GUIDELLM = {"p001": 0.1, "p01": 1, "p05": 5, "p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p95": 95,
             "p99": 99, "p999": 99.9}  # fmt: skip


def guidellm(load: Load) -> dict[str, Any]:
    """A report with one benchmark; distributions are weighted as their source weights them."""
    count, tokens, prompts = len(load.requests), load.column("tokens"), load.column("prompt")
    # rate_distribution_from_timings: what ended from the first end up to the last one, which is left out.
    ends = load.column("start") + load.column("e2e")
    rated, last = ends.max() - ends.min(), int(ends.argmax())

    def metric(values: np.ndarray, weights: np.ndarray | None = None) -> dict[str, Any]:
        good = _weighted_statistics(values, np.ones(len(values)) if weights is None else weights)
        return {"successful": good, "errored": {"mean": 0.0, "count": 0}, "incomplete": {"mean": 0.0, "count": 0}}

    def rate(values: np.ndarray) -> dict[str, Any]:
        mean = float(values.sum() - values[last]) / rated
        return {"successful": {"mean": mean, "median": 0.9 * mean, "std_dev": 3 * mean}}

    late = load.column("start") - load.column("due")
    strategy = {"type_": "poisson", "rate": load.rate} if load.rate else {"type_": "concurrent", "streams": load.users}
    flight = load.column("e2e").sum() / load.seconds
    return {
        "metadata": {"version": 2, "guidellm_version": "0.8.1"},
        "args": {},
        "benchmarks": [
            {
                "type_": "generative_benchmark",
                "config": {"strategy": strategy, "backend": {"model": _MODEL, "target": "http://127.0.0.1:8000"}},
                "start_time": 1.7e9,
                "end_time": 1.7e9 + load.seconds + 0.4,
                "duration": load.seconds + 0.4,
                "metrics": {
                    "request_totals": {"successful": count, "errored": 0, "incomplete": 0, "total": count},
                    "requests_per_second": rate(np.ones(count)),
                    "request_concurrency": {"total": {"mean": flight}, "successful": {"mean": flight}},
                    "request_latency": metric(load.column("e2e") + 0.002),
                    **(
                        {"request_dispatch_delay": metric(late), "turn_scheduling_delay": metric(late)}
                        if load.rate
                        else {}
                    ),
                    "prompt_token_count": metric(prompts),
                    "output_token_count": metric(tokens),
                    "time_to_first_token_ms": metric(load.column("ttft") * 1e3),
                    "time_per_output_token_ms": metric(load.column("e2e") * 1e3 / tokens, tokens),
                    "inter_token_latency_ms": metric(load.column("tpot") * 1e3, tokens - 1),
                    "prompt_tokens_per_second": rate(prompts),
                    "output_tokens_per_second": rate(tokens),
                    "tokens_per_second": rate(prompts + tokens),
                },
            }
        ],
    }


def _weighted_statistics(values: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    order = np.argsort(values)
    ordered, share = values[order], np.cumsum(weights[order]) / weights.sum()
    mean = float((values * weights).sum() / weights.sum())
    percentiles = {name: float(ordered[np.searchsorted(share, at / 100)]) for name, at in _GUIDELLM.items()}
    return {
        "mean": mean,
        "median": percentiles["p50"],
        "variance": float((weights * (values - mean) ** 2).sum() / weights.sum()),
        "std_dev": float(np.sqrt((weights * (values - mean) ** 2).sum() / weights.sum())),
        "min": float(ordered[0]),
        "max": float(ordered[-1]),
        "count": len(values),
        "total_sum": float((values * weights).sum()),
        "percentiles": percentiles,
    }


def aiperf(load: Load) -> dict[str, Any]:
    """profile_export_aiperf.json of version 0.13."""
    count, seconds = len(load.requests), load.seconds
    tokens, prompts = load.column("tokens"), load.column("prompt")
    phase: dict[str, Any] = {"name": "profiling", "requests": count}
    phase |= {"rate": load.rate} if load.rate else {"type": "concurrency", "concurrency": load.users}
    return {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "request_throughput": {"unit": "requests/sec", "avg": count / seconds},
        "request_latency": _nvidia(load.column("e2e") * 1e3, "ms"),
        "request_count": {"unit": "requests", "avg": float(count)},
        "time_to_first_token": _nvidia(load.column("ttft") * 1e3, "ms"),
        "inter_token_latency": _nvidia(load.column("tpot") * 1e3, "ms"),
        "inter_chunk_latency": _nvidia(load.column("tpot") * 1.1e3, "ms"),
        "output_token_throughput": {"unit": "tokens/sec", "avg": tokens.sum() / seconds},
        "input_token_throughput": {"unit": "tokens/sec", "avg": prompts.sum() / seconds},
        "total_token_throughput": {"unit": "tokens/sec", "avg": (tokens + prompts).sum() / seconds},
        "output_sequence_length": _nvidia(tokens, "tokens"),
        "input_sequence_length": _nvidia(prompts, "tokens"),
        "benchmark_duration": {"unit": "sec", "avg": seconds},
        "effective_concurrency": {"unit": "requests", "avg": load.column("e2e").sum() / seconds},
        "input_config": {"models": {"items": [{"name": _MODEL}]}, "phases": [phase]},
        "start_time": "2026-11-20T10:00:00.000000",
    }


def genai_perf(load: Load) -> dict[str, Any]:
    """profile_export_genai_perf.json: statistics, then the arguments."""
    count, seconds = len(load.requests), load.seconds
    stimulus = {"request_rate": load.rate} if load.rate else {"concurrency": load.users}
    return {
        "request_throughput": {"unit": "requests/sec", "avg": count / seconds},
        "request_latency": _nvidia(load.column("e2e") * 1e3, "ms"),
        "request_count": {"unit": "count", "avg": float(count)},
        "time_to_first_token": _nvidia(load.column("ttft") * 1e3, "ms"),
        "time_to_second_token": _nvidia(load.column("tpot") * 1e3, "ms"),
        "inter_token_latency": _nvidia(load.column("tpot") * 1e3, "ms"),
        "output_token_throughput": {"unit": "tokens/sec", "avg": load.column("tokens").sum() / seconds},
        "output_token_throughput_per_request": _nvidia(1 / load.column("tpot"), "tokens/sec"),
        "output_sequence_length": _nvidia(load.column("tokens"), "tokens"),
        "input_sequence_length": _nvidia(load.column("prompt"), "tokens"),
        "input_config": {"model_names": [_MODEL], "perf_analyzer": {"stimulus": stimulus}, "input": {"num": count}},
    }


def _nvidia(values: np.ndarray, unit: str) -> dict[str, Any]:
    ranks = (1, 5, 10, 25, 50, 75, 90, 95, 99)
    statistics = {"unit": unit, "avg": float(values.mean())}
    statistics |= {f"p{at}": float(value) for at, value in zip(ranks, np.percentile(values, ranks), strict=True)}
    return statistics | {"min": float(values.min()), "max": float(values.max()), "std": float(values.std())}


def inference_perf(load: Load) -> dict[str, Any]:
    """stage_0_lifecycle_metrics; a latency ends with the response, here 1 ms after the last token."""
    count, seconds = len(load.requests), load.seconds + 0.001
    starts, tokens, prompts = load.column("start"), load.column("tokens"), load.column("prompt")
    sending = float(starts.max() - starts.min())
    e2e = load.column("e2e") + 0.001
    delay = np.array([one.start - one.due for one in load.requests])
    summary: dict[str, Any] = {"count": count, "schedule_delay": _summary(delay), "send_duration": sending}
    summary |= {"requested_rate": load.rate or float(count), "achieved_rate": count / sending}
    if load.users:
        summary["concurrency"] = load.users
    return {
        "benchmark_time_seconds": seconds,
        "load_summary": summary,
        "successes": {
            "count": count,
            "latency": {
                "request_latency": _summary(e2e),
                "normalized_time_per_output_token": _summary(e2e / tokens),
                "time_per_output_token": _summary(load.column("tpot")),
                "time_to_first_token": _summary(load.column("ttft")),
                "inter_token_latency": _summary(load.column("tpot")),
            },
            "throughput": {
                "input_tokens_per_sec": float(prompts.sum()) / seconds,
                "output_tokens_per_sec": float(tokens.sum()) / seconds,
                "total_tokens_per_sec": float((prompts + tokens).sum()) / seconds,
                "requests_per_sec": count / seconds,
                "images_per_sec": 0.0,
                "videos_per_sec": 0.0,
                "audios_per_sec": 0.0,
            },
            "request_size_bytes": _summary(4 * prompts),
            "image": {"count": _summary(0 * prompts), "pixels": None, "bytes": None, "aspect_ratio": None},
            "prompt_tokens": {
                "total": float(prompts.sum()),
                "cached": 0.0,
                "uncached": float(prompts.sum()),
                **_summary(prompts),
            },
            "output_len": _summary(tokens),
            "output_tokens": {"total": float(tokens.sum()), **_summary(tokens)},
            "token_count_mismatches": 0,
            "client_fallback_requests": {"prompt": 0, "output": 0},
        },
        "failures": {
            "count": 0,
            "request_latency": None,
            "prompt_tokens": {"total": 0.0, "cached": 0.0, "uncached": 0.0},
            "by_label": {},
        },
    }


def _summary(values: np.ndarray) -> dict[str, float]:
    statistics = {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}
    ranks = (0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
    for at, value in zip(ranks, np.percentile(values, ranks), strict=True):
        statistics["median" if at == 50 else f"p{at:g}"] = float(value)
    return statistics


def llmperf(load: Load) -> dict[str, Any]:
    """*_summary.json: the sum of all gaps and of the TTFT over the tokens is its inter-token latency."""
    count, seconds, tokens = len(load.requests), load.seconds, load.column("tokens")
    document: dict[str, Any] = {
        "version": "2023-08-31",
        "name": "llama_512_128_summary",
        "model": _MODEL,
        "mean_input_tokens": 512,
        "stddev_input_tokens": 0,
        "mean_output_tokens": 128,
        "stddev_output_tokens": 0,
        "num_concurrent_requests": load.users,
    }
    for name, values in {
        "inter_token_latency_s": load.column("e2e") / tokens,
        "ttft_s": load.column("ttft"),
        "end_to_end_latency_s": load.column("e2e"),
        "request_output_throughput_token_per_s": tokens / load.column("e2e"),
        "number_input_tokens": load.column("prompt"),
        "number_output_tokens": tokens,
    }.items():
        ranks = (25, 50, 75, 90, 95, 99)
        for at, value in zip(ranks, np.percentile(values, ranks), strict=True):
            document[f"results_{name}_quantiles_p{at}"] = float(value)
        document[f"results_{name}_mean"] = float(values.mean())
        document[f"results_{name}_min"] = float(values.min())
        document[f"results_{name}_max"] = float(values.max())
        document[f"results_{name}_stddev"] = float(values.std(ddof=1))
    return document | {
        "results_num_requests_started": count,
        "results_error_rate": 0.0,
        "results_number_errors": 0,
        "results_error_code_frequency": "{}",
        "results_mean_output_throughput_token_per_s": float(tokens.sum()) / seconds,
        "results_num_completed_requests": count,
        "results_num_completed_requests_per_min": count / seconds * 60,
        "timestamp": 1763600000,
    }
