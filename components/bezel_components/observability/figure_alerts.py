"""Alerts on vLLM's own figures, in PromQL, as plain values; where a collector writes its series. Pure.

Owns what each measures. Times are those of the server: waiting for an instance to start is in none of them (the alert
`unhealthy` and the latency of the platform have it). A rate over a counter that begins again counts on, so a restart
opens nothing. A comparison with a quotient by nothing holds never, so hours without a request open nothing either.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bezel_components.observability.alerts import Alert, Query

_WINDOW = "10m"
_EVERY_SECONDS = 60
_FULL_SECONDS = 300
_LEAST_DRAFTED = 1000  # tokens in an hour: fewer tell little


@dataclass(frozen=True)
class Objectives:
    """What callers may expect; seconds at the 95th percentile, None for no alert."""

    max_ttft_seconds: float | None = None
    max_tpot_seconds: float | None = None


def figure_alerts(
    watched: str, matchers: str, *, objectives: Objectives, max_error_share: float, drafts: bool
) -> tuple[Alert, ...]:
    """Return the alerts on a server's series.

    Args:
        watched: What their names call it.
        matchers: Matchers of its series (`bezel.planner.team.series_labels`).
        objectives: Latencies above which an alert opens.
        max_error_share: Share of requests that end with an error of the engine above which an alert opens.
        drafts: Whether it has speculative decoding.
    """
    return (
        *_latencies(watched, matchers, objectives),
        _cache(watched, matchers),
        _queue(watched, matchers),
        _engine_errors(watched, matchers, max_error_share),
        *([_drafts(watched, matchers)] if drafts else []),
    )


def quantile(share: float, name: str, matchers: str, window: str = _WINDOW) -> str:
    """A percentile of a histogram over all instances, in PromQL."""
    return f"histogram_quantile({share:g}, sum by (le) (rate({name}_bucket{{{matchers}}}[{window}])))"


def _latencies(watched: str, matchers: str, objectives: Objectives) -> Iterator[Alert]:
    repair = (
        "Look at the queue, the running requests and the KV cache at that time: fewer requests at once "
        "(`scaling.request_concurrency`) make each faster, more instances all of them."
    )
    for id_, what, name, limit in (
        ("ttft", "the first token", "vllm:time_to_first_token_seconds", objectives.max_ttft_seconds),
        ("tpot", "each further token", "vllm:request_time_per_output_token_seconds", objectives.max_tpot_seconds),
    ):
        if limit is not None:
            query = f"{quantile(0.95, name, matchers)} > {limit:g}"
            title = f"{watched}: more than 5 % of requests take more than {limit:g} s for {what}"
            yield Alert(id_, title, _query(query, _FULL_SECONDS), "WARNING", repair)


def _cache(watched: str, matchers: str) -> Alert:
    return Alert(
        "kv-cache-full",
        f"{watched}: requests wait for a full KV cache",
        _query(f"{_full(matchers)} and {_waiting(matchers)}", _FULL_SECONDS),
        "WARNING",
        "Requests wait at the server although it could compute more: allow more instances, a shorter max-model-len, a "
        "KV cache of fewer bits, or fewer requests at once (`scaling.request_concurrency`).",
    )


def _queue(watched: str, matchers: str) -> Alert:
    return Alert(
        "queue",
        f"{watched}: requests wait at the server for a place in the batch",
        _query(f"{_waiting(matchers)} unless {_full(matchers)}", 2 * _FULL_SECONDS),
        "WARNING",
        "More requests reach the server than its batch takes, while its KV cache has room: allow more instances, raise "
        "`vllm.max-num-seqs`, or fewer requests at once (`scaling.request_concurrency`).",
    )


def _engine_errors(watched: str, matchers: str, max_share: float) -> Alert:
    name = "vllm:request_success_total"
    failed = f'sum(rate({name}{{{matchers},finished_reason="error"}}[{_WINDOW}]))'
    return Alert(
        "engine-errors",
        f"{watched}: more than {max_share:.0%} of requests end with an error of the engine",
        _query(f"{failed} / sum(rate({name}{{{matchers}}}[{_WINDOW}])) > {max_share:g}"),
        "ERROR",
        "A stream that breaks off has the status 200, so no count of responses shows it: read the server's log.",
    )


def _drafts(watched: str, matchers: str) -> Alert:
    drafted = f"sum(increase(vllm:spec_decode_num_draft_tokens_total{{{matchers}}}[1h])) > {_LEAST_DRAFTED}"
    accepted = f"sum(increase(vllm:spec_decode_num_accepted_tokens_total{{{matchers}}}[1h])) == 0"
    return Alert(
        "drafts",
        f"{watched}: no draft of the last hour was accepted",
        _query(f"{drafted} and {accepted}"),
        "WARNING",
        "Speculative decoding costs time and gains none: the draft model may be another one's, or the texts are not "
        "what it was trained for. Remove `vllm.spec-method`, or correct the draft model.",
    )


def _full(matchers: str) -> str:
    return f"max by (instance) (vllm:kv_cache_usage_perc{{{matchers}}}) > 0.95"


def _waiting(matchers: str) -> str:
    return f"max by (instance) (vllm:num_requests_waiting{{{matchers}}}) > 0"


def _query(query: str, seconds: int = 0) -> Query:
    """A condition on series that nothing has written before the first instance ran."""
    return Query(query, seconds, _EVERY_SECONDS, is_written_late=True)
