"""`vllm bench serve` and sglang's bench_serving.

vLLM 0.33: vllm/benchmarks/serve.py, calculate_metrics, benchmark (`result`) and main_async (`result_json`), which keeps
`latencies` and `queue_times` without --save-detailed too.
sglang 0.5.23: python/sglang/benchmark/serving.py, calculate_metrics and benchmark (`result`, `result_details`).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bench_support.writers.requests import Load

_DETAILS = ("input_lens", "output_lens", "ttfts", "itls", "errors", "generated_texts")


def vllm(load: Load, *, detailed: bool = False, e2el: bool = True) -> dict[str, Any]:
    """A run saved with --save-result; `e2el` stands for --percentile-metrics ttft,tpot,itl,e2el."""
    dice, count, seconds = load.dice(), len(load.requests), load.seconds
    prompts, outputs = int(load.column("prompt").sum()), int(load.column("tokens").sum())
    itls = [one.gaps(dice) for one in load.requests]
    run: dict[str, Any] = {
        "date": "20261120-101112",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": count,
        "request_rate": load.rate or "inf",
        "burstiness": 1.0,
        "max_concurrency": load.users,
        "duration": seconds,
        "completed": count,
        "failed": 0,
        "total_input_tokens": prompts,
        "total_output_tokens": outputs,
        "request_throughput": count / seconds,
        "request_goodput": None,
        "output_throughput": outputs / seconds,
        "total_token_throughput": (prompts + outputs) / seconds,
        "max_output_tokens_per_s": 1.3 * outputs / seconds,
        "max_concurrent_requests": 2 * (load.users or 20),
        "rtfx": 0.0,
        "latencies": load.column("e2e").tolist(),
        "queue_times": [0.0] * count,
    }
    times = {"ttft": load.column("ttft"), "tpot": load.column("tpot"), "itl": np.array(list(itertools.chain(*itls)))}
    if e2el:
        times["e2el"] = load.column("e2e")
    for name, values in times.items():
        run |= _statistics(name, values, ("mean", "median", "std", "p99"))
    if detailed:
        run |= _details(load, itls) | {"start_times": [one.start for one in load.requests]}
    return run


def sglang(load: Load, *, detailed: bool = False) -> dict[str, Any]:
    """A line of the JSONL file."""
    dice, count, seconds = load.dice(), len(load.requests), load.seconds
    prompts, outputs = int(load.column("prompt").sum()), int(load.column("tokens").sum())
    itls = [one.gaps(dice) for one in load.requests]
    which = ("mean", "median", "std", "p90", "p95", "p99")
    run: dict[str, Any] = {
        "tag": None,
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": load.rate or float("inf"),
        "max_concurrency": load.users,
        "sharegpt_output_len": None,
        "random_input_len": 512,
        "random_output_len": 128,
        "random_range_ratio": 1.0,
        "server_info": {"tp_size": 1, "internal_states": [{"memory_usage": {"weight": 14.9}}]},
        "duration": seconds,
        "completed": count,
        "total_input_tokens": prompts,
        "total_input_text_tokens": prompts,
        "total_input_vision_tokens": 0,
        "total_output_tokens": outputs,
        "total_output_tokens_retokenized": outputs - 3,
        "request_throughput": count / seconds,
        "input_throughput": prompts / seconds,
        "output_throughput": outputs / seconds,
        "total_throughput": (prompts + outputs) / seconds,
        **_statistics("e2e_latency", load.column("e2e"), which),
        **_statistics("ttft", load.column("ttft"), which),
        **_statistics("tpot", load.column("tpot"), which),
        **_statistics("itl", np.array(list(itertools.chain(*itls))), which),
        "concurrency": load.column("e2e").sum() / seconds,
        "accept_length": None,
        "max_output_tokens_per_s": 1.3 * outputs / seconds,
        "max_concurrent_requests": 2 * (load.users or 20),
    }
    return run | _details(load, itls) if detailed else run


def _statistics(name: str, values: np.ndarray, which: tuple[str, ...]) -> dict[str, float]:
    median, p90, p95, p99 = np.percentile(values, (50, 90, 95, 99))
    figures = {"mean": values.mean(), "median": median, "std": values.std(), "p90": p90, "p95": p95, "p99": p99}
    return {f"{statistic}_{name}_ms": float(figures[statistic]) * 1000 for statistic in which}


def _details(load: Load, itls: list[list[float]]) -> dict[str, Any]:
    lists: tuple[list[Any], ...] = (
        [one.prompt for one in load.requests],
        [one.tokens for one in load.requests],
        [one.ttft for one in load.requests],
        itls,
        [""] * len(load.requests),
        ["a text"] * len(load.requests),
    )
    return dict(zip(_DETAILS, lists, strict=True))
