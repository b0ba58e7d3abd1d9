"""Clean JSON: claims, `vllm bench serve`, guidellm, aiperf, inference-perf and our own result, of simulated servers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench_support.audit_server import Load, Served, measure, noisy

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Document = dict[str, Any]
CONCURRENCY = (16, 64, 256)


def claims(served: Served, other: Served, dice: random.Random) -> Document:
    """True claims about two systems."""
    context, users = dice.choice((128, 512, 2048)), dice.choice((1, 8, 32))
    load = noisy(measure(served, context, users, 128), dice, 0.01)
    around = {"hardware": served.hardware.removeprefix("nvidia-"), "model": served.model.id, "chips": served.chips}
    runs = [round(load.rate * dice.lognormvariate(0, 0.004), 3) for _ in range(3)]
    requests = {"metric": "throughput", "unit": "req/s", "context": context, "users": users, "output_tokens": 128}
    side = {"output_tokens": 128, "prompts": "unique", "max_instances": 1, "service_concurrency": 64}
    drafts = dice.randint(2000, 90000)
    accepted = round(drafts * dice.uniform(0.8, 2.4))
    price = round(dice.uniform(0.7, 9), 2)
    output = round(load.rate * 128, 1)
    statements: list[Document] = [
        {"id": "rate", "value": round(load.rate, 3), **requests, **around, "prompts": "unique"},
        {"id": "repeats", "value": round(sum(runs) / 3, 3), "runs": runs, **requests, **around},
        {"id": "output", "metric": "throughput", "value": output, "unit": "output tok/s", "users": users, **around},
        {
            "id": "latency",
            "metric": "itl",
            "value": round(load.tpot, 5),
            "unit": "s",
            "ttft": round(load.ttft, 4),
            "e2e": round(load.e2e, 4),
            "output_tokens": 128,
            **around,
        },
        {
            "id": "ratio",
            "metric": "ratio",
            "value": 1.7,
            "unit": "x",
            "a": {"hardware": served.label, **side},
            "b": {"hardware": other.label, **side},
        },
        {
            "id": "acceptance",
            "metric": "acceptance",
            "value": round(100 * accepted / 3 / drafts, 1),
            "unit": "%",
            "speculation": "mtp 3",
            "output_tokens": 128,
            "drafts": drafts,
            "draft_tokens": 3 * drafts,
            "accepted": accepted,
            "generated_tokens": drafts + accepted + 500,
        },
        {
            "id": "cost",
            "metric": "cost per million output tokens",
            "value": round(price / 3600 / output * 1e6, 3),
            "unit": "USD",
            "throughput": output,
            "throughput_counts": "output",
            "price_per_h": price,
        },
        _cache(served, dice) | around,
        {
            "id": "weights",
            "metric": "weights",
            "value": round(served.model.weight_bytes / 1e9 * dice.uniform(0.97, 1.05), 1),
            "unit": "GB",
            "dtype": served.model.encoding,
            **around,
        },
        {"id": "success", "metric": "success", "value": 100, "unit": "%", "users": users, "timeout_s": 60, **around},
    ]
    return {"about": "claims", "claims": dice.sample(statements, dice.randint(5, len(statements)))}


def kv_token_bytes(served: Served, element: int) -> int:
    """Bytes of one token over all chips: every layer at full length, heads that do not divide on each chip."""
    shape, chips = served.model.architecture, served.chips
    sliding = shape.sliding_layers * -(-shape.sliding_kv_heads // chips) * shape.sliding_head_dim
    full = shape.full_layers * -(-shape.full_kv_heads // chips) * shape.full_head_dim
    return 2 * element * chips * (sliding + full)


def _cache(served: Served, dice: random.Random) -> Document:
    element = 2 if served.tpu else dice.choice((1, 2))
    tokens = dice.randint(20_000, 400_000) // 16 * 16
    gib = round(tokens * kv_token_bytes(served, element) / 2**30 * dice.uniform(1.0, 1.001), 2)
    dtype = {1: "fp8", 2: dice.choice(("bfloat16", "auto"))}[element]
    return {"id": "cache", "metric": "kv dtype", "value": dtype, "kv_gib": gib, "kv_tokens": tokens}


def vllm_run(served: Served, dice: random.Random, *, detailed: bool, users: int | None = None) -> Document:
    """One run of `vllm bench serve` with random prompts of one length."""
    users = users or dice.choice((1, 8, 32, 64, 128))
    context, output = dice.choice((128, 1024, 4096)), dice.choice((64, 128, 256))
    load = noisy(measure(served, context, users, output), dice, 0.01)
    completed = users * dice.randint(5, 12)
    failed = dice.choice((0, 0, 0, 1)) if completed > 100 else 0
    seconds = completed / load.rate * dice.uniform(1.0, 1.04)
    per_step = served.tokens_a_step
    steps = round(completed * (output - 1) / per_step)
    run: Document = {
        "date": f"202611{dice.randint(1, 21):02d}-{dice.randint(0, 23):02d}0512",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": served.model.hub_id or served.model.id,
        "tokenizer_id": served.model.hub_id or served.model.id,
        "num_prompts": completed + failed,
        "hardware": served.label,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": users,
        "duration": seconds,
        "completed": completed,
        "failed": failed,
        "total_input_tokens": context * completed,
        "total_output_tokens": output * completed,
        "request_throughput": completed / seconds,
        "output_throughput": output * completed / seconds,
        "total_token_throughput": (context + output) * completed / seconds,
        "max_concurrent_requests": users * dice.randint(1, 3),
        "mean_ttft_ms": load.ttft * 1e3,
        "mean_tpot_ms": load.tpot * 1e3,
        "mean_itl_ms": load.tpot * 1e3 * per_step,
        "mean_e2el_ms": load.e2e * 1e3,
    }
    if served.draft_tokens:
        run |= {
            "spec_decode_num_drafts": steps,
            "spec_decode_draft_tokens": steps * served.draft_tokens,
            "spec_decode_accepted_tokens": completed * (output - 1) - steps,
            "spec_decode_acceptance_length": per_step,
        }
    if detailed:
        each = max(1, round((output - 1) / per_step))
        gap = (load.e2e - load.ttft) / each
        starts = [(index // users) * load.e2e + 0.0001 * (index % users) for index in range(completed)]
        run |= {"start_times": starts, "ttfts": [load.ttft] * completed, "itls": [[gap] * each] * completed}
    return run


def guidellm(served: Served, dice: random.Random) -> Document:
    """A report with a load for each number of streams."""
    context, output = dice.choice((128, 1024)), dice.choice((64, 128, 256))
    return {
        "metadata": {"version": 2, "guidellm_version": "0.8.1"},
        "config": {},
        "benchmarks": [
            _guidellm_load(served, context, output, streams, dice)
            for streams in sorted(dice.sample((1, 4, 16, 64, 256), 3))
        ],
    }


def _guidellm_load(served: Served, context: int, output: int, streams: int, dice: random.Random) -> Document:
    load = noisy(measure(served, context, streams, output), dice, 0.01)
    completed = streams * dice.randint(6, 12)
    seconds = completed / load.rate * dice.uniform(1.0, 1.03)

    def metric(mean: float) -> Document:
        good = {"mean": mean, "median": mean, "count": completed, "total_sum": mean * completed}
        return {"successful": good, "total": good, "errored": {"mean": 0.0, "count": 0, "total_sum": 0.0}}

    return {
        "type_": "generative_benchmark",
        "config": {
            "strategy": {"type_": "concurrent", "streams": streams, "rampup_duration": 0.0},
            "backend": {"model": served.model.hub_id or served.model.id, "target": "http://127.0.0.1:8000"},
        },
        "duration": seconds,
        "metrics": {
            "request_totals": {"successful": completed, "errored": 0, "incomplete": 0, "total": completed},
            "requests_per_second": metric(completed / seconds),
            "request_concurrency": metric(streams * dice.uniform(0.93, 1.0)),
            "request_latency": metric(load.e2e),
            "prompt_token_count": metric(context),
            "output_token_count": metric(output),
            "time_to_first_token_ms": metric(load.ttft * 1e3),
            "time_per_output_token_ms": metric(load.e2e / output * 1e3),
            "inter_token_latency_ms": metric(load.tpot * 1e3),
            "prompt_tokens_per_second": metric(context * completed / seconds),
            "output_tokens_per_second": metric(output * completed / seconds),
            "tokens_per_second": metric((context + output) * completed / seconds),
        },
    }


def _load_of(served: Served, dice: random.Random) -> tuple[Load, int, float]:
    """One load of a report: what was measured, how many requests completed, and in how many seconds."""
    users = dice.choice((1, 4, 16, 64, 256))
    load = noisy(measure(served, dice.choice((128, 1024)), users, dice.choice((64, 128, 256))), dice, 0.01)
    completed = users * dice.randint(6, 12)
    return load, completed, completed / load.rate * dice.uniform(1.0, 1.03)


def aiperf(served: Served, dice: random.Random) -> Document:
    """The export of a run of aiperf, with the fields of version 0.13."""
    load, completed, seconds = _load_of(served, dice)

    def metric(mean: float, unit: str) -> Document:
        return {"unit": unit, "avg": mean, "p50": mean, "count": completed, "sum": mean * completed}

    phase = {"name": "profiling", "type": "concurrency", "requests": completed, "concurrency": load.users}
    return {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "request_throughput": {"unit": "requests/sec", "avg": completed / seconds},
        "request_latency": metric(load.e2e * 1e3, "ms"),
        "request_count": {"unit": "requests", "avg": float(completed)},
        "time_to_first_token": metric(load.ttft * 1e3, "ms"),
        "inter_token_latency": metric(load.tpot * 1e3, "ms"),
        "inter_chunk_latency": metric(load.tpot * 1e3 * served.tokens_a_step, "ms"),
        "output_token_throughput": {"unit": "tokens/sec", "avg": load.output * completed / seconds},
        "input_token_throughput": {"unit": "tokens/sec", "avg": load.context * completed / seconds},
        "total_token_throughput": {"unit": "tokens/sec", "avg": (load.context + load.output) * completed / seconds},
        "output_sequence_length": metric(float(load.output), "tokens"),
        "input_sequence_length": metric(float(load.context), "tokens"),
        "benchmark_duration": {"unit": "sec", "avg": seconds},
        "effective_concurrency": {"unit": "requests", "avg": load.users * 0.97},
        "input_config": {
            "models": {"items": [{"name": served.model.hub_id or served.model.id}]},
            "phases": [phase],
        },
        "start_time": "2026-11-20T10:00:00.000000",
    }


def inference_perf(served: Served, dice: random.Random) -> Document:
    """One stage of inference-perf at a number of users; rates are counted to the last response, times are seconds."""
    load, completed, seconds = _load_of(served, dice)

    def metric(mean: float) -> Document:
        return {"mean": mean, "min": mean, "median": mean, "max": mean}

    return {
        "load_summary": {"count": completed, "send_duration": seconds, "concurrency": load.users},
        "successes": {
            "count": completed,
            "latency": {
                "request_latency": metric(load.e2e),
                "normalized_time_per_output_token": metric(load.e2e / load.output),
                "time_per_output_token": metric(load.tpot),
                "time_to_first_token": metric(load.ttft),
                "inter_token_latency": metric(load.tpot * served.tokens_a_step),
            },
            "throughput": {
                "input_tokens_per_sec": load.context * completed / seconds,
                "output_tokens_per_sec": load.output * completed / seconds,
                "total_tokens_per_sec": (load.context + load.output) * completed / seconds,
                "requests_per_sec": completed / seconds,
            },
            "prompt_len": metric(float(load.context)),
            "output_len": metric(float(load.output)),
        },
        "failures": {"count": 0, "request_latency": None, "prompt_len": None},
    }


def result(served: Served, dice: random.Random, *, shared: bool) -> Document:
    """A sweep of our own: every cell with its state, queueing above what the platform lets in."""
    concurrency, instances = dice.choice(CONCURRENCY), dice.choice((1, 1, 3))
    served = replace(served, instances=instances, cached=dice.uniform(0.5, 0.95) if shared else 0.0)
    contexts = sorted(dice.sample((16, 128, 512, 2048, 8192), 3))
    users = sorted(dice.sample((1, 4, 16, 64, 256), 4))
    longest = dice.choice((4096, 16384))
    cells = [
        result_cell(served, context, user, concurrency, longest, dice, shared=shared)
        for context in contexts
        for user in users
    ]
    arguments = ["--max-model-len", str(longest)]
    if served.draft_tokens:
        arguments += ["--spec-method", "mtp", "--spec-tokens", str(served.draft_tokens)]
    return {
        "schema": "bezel.bench/1",
        "kind": "sweep",
        "nature": "simulated",
        "manifest": {
            "title": "a sweep",
            "url": "http://127.0.0.1:8080",
            "model": served.model.id,
            "checkpoint": served.model.id,
            "served_by": {"arguments": arguments, "max_model_len": longest, "max_num_seqs": served.max_num_seqs},
            "platform": {
                "accelerator": served.hardware,
                "chips": served.chips,
                "instances": instances,
                "concurrency": concurrency,
            },
            "client": {
                "bezel": "0.1.0",
                "python": "3.11",
                "machine": {"cores": 2, "cpu": "a cpu", "memory_bytes": None, "kernel": "6.1"},
                "workers": 1,
                "tls": False,
            },
            "started_at": f"2026-11-{dice.randint(1, 21):02d}T10:00:00Z",
            "seed": 1,
        },
        "cells": cells,
    }


def result_cell(
    served: Served,
    context: int,
    users: int,
    concurrency: int,
    longest: int,
    dice: random.Random,
    *,
    shared: bool,
) -> Document:
    """One cell of our own result."""
    output = 128
    cell: Document = {
        "id": f"c{context}-u{users}",
        "context_tokens": context,
        "users": users,
        "output_tokens": output,
        "pattern": "closed",
        "prompts": "shared_prefix" if shared else "unique",
    }
    if context + output > longest:
        rule = f"{context} + {output} > max_model_len {longest}"
        return cell | {"state": "infeasible", "reason": rule}
    load = noisy(measure(served, context, users, output), dice, 0.01)
    queueing = users > concurrency * served.instances
    requests = users * dice.randint(4, 8)
    steps = round(requests * (output - 1) / served.tokens_a_step)
    gained: Document = {
        "requests": requests,
        "prompt_tokens": requests * context,
        "generated_tokens": requests * output,
    }
    if served.draft_tokens:
        accepted = requests * (output - 1) - steps
        gained |= {"drafts": steps, "draft_tokens": steps * served.draft_tokens, "accepted_tokens": accepted}
    computed = context * (1 - served.cached)
    return cell | {
        "state": "queueing" if queueing else "ok",
        "reason": f"{users} > {served.instances} x {concurrency}" if queueing else "",
        "metrics": {
            name: {"value": value, "unit": unit, "n": requests}
            for name, value, unit in _figures(load, computed, served)
        },
        "counters": {"before": None, "after": None, "gained": gained},
        "requests": requests,
        "seconds": requests / load.rate,
    }


def _figures(load: Load, computed: float, served: Served) -> list[tuple[str, float, str]]:
    return [
        ("requests_per_second", load.rate, "requests/s"),
        ("output_tokens_per_second", load.rate * load.output, "tokens/s"),
        ("input_tokens_per_second", load.rate * computed, "tokens/s"),
        ("cached_share", served.cached, "share"),
        ("prompt_tokens_mean", float(load.context), "tokens"),
        ("output_tokens_mean", float(load.output), "tokens"),
        ("in_flight", load.users * 0.97, "requests"),
        ("ttft_mean", load.ttft * 1e3, "ms"),
        ("tpot_mean", load.tpot * 1e3, "ms"),
        ("itl_mean", load.tpot * 1e3 * served.tokens_a_step, "ms"),
        ("e2e_mean", load.e2e * 1e3, "ms"),
    ]


DOCUMENTS: dict[str, Callable[[Served, random.Random], Any]] = {
    "vllm": lambda served, dice: vllm_run(served, dice, detailed=False),
    "vllm detailed": lambda served, dice: vllm_run(served, dice, detailed=True),
    "vllm appended": lambda served, dice: [
        vllm_run(served, dice, detailed=False, users=users) for users in (1, 16, 64)
    ],
    "guidellm": guidellm,
    "aiperf": aiperf,
    "inference-perf": inference_perf,
    "result": lambda served, dice: result(served, dice, shared=False),
    "result of a cache study": lambda served, dice: result(served, dice, shared=True),
}
