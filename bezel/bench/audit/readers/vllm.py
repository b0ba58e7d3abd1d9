"""Reader of the JSON of `vllm bench serve --save-result`: one run an object; `--append-result` appends runs.

Traps of the format (vLLM 0.32): `max_concurrent_requests` counts whole seconds and is not a level of concurrency;
throughput counts completed requests only.
"""

import bisect
from collections.abc import Mapping
from typing import Any

from bezel.bench.audit.figure import figure, number, whole
from bezel.bench.audit.labels import date_in
from bezel.bench.audit.systems import system_of
from bezel.bench.audit.table import LATENCIES, OUTPUT, REQUESTS, TOTAL, ResultSource, Row, median_of

_NEEDED = ("completed", "duration", "request_throughput", "total_output_tokens")
# Figure -> field of the run, factor to seconds.
_FIGURES = {
    REQUESTS: ("request_throughput", 1.0),
    OUTPUT: ("output_throughput", 1.0),
    TOTAL: ("total_token_throughput", 1.0),
    **{name: (f"mean_{'e2el' if name == 'e2e' else name}_ms", 1e-3) for name in LATENCIES},
    **{median_of(name): (f"median_{'e2el' if name == 'e2e' else name}_ms", 1e-3) for name in LATENCIES},
}


def is_vllm(document: Any) -> bool:
    """Whether JSON is one run, or a list of them."""
    runs = document if isinstance(document, list) else [document]
    return bool(runs) and all(isinstance(run, Mapping) and all(name in run for name in _NEEDED) for run in runs)


def read_vllm(document: Any, item: str, label: str) -> ResultSource:
    """Return the runs of a document; metadata given with --metadata are read as settings."""
    runs = document if isinstance(document, list) else [document]
    rows = tuple(_row(run, order, label, len(runs)) for order, run in enumerate(runs, start=1))
    return ResultSource(item=item, format="vllm bench serve", rows=rows, dated=date_in(str(runs[0].get("date", ""))))


def _row(run: Mapping[str, Any], order: int, label: str, of: int) -> Row:
    completed, output = whole(run["completed"]) or 0, whole(run["total_output_tokens"]) or 0
    prompt = whole(run.get("total_input_tokens"))
    figures = {
        name: value.scaled(factor) for name, (field, factor) in _FIGURES.items() if (value := figure(run.get(field)))
    }
    return Row(
        where=f"run {order}" if of > 1 else "the run",
        order=order,
        context=round(prompt / completed) if prompt and completed else None,
        users=whole(run.get("max_concurrency")),
        rate=number(run.get("request_rate")),
        output_tokens=round(output / completed) if completed else None,
        figures=figures,
        seconds=number(run["duration"]),
        planned=whole(run.get("num_prompts")),
        requests=completed + (whole(run.get("failed")) or 0),
        completed=completed,
        failed=whole(run.get("failed")),
        prompt_tokens=prompt,
        cached_tokens=whole(run.get("total_cached_tokens")),
        generated_tokens=output,
        drafts=whole(run.get("spec_decode_num_drafts")),
        draft_tokens=whole(run.get("spec_decode_draft_tokens")),
        accepted=whole(run.get("spec_decode_accepted_tokens")),
        peak_in_flight=_peak(run),
        system=system_of({"speculation": "drafts" if run.get("spec_decode_num_drafts") else None, **run}, label),
    )


def _peak(run: Mapping[str, Any]) -> int | None:
    """Return the most requests under way at once, by their starts and ends; None without single requests."""
    starts, ttfts, gaps = run.get("start_times"), run.get("ttfts"), run.get("itls")
    if not (isinstance(starts, list) and isinstance(ttfts, list) and isinstance(gaps, list)):
        return None
    if not starts or not len(starts) == len(ttfts) == len(gaps):
        return None
    ends = sorted(start + ttft + sum(gap) for start, ttft, gap in zip(starts, ttfts, gaps, strict=True))
    begun = sorted(starts)
    return max(index + 1 - bisect.bisect_right(ends, start) for index, start in enumerate(begun))
