"""Charts of vLLM's own figures, in PromQL, for a dashboard; where a collector writes its series. Pure."""

from collections.abc import Mapping
from typing import Any

from bezel_components.observability.figure_alerts import quantile

_EACH = "${__interval}"
"""Step of a chart, which Cloud Monitoring puts in."""
_PERCENTILES = (0.5, 0.95, 0.99)


def figure_charts(matchers: str, *, drafts: bool) -> list[dict[str, Any]]:
    """Return the widgets of a server's series.

    Args:
        matchers: Matchers of its series (`bezel.planner.team.series_labels`).
        drafts: Whether it has speculative decoding.
    """

    def rate(name: str, by: str = "", more: str = "") -> str:
        return f"sum{f' by ({by})' if by else ''} (rate({name}{{{matchers}{more}}}[{_EACH}]))"

    def percentiles(name: str) -> dict[str, str]:
        return {f"{share:.0%}": quantile(share, name, matchers, _EACH) for share in _PERCENTILES}

    def share(part: str, whole: str) -> str:
        return f"{rate(part)} / {rate(whole)}"

    charts: dict[str, dict[str, str]] = {
        "Time to the first token, s": percentiles("vllm:time_to_first_token_seconds"),
        "Time for each further token, s": percentiles("vllm:request_time_per_output_token_seconds"),
        "Time of a whole request, s": percentiles("vllm:e2e_request_latency_seconds"),
        "Requests in the server": {
            "running": f"sum(vllm:num_requests_running{{{matchers}}})",
            "waiting": f"sum(vllm:num_requests_waiting{{{matchers}}})",
        },
        "Tokens per second": {
            "prompts": rate("vllm:prompt_tokens_total"),
            "responses": rate("vllm:generation_tokens_total"),
        },
        "Use of the KV cache, fullest instance": {"": f"max(vllm:kv_cache_usage_perc{{{matchers}}})"},
        "Share of prompts found in the prefix cache": {
            "": share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
        },
        "Ends of requests per second, by reason": {"": rate("vllm:request_success_total", "finished_reason")},
        "Failed responses per second, by class": {"": rate("http_requests_total", "status", ',status=~"4xx|5xx"')},
        "Requests that lost their place in the KV cache, per second": {"": rate("vllm:num_preemptions_total")},
    }
    if drafts:
        accepted, drafted = "vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_draft_tokens_total"
        charts["Accepted share of drafted tokens"] = {"": share(accepted, drafted)}
    return [chart(title, queries) for title, queries in charts.items()]


def chart(title: str, queries: Mapping[str, str]) -> dict[str, Any]:
    """Return the widget of queries in PromQL by their legends; without one the labels of a series are its legend."""
    return {"title": title, "xyChart": {"dataSets": [_series(query, legend) for legend, query in queries.items()]}}


def _series(query: str, legend: str) -> dict[str, Any]:
    named = {"legendTemplate": legend} if legend else {}
    return {"plotType": "LINE", "timeSeriesQuery": {"prometheusQuery": query}, **named}
