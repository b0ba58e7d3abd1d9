"""Metrics of the engine: every `vllm:` family of the recorded /metrics, and the events that update each.

The table of families is `metrics.json`. Times are those of the engine's clock; only `_created` is wall time.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.simulated_vllm.metrics.prometheus import Counter, Family, Histogram, Labels, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bezel.simulated_vllm.configuration.settings import EngineSettings
    from bezel.simulated_vllm.scheduling.request import Request
    from bezel.simulated_vllm.scheduling.scheduler import Scheduler, Step

_TABLE = Path(__file__).with_name("metrics.json")
_TOOLS = "tool_call_parser_invocations_total"


class EngineMetrics:
    """The `vllm:` families of one engine."""

    def __init__(self, settings: EngineSettings, wall: Callable[[], float]) -> None:
        """Create every series that a freshly started server shows.

        Args:
            settings: the engine's settings; some buckets and the info gauge depend on them.
            wall: returns the Unix time in seconds.
        """
        self._settings = settings
        self._name = settings.served_names[0]
        self._labels: dict[tuple[str, str], Labels] = {}
        self._plain = labels({"engine": "0", "model_name": self._name})
        table = json.loads(_TABLE.read_text(encoding="utf-8"))
        named: dict[str, list[float]] = {**table["buckets"], "tokens": _one_two_five(settings.max_model_len)}
        self._families: dict[str, Family] = {}
        for row in table["families"]:
            if (row.get("speculative") and not settings.speculation) or (row.get("tools") and not settings.tool_parser):
                continue
            self._families[row["name"]] = family = _family(row, named, wall)
            self._start(family, row)
        self._families["cache_config_info"].set(labels(_cache_config(settings, table["cache_config"])), 1.0)
        self._get("engine_sleep_state").set(self._with("sleep_state", "awake"), 1.0)

    def lines(self) -> Iterator[str]:
        """Yield the text of the engine's families."""
        for name, family in self._families.items():
            if name != _TOOLS:
                yield from family.lines()

    def last_lines(self) -> Iterator[str]:
        """Yield the text of the API process's own family, which comes after the http families."""
        if _TOOLS in self._families:
            yield from self._families[_TOOLS].lines()

    def value(self, name: str, label: str | None = None) -> float:
        """Return the value of the series with that label value, or of the family's first series if none is given."""
        for pairs, value in self._get(name).values.items():
            if label is None or label in dict(pairs).values():
                return value
        raise KeyError(name)

    def levels(self, scheduler: Scheduler) -> None:
        """Set the gauges of the queue, the batch and the cache."""
        waiting = float(len(scheduler.waiting))
        self._get("num_requests_running").set(self._plain, float(len(scheduler.running)))
        self._get("num_requests_waiting").set(self._plain, waiting)
        self._get("num_requests_waiting_by_reason").set(self._with("reason", "capacity"), waiting)
        self._get("kv_cache_usage_perc").set(self._plain, scheduler.pool.usage)

    def admitted(self, request: Request) -> None:
        """Count the look-up of a prompt in the prefix cache, when its request runs for the first time."""
        if self._settings.prefix_caching:
            self._add("prefix_cache_queries_total", len(request.prompt))
            self._add("prefix_cache_hits_total", request.cached)

    def step(self, step: Step, yielded: dict[Request, list[int]], end: float) -> None:
        """Count a step that ended at `end` and yielded those tokens."""
        prefill = sum(share.tokens for share in step.shares if share.prefill)
        fresh = sum(len(tokens) for tokens in yielded.values())
        if step.preempted:
            self._add("num_preemptions_total", len(step.preempted))
        self._add("generation_tokens_total", fresh)
        self._observe("iteration_tokens_total", prefill + fresh)
        gaps: dict[float, int] = {}
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
                gap = end - request.last_token
                gaps[gap] = gaps.get(gap, 0) + 1
            request.last_token = end
            if request.finished:
                self.finished(request, end)
        # Thousands of sequences that decode in the same step have the same gap, so each gap is observed once.
        for gap, times in gaps.items():
            self._observe("inter_token_latency_seconds", gap, times)

    def rejected(self, reason: str) -> None:
        """Count a request that a queue limit rejected."""
        self._get("admission_rejections_total").add(labels({"model_name": self._name, "reason": reason}))

    def parsed(self, kind: str, *, streaming: bool, called: bool, times: int = 1) -> None:
        """Count the invocations of the parser of tool calls: one for an answer, or one for each of its pieces."""
        if _TOOLS not in self._families:
            return
        mode, outcome = "streaming" if streaming else "non_streaming", "tool_call" if called else "no_tool_call"
        pairs = {"model_name": self._name, "mode": mode, "outcome": outcome, "request_type": kind}
        self._get(_TOOLS).add(labels(pairs), times)

    def _drafts(self, drafted: int, accepted: int) -> None:
        self._add("spec_decode_num_drafts_total")
        self._add("spec_decode_num_draft_tokens_total", drafted)
        self._add("spec_decode_num_accepted_tokens_total", accepted)
        for position in range(accepted):
            self._get("spec_decode_num_accepted_tokens_per_pos_total").add(self._with("position", str(position)))

    def _first_token(self, request: Request) -> None:
        computed = len(request.prompt) - request.cached
        self._add("prompt_tokens_total", len(request.prompt))
        self._get("prompt_tokens_by_source_total").add(self._with("source", "local_compute"), computed)
        self._get("prompt_tokens_by_source_total").add(self._with("source", "local_cache_hit"), request.cached)
        self._add("prompt_tokens_cached_total", request.cached)
        self._get("prompt_tokens_cached_by_source_total").add(self._with("source", "device"), request.cached)
        self._observe("time_to_first_token_seconds", (request.first_token or 0.0) - request.arrival)

    def finished(self, request: Request, end: float) -> None:
        """Count a finished request."""
        scheduled = request.scheduled if request.scheduled is not None else end
        first = request.first_token if request.first_token is not None else end
        produced = len(request.answer)
        self._get("request_success_total").add(self._with("finished_reason", request.finished or "stop"))
        self._observe("request_prompt_tokens", len(request.prompt))
        self._observe("request_generation_tokens", produced)
        group = request.group
        group.finished, group.longest = group.finished + 1, max(group.longest, produced)
        if group.finished == group.size:
            self._observe("request_max_num_generation_tokens", group.longest)
            self._observe("request_params_n", group.size)
        self._observe("request_params_max_tokens", request.max_tokens)
        if produced > 1:
            self._observe("request_time_per_output_token_seconds", (end - first) / (produced - 1))
        self._observe("e2e_request_latency_seconds", end - request.arrival)
        self._observe("request_queue_time_seconds", scheduled - request.arrival)
        self._observe("request_inference_time_seconds", end - scheduled)
        self._observe("request_prefill_time_seconds", first - scheduled)
        self._observe("request_decode_time_seconds", end - first)
        self._observe("request_num_preemptions", request.preemptions)
        self._observe("request_prefill_kv_computed_tokens", len(request.prompt) - request.cached)

    def _start(self, family: Family, row: dict[str, object]) -> None:
        if family.name == "vllm:cache_config_info":
            return
        values = row.get("values")
        if row.get("label") == "position" and self._settings.speculation:
            values = [str(position) for position in range(self._settings.speculation.tokens)]
        base = {"model_name": self._name} | ({} if row.get("engine") is False else {"engine": "0"})
        if isinstance(rows := row.get("labels"), dict):
            for combination in itertools.product(*rows.values()):
                family.start(labels({**base, **dict(zip(rows, combination, strict=True))}))
            return
        if not isinstance(values, list):
            family.start(labels(base))
            return
        for value in values:
            family.start(labels({**base, str(row["label"]): str(value)}))

    def _get(self, name: str) -> Family:
        return self._families[name]

    def _with(self, label: str, value: str) -> Labels:
        found = self._labels.get((label, value))
        if found is None:
            found = self._labels[label, value] = labels({"engine": "0", "model_name": self._name, label: value})
        return found

    def _add(self, name: str, value: float = 1.0) -> None:
        self._families[name].add(self._plain, value)

    def _observe(self, name: str, value: float, times: int = 1) -> None:
        family = self._families[name]
        if isinstance(family, Histogram):
            family.observe(self._plain, value, times)


def _family(row: dict[str, object], named: dict[str, list[float]], wall: Callable[[], float]) -> Family:
    name, text = f"vllm:{row['name']}", str(row["help"])
    if row["type"] == "histogram":
        bounds = row["buckets"]
        return Histogram(name, text, wall, named[bounds] if isinstance(bounds, str) else bounds)  # type: ignore[arg-type]
    return Counter(name, text, wall) if row["type"] == "counter" else Family(name, text, wall)


def _one_two_five(limit: int) -> list[float]:
    """Return the bounds 1, 2, 5, 10, 20, 50 ... up to `limit`."""
    bounds = [factor * 10.0**power for power in range(int(math.log10(limit)) + 1) for factor in (1, 2, 5)]
    return [bound for bound in bounds if bound <= limit]


def _cache_config(settings: EngineSettings, fixed: dict[str, str]) -> dict[str, str]:
    memory = settings.memory
    known = {
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
    return fixed | known
