"""Benchmark reports of llm-d, converted from another tool.

0.2: benchmark_report/schema_v0_2.py and native_to_br0_2.py (import_inference_perf, import_vllm_benchmark).
0.1: benchmark_report/schema_v0_1.py and native_to_br0_1.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench_support.writers.reports import inference_perf
from bench_support.writers.serving import vllm

if TYPE_CHECKING:
    from bench_support.writers.requests import Load

_MODEL = "meta-llama/Llama-3.1-8B-Instruct"
_NAMES = {"median": "p50", "p0.1": "p0p1", "p99.9": "p99p9"}


def report_0_2(load: Load) -> dict[str, Any]:
    """A stage of inference-perf: seconds, and rates with their units."""
    native = inference_perf(load)
    good = native["successes"]
    latency, rates = good["latency"], good["throughput"]
    return {
        "version": "0.2",
        "run": {
            "uid": "1",
            "eid": "2",
            "time": {"start": "2026-11-20T10:00:00Z", "duration": f"PT{load.seconds + 40:.0f}S"},
        },
        "scenario": {
            "stack": [
                {
                    "metadata": {"label": "vllm", "cfg_id": "x"},
                    "standardized": {
                        "kind": "inference_engine",
                        "model": {"name": _MODEL},
                        "accelerator": {"model": "NVIDIA-H100-80GB-HBM3", "count": 1},
                    },
                }
            ],
            "load": {
                "standardized": {
                    "tool": "inference-perf",
                    "tool_version": "0.7.0",
                    "stage": 0,
                    "rate_qps": load.rate,
                    "concurrency": load.users,
                    "input_seq_len": {"distribution": "gaussian", "value": 512},
                }
            },
        },
        "results": {
            "request_performance": {
                "aggregate": {
                    "requests": {
                        "total": len(load.requests),
                        "failures": 0,
                        "input_length": _statistics(good["prompt_tokens"], "count"),
                        "output_length": _statistics(good["output_len"], "count"),
                    },
                    "latency": {
                        name: _statistics(values, "s/token" if "token" in name and "first" not in name else "s")
                        for name, values in latency.items()
                    },
                    "throughput": {
                        "output_token_rate": {"units": "tokens/s", "mean": rates["output_tokens_per_sec"]},
                        "total_token_rate": {"units": "tokens/s", "mean": rates["total_tokens_per_sec"]},
                        "request_rate": {"units": "queries/s", "mean": rates["requests_per_sec"]},
                    },
                }
            }
        },
    }


def report_0_1(load: Load) -> dict[str, Any]:
    """A run of vLLM's benchmark: milliseconds, plain rates."""
    native = vllm(load)

    def statistics(name: str, units: str) -> dict[str, Any]:
        return {
            "units": units,
            "mean": native[f"mean_{name}_ms"],
            "stddev": native[f"std_{name}_ms"],
            "p50": native[f"median_{name}_ms"],
            "p99": native[f"p99_{name}_ms"],
        }

    count = native["completed"]
    return {
        "version": "0.1",
        "scenario": {
            "model": {"name": _MODEL},
            "host": {"accelerator": [{"model": "NVIDIA-H100-80GB-HBM3", "count": 1}]},
            "load": {
                "name": "vllm-benchmark",
                "args": {"max_concurrency": load.users, "request_rate": native["request_rate"], "num_prompts": count},
            },
        },
        "metrics": {
            "time": {"duration": native["duration"], "start": 1763600000.0},
            "requests": {
                "total": count,
                "failures": 0,
                "input_length": {"units": "count", "mean": native["total_input_tokens"] / count},
                "output_length": {"units": "count", "mean": native["total_output_tokens"] / count},
            },
            "latency": {
                "time_to_first_token": statistics("ttft", "ms"),
                "time_per_output_token": statistics("tpot", "ms/token"),
                "inter_token_latency": statistics("itl", "ms/token"),
                "request_latency": statistics("e2el", "ms"),
            },
            "throughput": {
                "output_tokens_per_sec": native["output_throughput"],
                "total_tokens_per_sec": native["total_token_throughput"],
                "requests_per_sec": native["request_throughput"],
            },
        },
    }


def _statistics(native: dict[str, float], units: str) -> dict[str, Any]:
    left = ("total", "cached", "uncached")
    return {"units": units, **{_NAMES.get(name, name): value for name, value in native.items() if name not in left}}
