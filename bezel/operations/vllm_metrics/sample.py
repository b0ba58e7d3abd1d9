"""One response of a vLLM server's `/metrics`, summed over its engines, and the process that gave it.

Owns the names of the metrics (vLLM 0.32.0) and how two processes behind one address are distinguished. Leaves the text
format to bezel_bench.server.counters and the meaning of the numbers to bezel.operations.vllm_metrics.figures.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_bench.server.counters import series

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 4 * 1024 * 1024
"""A response of `/metrics` has 60 kB; a longer one than this is cut off, and what it lacks is unknown."""

RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
KV_USAGE = "vllm:kv_cache_usage_perc"
PROMPT, GENERATED = "vllm:prompt_tokens_total", "vllm:generation_tokens_total"
CACHE_QUERIES, CACHE_HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
PREEMPTIONS = "vllm:num_preemptions_total"
DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFT_TOKENS = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
TTFT, ITL = "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds"
TPOT, QUEUE = "vllm:request_time_per_output_token_seconds", "vllm:request_queue_time_seconds"
ENGINE_REQUESTS = "vllm:request_params_n_count"
"""Requests that the engine finished; n > 1 answers to one prompt are one, and each step of a beam search is one."""
ONE_TOKEN, ONE_TOKEN_ASKED = "vllm:request_generation_tokens_bucket", "vllm:request_params_max_tokens_bucket"
"""Buckets of which the one up to 1 is read: sequences that had one token, and those that asked for no more."""
FINISHED, REJECTED, HTTP = "vllm:request_success_total", "vllm:admission_rejections_total", "http_requests_total"

E2E = "vllm:e2e_request_latency_seconds"

GAUGES = (RUNNING, WAITING)
HISTOGRAMS = (TTFT, ITL, TPOT, QUEUE)
COUNTERS = (PROMPT, GENERATED, CACHE_QUERIES, CACHE_HITS, PREEMPTIONS, DRAFTS, DRAFT_TOKENS, ACCEPTED)
OUTCOMES = {FINISHED: "finished_reason", REJECTED: "reason", HTTP: "status"}
"""Counters of requests by their outcome, and the label that names it."""

_OF_ONE = frozenset({ONE_TOKEN, ONE_TOKEN_ASKED})
_SUMS = frozenset(
    (
        RUNNING,
        WAITING,
        ENGINE_REQUESTS,
        *COUNTERS,
        *(f"{name}_{part}" for name in HISTOGRAMS for part in ("sum", "count")),
    )
)
STARTED, _CREATED = "process_start_time_seconds", "vllm:prompt_tokens_created"
_CACHE = "vllm:cache_config_info"


@dataclass(frozen=True)
class Sample:
    """The metrics of one server process at one moment.

    Attributes:
        read_at: When it was read, in seconds of any one clock.
        sums: Gauges, counters, sums and counts of histograms, and the buckets up to 1 of `ONE_TOKEN` and
            `ONE_TOKEN_ASKED`, by name, over all engines and models.
        kv_usage: The share of the KV cache in use, of the engine that uses most; None where not reported.
        outcomes: Requests by (metric, outcome).
        engines: The number of engines.
        started: When the process started, in Unix seconds; None where not reported.
        created: When its counters began, in Unix seconds: two processes of one second differ in it.
        cache_config: Labels of vLLM's `cache_config_info`, by name; empty where not reported.
    """

    read_at: float
    sums: Mapping[str, float]
    kv_usage: float | None
    outcomes: Mapping[tuple[str, str], float]
    engines: int
    started: float | None = None
    created: float | None = None
    cache_config: Mapping[str, str] = field(default_factory=dict)

    @property
    def process(self) -> tuple[float | None, float | None]:
        """What distinguishes this process from another one behind the same address."""
        return self.started, self.created

    def get(self, name: str) -> float | None:
        """A gauge or a counter; None where the server does not have it."""
        return self.sums.get(name)


def parse(text: str, read_at: float) -> Sample | None:
    """The sample of a `/metrics` response; None where it is not vLLM's."""
    sums: defaultdict[str, float] = defaultdict(float)
    outcomes: defaultdict[tuple[str, str], float] = defaultdict(float)
    usages: list[float] = []
    engines: set[str] = set()
    instants: dict[str, float] = {}
    config: dict[str, str] = {}
    for name, labels, value in series(text):
        if name in _SUMS:
            sums[name] += value
            engines.add(labels.get("engine", ""))
        elif name in _OF_ONE and labels.get("le") in {"1", "1.0"}:
            sums[name] += value
        elif name == KV_USAGE:
            usages.append(value)
        elif name in OUTCOMES and (name != HTTP or is_of_a_model(labels)):
            outcomes[name, labels.get(OUTCOMES[name], "")] += value
        elif name in {STARTED, _CREATED}:
            instants[name] = max(value, instants.get(name, value))
        elif name == _CACHE:
            config = labels
    if RUNNING not in sums or WAITING not in sums:
        return None
    return Sample(
        read_at=read_at,
        sums=dict(sums),
        kv_usage=max(usages, default=None),
        outcomes=dict(outcomes),
        engines=len(engines),
        started=instants.get(STARTED),
        created=instants.get(_CREATED),
        cache_config=config,
    )


def why_not_comparable(first: Sample, last: Sample) -> str:
    """Why the difference of two samples says nothing, "" where it does: both are of one process, and it counted on."""
    if first.process != last.process:
        return "another process answered the second time: the server was restarted, or several instances serve here"
    for name in (*COUNTERS, ENGINE_REQUESTS, *(f"{name}_count" for name in HISTOGRAMS)):
        before, after = first.get(name), last.get(name)
        if (before is None) != (after is None):
            return f"{name} was reported one time only: several instances serve here"
        if before is not None and after is not None and after < before:
            return (
                f"{name} fell from {before:g} to {after:g}: the server was restarted, or several instances serve here"
            )
    return ""


def is_of_a_model(labels: Mapping[str, str]) -> bool:
    """Whether a count of HTTP requests is of requests to the model, not of probes and readers of metrics."""
    return labels.get("method") == "POST" and labels.get("handler", "").startswith("/v1/")
