"""Metrics of the engine: every `vllm:` family of the recorded /metrics, and the events that update each.

The table of families is `metrics.json`. Times are those of the engine's clock; only `_created` is wall time.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import Counter, Gauge, Histogram, Summary

from bezel_catalog.vllm.servers import recorded_server

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.request import Request
    from bezel_simulated_vllm.scheduling.scheduler import Scheduler, Step

_TABLE = Path(__file__).with_name("metrics.json")
TOOL_CALLS = "tool_call_parser_invocations_total"


class EngineMetrics:
    """The `vllm:` families of one engine.

    Attributes:
        families: the families by name without `vllm:`, in the order of /metrics; none is registered yet.
    """

    def __init__(self, settings: EngineSettings) -> None:
        """Create every series that a freshly started server shows; some buckets and labels depend on the settings."""
        self._settings = settings
        table = _table()
        bounds = {**table["buckets"], "tokens": _one_two_five(settings.max_model_len)}
        recorded = recorded_server(settings.release)  # a server on CPU: values that a GPU decides are the table's
        fixed = {name: table["cache_config"].get(name, value) for name, value in recorded.cache_config.items()}
        config = _cache_config(settings, fixed)
        self.families: dict[str, Any] = {}
        self._series: dict[tuple[str, ...], Any] = {}
        for row in table["families"]:
            if (row.get("speculative") and not settings.speculation) or (row.get("tools") and not settings.tool_parser):
                continue
            name = f"vllm:{row['name']}"
            if name not in recorded.families and not row.get("speculative"):
                continue  # a family of another release
            self._start(row | {"help": recorded.families.get(name, row["help"])}, bounds)
        info = Gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", [*config], registry=None)
        info.labels(**config).set(1)
        self.families["cache_config_info"] = info
        self._series["engine_sleep_state", "awake"].set(1)

    def _start(self, row: dict[str, Any], bounds: dict[str, list[float]]) -> None:
        """Create a family, and its series with every combination of its labels' values."""
        fixed = {"model_name": self._settings.served_names[0]} | ({} if row.get("engine") is False else {"engine": "0"})
        labels: dict[str, list[str]] = dict(row.get("labels", {}))
        if "position" in labels and self._settings.speculation:
            labels["position"] = [str(position) for position in range(self._settings.speculation.tokens)]
        if isinstance(row.get("buckets"), str):
            row = row | {"buckets": bounds[row["buckets"]]}
        family = make_family(row | {"name": f"vllm:{row['name']}", "labels": [*fixed, *labels]})
        self.families[row["name"]] = family
        for values in itertools.product(*labels.values()):
            self._series[row["name"], *values] = family.labels(*fixed.values(), *values)

    def value(self, *series: str) -> float:
        """Return a series' value (a histogram's sum), by the family's name and the values of the labels of its own.

        Raises:
            KeyError: there is no such series.
        """
        samples = next(iter(self._series[series].collect())).samples
        return float([sample.value for sample in samples if not sample.name.endswith("_created")][-1])

    def levels(self, scheduler: Scheduler) -> None:
        """Set the gauges of the queue, the batch and the cache."""
        waiting = len(scheduler.waiting)
        self._set(len(scheduler.running), "num_requests_running")
        self._set(waiting, "num_requests_waiting")
        self._set(waiting, "num_requests_waiting_by_reason", "capacity")
        self._set(scheduler.pool.usage, "kv_cache_usage_perc")

    def count_admission(self, request: Request) -> None:
        """Count the look-up of a prompt in the prefix cache, when its request runs for the first time."""
        if self._settings.prefix_caching:
            self._add(len(request.prompt), "prefix_cache_queries_total")
            self._add(request.cached, "prefix_cache_hits_total")

    def step(self, step: Step, yielded: dict[Request, list[int]], end: float) -> None:
        """Count a step that ended at `end` and yielded those tokens."""
        prefill = sum(share.tokens for share in step.shares if share.prefill)
        fresh = sum(len(tokens) for request, tokens in yielded.items() if not request.pools)
        if step.preempted:
            self._add(len(step.preempted), "num_preemptions_total")
        self._add(fresh, "generation_tokens_total")
        self._observe("iteration_tokens_total", prefill + fresh)
        for share in step.shares:
            request, new = share.request, yielded[share.request]
            if share.drafts:
                self._drafts(share.drafts, len(new) - 1)
            if not new:
                continue
            if request.first_token is None:
                request.first_token = end
                self._first_token(request)
            else:
                self._observe("inter_token_latency_seconds", end - request.last_token)
            request.last_token = end
            if request.finished:
                self.count_finish(request, end)

    def count_rejection(self, reason: str) -> None:
        """Count a request that a queue limit rejected."""
        self._add(1, "admission_rejections_total", reason)

    def count_parser_use(self, kind: str, *, streaming: bool, called: bool, times: int = 1) -> None:
        """Count the invocations of the parser of tool calls: one for an answer, or one for each of its pieces."""
        mode, outcome = "streaming" if streaming else "non_streaming", "tool_call" if called else "no_tool_call"
        self._add(times, TOOL_CALLS, mode, outcome, kind)

    def _drafts(self, drafted: int, accepted: int) -> None:
        self._add(1, "spec_decode_num_drafts_total")
        self._add(drafted, "spec_decode_num_draft_tokens_total")
        self._add(accepted, "spec_decode_num_accepted_tokens_total")
        for position in range(accepted):
            self._add(1, "spec_decode_num_accepted_tokens_per_pos_total", str(position))

    def _first_token(self, request: Request) -> None:
        computed = len(request.prompt) - request.cached
        self._add(len(request.prompt), "prompt_tokens_total")
        self._add(computed, "prompt_tokens_by_source_total", "local_compute")
        self._add(request.cached, "prompt_tokens_by_source_total", "local_cache_hit")
        self._add(request.cached, "prompt_tokens_cached_total")
        self._add(request.cached, "prompt_tokens_cached_by_source_total", "device")
        self._observe("time_to_first_token_seconds", (request.first_token or 0.0) - request.arrival)

    def count_finish(self, request: Request, end: float) -> None:
        """Count a finished request."""
        scheduled = request.scheduled if request.scheduled is not None else end
        first = request.first_token if request.first_token is not None else end
        produced = 0 if request.pools else len(request.answer)
        self._add(1, "request_success_total", request.finished or "stop")
        self._observe("request_prompt_tokens", len(request.prompt))
        self._observe("request_generation_tokens", produced)
        group = request.group
        group.finished, group.longest = group.finished + 1, max(group.longest, produced)
        if group.finished == group.size:
            self._observe("request_max_num_generation_tokens", group.longest)
            self._observe("request_params_n", group.size)
        if not request.pools:
            self._observe("request_params_max_tokens", request.max_tokens)
        # vLLM observes 0 for an answer of one token, which has no further one.
        each = (end - first) / (produced - 1) if produced > 1 else 0.0
        self._observe("request_time_per_output_token_seconds", each)
        self._observe("e2e_request_latency_seconds", end - request.arrival)
        self._observe("request_queue_time_seconds", scheduled - request.arrival)
        self._observe("request_inference_time_seconds", end - scheduled)
        self._observe("request_prefill_time_seconds", first - scheduled)
        self._observe("request_decode_time_seconds", end - first)
        self._observe("request_num_preemptions", request.preemptions)
        self._observe("request_prefill_kv_computed_tokens", len(request.prompt) - request.cached)

    def _set(self, value: float, *series: str) -> None:
        self._series[series].set(value)

    def _add(self, value: float, *series: str) -> None:
        self._series[series].inc(value)

    def _observe(self, name: str, value: float) -> None:
        self._series[name,].observe(value)


def make_family(row: dict[str, Any]) -> Any:
    """Return the unregistered family of a row of the table, with the labels and buckets in it."""
    kind = {"counter": Counter, "gauge": Gauge, "histogram": Histogram, "summary": Summary}[row["type"]]
    options = {"buckets": row["buckets"]} if "buckets" in row else {}
    return kind(row["name"], row["help"], row["labels"], registry=None, **options)


def http_families() -> dict[str, Any]:
    """Return the unregistered families of the HTTP side by name, in the order of /metrics."""
    return {row["name"]: make_family(row) for row in _table()["http_families"]}


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table


def _one_two_five(limit: int) -> list[float]:
    """Return the bounds 1, 2, 5, 10, 20, 50 ... up to `limit`."""
    bounds = [factor * 10.0**power for power in range(int(math.log10(limit)) + 1) for factor in (1, 2, 5)]
    return [bound for bound in bounds if bound <= limit]


def _cache_config(settings: EngineSettings, fixed: dict[str, str]) -> dict[str, str]:
    memory = settings.memory
    labels = {
        "block_size": str(memory.layout.sliding_block),
        "cache_dtype": settings.kv_cache_dtype,
        "effective_attention_block_size": str(memory.layout.sliding_block),
        "enable_prefix_caching": str(settings.prefix_caching),
        "engine": "0",
        "gpu_memory_utilization": str(settings.gpu_memory_utilization),
        "kv_cache_max_concurrency": str(memory.concurrency),
        "kv_cache_size_tokens": str(memory.tokens),
        "num_gpu_blocks": str(memory.blocks),
    }
    return fixed | labels
