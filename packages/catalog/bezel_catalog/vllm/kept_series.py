"""Series of vLLM's /metrics that a stack with `observability.metrics` keeps over time.

Owns their names, kinds and labels, the rule by which a collector keeps them, and the samples of one scrape. Leaves out
what no chart, alert or command reads: a server exports some hundred series, and each point written is billed.

Facts: names, labels and buckets as vLLM 0.32.0 and 0.33.0 send them (recorded servers, November 2026). What collectors
write beside them: GoogleCloudPlatform/run-gmp-sidecar (confgenerator/agentmetrics.go, golden files of its tests, the
exporter's default configuration) and opentelemetry-operations-go (googlemanagedprometheus/extra_metrics.go), read
2026-11-29. All of it goes to `prometheus.googleapis.com`, the collector's own `agent/*` too, and no source calls any of
it free, so all of it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
SERVER = ("engine", "model_name")
"""Labels that each engine of a server puts on its series."""


@dataclass(frozen=True, slots=True)
class KeptSeries:
    """One family of /metrics.

    Attributes:
        name: as Prometheus names the family, a counter's with `_total`.
        kind: of the family.
        labels: that distinguish its series, beside `le`.
        purpose: what it is read for.
        series: series of one engine at most, beside buckets.
        buckets: of a histogram's series at most, with `+Inf`; 0 of other kinds.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    purpose: str
    series: int = 1
    buckets: int = 0


# Eight paths of the API that callers use, each with the classes 2xx, 4xx and 5xx: a recorded server had ten in all.
_RESPONSES = 24
KEPT_SERIES: tuple[KeptSeries, ...] = (
    KeptSeries("process_start_time_seconds", "gauge", (), "which process counted: a restart begins every count again"),
    KeptSeries("vllm:num_requests_running", "gauge", SERVER, "requests in the batch"),
    KeptSeries("vllm:num_requests_waiting", "gauge", SERVER, "queue of the server"),
    KeptSeries("vllm:kv_cache_usage_perc", "gauge", SERVER, "share of the KV cache in use"),
    KeptSeries("vllm:prefix_cache_queries_total", "counter", SERVER, "tokens looked up in the prefix cache"),
    KeptSeries("vllm:prefix_cache_hits_total", "counter", SERVER, "tokens found in the prefix cache"),
    KeptSeries("vllm:num_preemptions_total", "counter", SERVER, "requests that lost their place in the KV cache"),
    KeptSeries("vllm:prompt_tokens_total", "counter", SERVER, "tokens of prompts"),
    KeptSeries("vllm:generation_tokens_total", "counter", SERVER, "tokens of responses"),
    KeptSeries(
        "vllm:request_success_total", "counter", (*SERVER, "finished_reason"), "ends of requests by reason", series=5
    ),
    KeptSeries(
        "vllm:admission_rejections_total", "counter", ("model_name", "reason"), "requests refused by a queue limit", 2
    ),
    KeptSeries("vllm:spec_decode_num_drafts_total", "counter", SERVER, "drafts of speculative decoding"),
    KeptSeries("vllm:spec_decode_num_draft_tokens_total", "counter", SERVER, "tokens of drafts"),
    KeptSeries("vllm:spec_decode_num_accepted_tokens_total", "counter", SERVER, "accepted tokens of drafts"),
    KeptSeries(
        "http_requests_total", "counter", ("handler", "method", "status"), "responses by class", series=_RESPONSES
    ),
    KeptSeries("vllm:time_to_first_token_seconds", "histogram", SERVER, "time to the first token", buckets=23),
    KeptSeries("vllm:inter_token_latency_seconds", "histogram", SERVER, "time between two tokens", buckets=20),
    KeptSeries(
        "vllm:request_time_per_output_token_seconds", "histogram", SERVER, "time for each further token", buckets=20
    ),
    KeptSeries("vllm:e2e_request_latency_seconds", "histogram", SERVER, "time of a whole request", buckets=22),
    KeptSeries("vllm:request_queue_time_seconds", "histogram", SERVER, "time in the queue", buckets=22),
    # vLLM ends its buckets (1, 2, 5, 10, ...) at max-model-len: 20 are those of a million tokens.
    KeptSeries(
        "vllm:request_generation_tokens",
        "histogram",
        SERVER,
        "lengths of answers: one of one token has no time for a further one",
        buckets=20,
    ),
    KeptSeries("vllm:request_params_n", "histogram", SERVER, "requests of the engine, and answers to each", buckets=6),
)
_HISTOGRAM = ("bucket", "sum", "count")
SAMPLES_ABOUT_A_SCRAPE = 5
"""That a collector writes with each scrape, whatever is kept: `up`, and its time, its samples, those that the rule left
and those of new series (`scrape_*`)."""
SAMPLES_ABOUT_A_TARGET = 2
"""That the collector of Cloud Run writes besides with each scrape: `target_info` and `otel_scope_info`."""
SAMPLES_ABOUT_ITSELF = 8
"""That the collector of Cloud Run writes each minute about itself: uptime, memory, calls of the API and points written
(the last two for success and one kind of failure), and the two about its target."""
RECORDED_SAMPLES = 97
"""Samples of one scrape's kept series as recorded: vLLM 0.32.0 after 90 requests of 12 users, of 1 to 300 tokens, on a
busy CPU with drafts by n-gram (2026-11-29). Less than half of the buckets held something; requests that are alike fill
fewer.
"""


def keep_expression() -> str:
    """Return an RE2 expression of the kept names, for `metricRelabeling` with action `keep` on `__name__`.

    Prometheus anchors it. A histogram is kept with its buckets, sum and count.
    """
    plain = [each.name for each in KEPT_SERIES if each.kind != "histogram"]
    histograms = [each.name for each in KEPT_SERIES if each.kind == "histogram"]
    return f"{'|'.join(plain)}|({'|'.join(histograms)})_({'|'.join(_HISTOGRAM)})"


def samples_of_scrape() -> int:
    """Return the samples that one scrape writes at most: every series there, no bucket of a histogram empty, and five.

    With those about the scrape itself. A point of a counter or gauge is one sample; a point of a histogram is two and
    one for each bucket that is not empty (price page of Google Cloud Observability, as quoted).
    """
    kept = sum(each.series * (2 + each.buckets if each.kind == "histogram" else 1) for each in KEPT_SERIES)
    return kept + SAMPLES_ABOUT_A_SCRAPE
