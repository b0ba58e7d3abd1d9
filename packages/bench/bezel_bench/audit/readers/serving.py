"""Reader of flat summaries of a run: `vllm bench serve --save-result`, sglang's bench_serving, and scripts after them.

One run an object; a file may hold several, as a list or one a line. Traps (vLLM 0.32, vllm/benchmarks/serve.py; sglang,
python/sglang/bench_serving.py): `max_concurrent_requests` counts whole seconds and is not a level of concurrency;
throughput counts completed requests only; inter-token latencies are gaps between chunks, which merge.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bezel_bench.audit.figure import StatedFigure, figure, is_unlimited, number, whole, why_no_figure
from bezel_bench.audit.labels import date_in
from bezel_bench.audit.readers.fields import QUANTILES, SETTINGS, ReadNames, not_read, unread
from bezel_bench.audit.readers.requests import LISTED, SingleRequests, single_requests, why_no_list
from bezel_bench.audit.spread import Spread
from bezel_bench.audit.systems import system_of
from bezel_bench.audit.table import (
    INPUT,
    LATENCIES,
    OUTPUT,
    OUTPUT_LENGTH,
    REQUESTS,
    TOTAL,
    Clock,
    ResultSource,
    Row,
    median_of,
)
from bezel_bench.audit.units import time_of
from bezel_bench.audit.words import names

_NEEDED = ("completed", "duration", "request_throughput", "total_output_tokens")
_RATES = {
    REQUESTS: ("request_throughput",),
    OUTPUT: ("output_throughput", "output_token_throughput"),
    INPUT: ("input_throughput", "input_token_throughput"),
    TOTAL: ("total_token_throughput", "total_throughput"),
}
_READ = (
    *_NEEDED, *(name for aliases in _RATES.values() for name in aliases), "total_input_tokens", "max_concurrency",
    "request_rate", "num_prompts", "failed", "total_cached_tokens", "spec_decode_num_drafts",
    "spec_decode_draft_tokens", "spec_decode_accepted_tokens", "concurrency", "cache_report.total_cached_tokens",
    "date", "endpoint_type", "ramp_up_strategy", *LISTED,
    *(name for aliases in names("settings").values() for name in aliases),
)  # fmt: skip
_SETTINGS = (
    "burstiness", "random_input_len", "random_output_len", "random_range_ratio", "sharegpt_output_len", "seed",
    "ramp_up_start_rps", "ramp_up_end_rps", "port", "server_info", "backend", "label", "tag", "tokenizer_id",
    "dataset_name",
)  # fmt: skip
_COUNTS = (
    "completed", "failed", "num_prompts", "total_output_tokens", "total_input_tokens", "total_cached_tokens",
    "max_concurrency", "spec_decode_num_drafts", "spec_decode_draft_tokens", "spec_decode_accepted_tokens",
)  # fmt: skip
_NUMBERS = ("duration", "request_rate", "concurrency", *(name for aliases in _RATES.values() for name in aliases))
_SGLANG = ("total_output_tokens_retokenized", "mean_e2e_latency_ms", "accept_length")
_VLLM = re.compile(r"mean_(ttft|tpot|itl|e2el)_ms")
_CLOCK = Clock(within=0.02, tail=0.02)
_UNKNOWN = Clock(within=0.05, tail=0.05)
_QUEUED = "client_queue_time"


def is_serving(document: Any) -> bool:
    """Whether a document is one run, or a list of them."""
    runs = document if isinstance(document, list) else [document]
    return bool(runs) and all(isinstance(run, Mapping) and all(name in run for name in _NEEDED) for run in runs)


def read_serving(document: Any, item: str, label: str) -> ResultSource:
    """Return the runs of a document; metadata given with --metadata are read as settings."""
    runs = document if isinstance(document, list) else [document]
    tools = {_tool(run) for run in runs}
    read = [_Run(run, label) for run in runs]
    left = dict.fromkeys(
        name for run in read for name in unread(run.fields, ReadNames((*_READ, *run.names), (), _SETTINGS))
    )
    return ResultSource(
        item=item,
        format=tools.pop() if len(tools) == 1 else "summaries of several tools",
        rows=tuple(run.row(order, len(runs)) for order, run in enumerate(read, start=1)),
        dated=date_in(str(runs[0].get("date", ""))),
        unread=tuple(sorted(left, key=lambda each: each.endswith(SETTINGS))),
        doubts=tuple(dict.fromkeys(doubt for run in read for doubt in run.doubts)),
    )


def _tool(run: Mapping[str, Any]) -> str:
    """Return the tool by the names that only its writer uses."""
    if any(name in run for name in _SGLANG):
        return "sglang bench_serving"
    if any(_VLLM.match(name) for name in run) or "endpoint_type" in run:
        return "vllm bench serve"
    return "summary like that of vllm bench serve, of an unknown tool"


class _Run:
    """One run: its latencies by the names of their fields, and its requests where the run lists them."""

    def __init__(self, fields: Mapping[str, Any], label: str) -> None:
        self.label = label
        self.names: list[str] = []
        self.doubts: list[str] = []
        self.fields = fields = self._possible(fields)
        self.figures: dict[str, StatedFigure] = {}
        self.spreads: dict[str, Spread] = {}
        self.queued: Spread | None = None
        self.seconds = number(fields["duration"])
        for rate, aliases in _RATES.items():
            if parsed := next((parsed for name in aliases if (parsed := figure(fields.get(name)))), None):
                self.figures[rate] = parsed
        self._read_latencies()
        self.single: SingleRequests | None = single_requests(fields)
        listed = self.single.latency if self.single else None
        if listed and listed.mean and "e2e" not in self.figures:
            self.figures["e2e"] = StatedFigure(listed.mean, 0.0)
            self.spreads["e2e"] = listed

    def _possible(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields without numbers that cannot be ones, each of which is a doubt: it is unknown, and not 0."""
        left = dict(fields)
        for name in LISTED:
            value = fields.get(name)
            if name != "errors" and value is not None and (why := why_no_list(value)):
                self.doubts.append(not_read(name, why))
                left[name] = None
        for name, value in fields.items():
            is_count = name in _COUNTS
            if not is_count and name not in _NUMBERS and time_of(str(name)) is None:
                continue
            if name == "request_rate" and is_unlimited(value):
                continue
            if why := why_no_figure(value, counts=is_count):
                self.doubts.append(not_read(str(name), why))
                left[name] = None
        return left

    def row(self, order: int, of: int) -> Row:
        """Return the row of the run."""
        fields = self.fields
        completed, output = whole(fields["completed"]), whole(fields["total_output_tokens"])
        prompt = whole(fields.get("total_input_tokens"))
        drafts = whole(fields.get("spec_decode_num_drafts"))
        planned, failed, single = whole(fields.get("num_prompts")), whole(fields.get("failed")), self.single
        spreads = dict(self.spreads)
        if single and single.lengths:
            spreads[OUTPUT_LENGTH] = single.lengths
        return Row(
            where=f"run {order}" if of > 1 else "the run",
            order=order,
            context=round(prompt / completed) if prompt and completed else None,
            users=whole(fields.get("max_concurrency")),
            rate=None if fields.get("ramp_up_strategy") else number(fields.get("request_rate")),
            output_tokens=round(output / completed) if output and completed else None,
            figures=self.figures,
            seconds=self.seconds,
            planned=planned,
            requests=None if completed is None else completed + (failed or 0),
            completed=completed,
            failed=failed,
            prompt_tokens=prompt,
            cached_tokens=_cached_tokens(fields),
            generated_tokens=output,
            drafts=drafts,
            draft_tokens=whole(fields.get("spec_decode_draft_tokens")),
            accepted=whole(fields.get("spec_decode_accepted_tokens")),
            peak_in_flight=single.peak if single else None,
            in_flight=number(fields.get("concurrency")) if _tool(fields).startswith("sglang") else None,
            mean_prompt=prompt / completed if prompt and completed else None,
            mean_output=output / completed if output and completed else None,
            spreads=spreads,
            clock=_UNKNOWN if _tool(fields).startswith("summary") else _CLOCK,
            recounted=single.recounted if single else {},
            delay=self.queued if number(fields.get("request_rate")) else None,
            system=system_of({"speculation": "drafts" if drafts else None, **fields}, self.label),
        )

    def _read_latencies(self) -> None:
        """Read every latency whose name is known; one without a unit is read as seconds where it can be."""
        latencies: dict[str, dict[str, tuple[StatedFigure, str]]] = {}
        for field in self.fields:
            time = time_of(str(field))
            value = figure(self.fields[field]) if time else None
            if time is None or value is None:
                continue
            if time.factor is None and self.seconds is not None and value.value > self.seconds:
                self.doubts.append(
                    f"{field} was not read: its name has no unit, and {value.value:g} s are more than the whole run of "
                    f"{self.seconds:g} s"
                )
                continue
            self.names.append(str(field))
            latencies.setdefault(time.latency, {})[time.statistic] = (value.scale(time.factor or 1.0), str(field))
        for latency, statistics in latencies.items():
            spread = _spread({name: value for name, (value, _) in statistics.items()})
            if latency == _QUEUED:
                self.queued = spread
            else:
                self._keep(latency, spread, {name: value for name, (value, _) in statistics.items()})

    def _keep(self, latency: str, spread: Spread, statistics: Mapping[str, StatedFigure]) -> None:
        if latency in LATENCIES and latency != "itl":  # gaps between chunks, which merge: no figure of a token
            for statistic, name in (("mean", latency), ("median", median_of(latency))):
                if statistic in statistics:
                    self.figures[name] = statistics[statistic]
        if "mean" in statistics and statistics["mean"].value:
            self.spreads[latency] = spread


def _cached_tokens(fields: Mapping[str, Any]) -> int | None:
    """Return the prompt tokens that were cached: vLLM's own field, or that of sglang's report of the cache."""
    report = fields.get("cache_report")
    stated = report.get("total_cached_tokens") if isinstance(report, Mapping) else None
    return whole(fields.get("total_cached_tokens", stated))


def _spread(statistics: Mapping[str, StatedFigure]) -> Spread:
    """Return the spread of one latency by the names of its statistics."""
    values = {name: value.value for name, value in statistics.items()}
    spread = Spread(
        mean=values.get("mean"),
        deviation=values.get("std"),
        least=values.get("min"),
        most=values.get("max"),
        half=max((value.half for value in statistics.values()), default=0.0),
    )
    return replace(spread, quantiles={QUANTILES[name]: value for name, value in values.items() if name in QUANTILES})
