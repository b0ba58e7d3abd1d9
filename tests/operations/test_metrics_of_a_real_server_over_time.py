"""Figures over time of a real vLLM against its own counters: scraped, stored and queried on localcloud, over a restart.

BEZEL_REAL_VLLM names a folder with `venv/bin/vllm` and `models/tiny-gemma4`; without it the last test is skipped.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.sample import Sample, parse
from bezel_bench.server.counters import series
from tests.support.operations.collected_series import CollectedSeries
from tests.support.operations.deployed import NOW, SERVICE, Deployed, live_service, state_of
from tests.support.operations.mixed_load import Client, at_once, join_threads
from tests.support.operations.prometheus_server import with_collector
from tests.support.real_vllm import TIMEOUT, real_vllm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.operations.metrics.result import Metrics

pytestmark = [pytest.mark.timeout(2 * TIMEOUT)]
RECORDED = (Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm" / "metrics.txt").read_text()
TEXT = RECORDED[RECORDED.index("# HELP") :]
MINUTE = 60.0
HISTOGRAMS = {"ttft": names.TTFT, "itl": names.ITL, "queue_time": names.QUEUE, "e2e": names.E2E}


@pytest.fixture
def collection(cloud: Deployed, tmp_path: Path) -> Iterator[CollectedSeries]:
    """A deployed stack without an instance now, whose series are those of localcloud's collector."""
    kept = CollectedSeries(tmp_path / "localcloud")
    cloud.keep("dev", state_of(with_collector(), url="https://llm.example", model="tiny-gemma4"))
    cloud.live[SERVICE] = live_service()
    cloud.server.routes[:0] = [kept.answer]
    yield kept
    kept.project.close()


def counters_of(text: str) -> dict[str, float]:
    """Every number of a `/metrics` text that figures are made of, by its name; of buckets by name and bound."""
    numbers: defaultdict[str, float] = defaultdict(float)
    for name, labels, value in series(text):
        if not name.endswith("_created"):
            numbers[f"{name} {labels['le']}" if "le" in labels else name] += value
    sample = parse(text, 0.0)
    assert sample is not None
    return {**numbers, **{f"{metric} {outcome}": value for (metric, outcome), value in sample.outcomes.items()}}


def increases_of(*processes: tuple[str, str]) -> dict[str, float]:
    """What processes counted between a first and a last text of each, "" for one that began in the time."""
    total: defaultdict[str, float] = defaultdict(float)
    for first, last in processes:
        before = counters_of(first) if first else {}
        for name, value in counters_of(last).items():
            total[name] += value - before.get(name, 0.0)
    return dict(total)


def check(report: Metrics, truth: dict[str, float]) -> list[tuple[str, float, float]]:
    """Compare every figure with the server's own counters; (figure, reported, counted) of each."""

    def ratio(part: str, whole: str) -> float:
        return truth[part] / truth[whole]

    single = truth[f"{names.ONE_TOKEN} 1.0"]
    calls = {outcome: truth.get(f"{names.HTTP} {outcome}", 0.0) for outcome in ("2xx", "5xx")}
    expected = {
        "ttft": ratio(f"{names.TTFT}_sum", f"{names.TTFT}_count"),
        "itl": ratio(f"{names.ITL}_sum", f"{names.ITL}_count"),
        "queue_time": ratio(f"{names.QUEUE}_sum", f"{names.QUEUE}_count"),
        "tpot": truth[f"{names.TPOT}_sum"] / (truth[f"{names.TPOT}_count"] - single),
        "prefix_cache_hit_rate": ratio(names.CACHE_HITS, names.CACHE_QUERIES),
        "preemptions": truth[names.PREEMPTIONS],
        "success_rate": calls["2xx"] / (calls["2xx"] + calls["5xx"]),
        "prompt_throughput": truth[names.PROMPT] / (report.interval_seconds or math.nan),
        "generation_throughput": truth[names.GENERATED] / (report.interval_seconds or math.nan),
        "requests_rate": sum(calls.values()) / (report.interval_seconds or math.nan),
    }
    shown = {figure.name: figure.value for figure in report.figures}
    rows = [(name, _number(shown[name]), value) for name, value in expected.items()]
    rows += [
        (f"requests {each.outcome} ({each.counted_by})", each.requests, truth[f"{metric} {each.outcome}"])
        for each in report.outcomes
        for metric, part in ((names.HTTP, "http"), (names.FINISHED, "engine"), (names.REJECTED, "queue"))
        if part == each.counted_by
    ]
    windows = {"prompt_tokens": names.PROMPT, "generated_tokens": names.GENERATED}
    rows += [(name, sum(getattr(each, name) for each in report.course), truth[of]) for name, of in windows.items()]
    for each in report.latencies:
        if each.name in HISTOGRAMS:
            family = HISTOGRAMS[each.name]
            rows.append((f"{each.name} observed", each.observations or 0, truth[f"{family}_count"]))
            rows.append((f"{each.name} mean", _number(each.mean), ratio(f"{family}_sum", f"{family}_count")))
            bounds = sorted(float(name.split()[1]) for name in truth if name.startswith(f"{family}_bucket "))
            below = {bound: truth[f"{family}_bucket {_le(bound)}"] for bound in bounds}
            for percentile, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
                holds = next(bound for bound in bounds if below[bound] >= share * truth[f"{family}_count"])
                low = max((bound for bound in bounds if bound < holds), default=0.0)
                value = getattr(each, percentile)
                assert low <= value <= holds, (each, percentile, low, holds)
    for name, reported, true in rows:
        assert reported == pytest.approx(true, rel=1e-9, abs=1e-12), (name, reported, true)
    return rows


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _le(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else f"{bound}"


def test_series_of_localcloud_s_collector_are_what_the_server_counted(
    cloud: Deployed, collection: CollectedSeries
) -> None:
    """A recorded server before the time, in it, restarted in place, and another instance."""
    restarted = TEXT.replace("process_start_time_seconds 1.79521977258e+09", "process_start_time_seconds 1.7953e+09")
    assert restarted != TEXT
    for text, ago, instance in (
        (TEXT, 125, "a1"), (TEXT, 90, "a1"), (restarted, 60, "a1"), (restarted, 59, "a1"), (TEXT, 30, "b2"),
    ):  # fmt: skip
        collection.scrape(text, NOW - ago * MINUTE, instance)
    report = metrics(cloud.context, MetricsArguments(stack="dev", since="2h"))
    check(report, increases_of((TEXT, TEXT), ("", restarted), ("", TEXT)))
    assert (report.starts, report.servers) == (2, 1)
    assert collection.queries > 60


def mixed_load(url: str, scale: int) -> None:
    """One-token answers, streams, n > 1, a prompt twice, a stream that is left, refused calls.

    Without lists of prompts: beside answers of one token they look like beam searches, and TTFT is then not judged.
    """
    client = Client(url, "tiny-gemma4")
    long = "word " * 200
    calls = [
        lambda: client.whole(max_tokens=1),
        lambda: client.whole(max_tokens=12, n=2),
        lambda: client.whole(prompt="a b c", max_tokens=6),
        lambda: client.stream(max_tokens=24),
        lambda: client.stream(prompt=long, max_tokens=9),
        lambda: client.stream(prompt=long, max_tokens=9),
        lambda: client.stream(leave_after=2, max_tokens=400),
        lambda: client.whole(max_tokens=100_000),
        lambda: client.http.post("/v1/completions", json={"model": "another", "prompt": "x"}),
    ]
    for _ in range(scale):
        join_threads(at_once(*calls))
    client.at_rest()


def sample_of(text: str) -> Sample:
    parsed = parse(text, 0.0)
    assert parsed is not None
    return parsed


@pytest.mark.slow
def test_figures_of_a_real_server_are_its_own_counters_over_a_restart(
    cloud: Deployed, collection: CollectedSeries, tmp_path: Path
) -> None:
    """Load before the time and in it, a restart, load, and nothing since: the service is at zero instances."""
    with real_vllm(tmp_path) as (url, _):
        mixed_load(url, 2)
        before = collection.scrape_server(url, NOW - 300 * MINUTE)
        collection.scrape(before, NOW - 245 * MINUTE)
        mixed_load(url, 2)
        collection.scrape_server(url, NOW - 200 * MINUTE)
        mixed_load(url, 1)
        first = collection.scrape_server(url, NOW - 199.5 * MINUTE)
    with real_vllm(tmp_path) as (url, _):
        collection.scrape_server(url, NOW - 198 * MINUTE)
        mixed_load(url, 6)  # more than the process before had counted since its start
        last = collection.scrape_server(url, NOW - 190 * MINUTE)
    report = metrics(cloud.context, MetricsArguments(stack="dev", since="4h"))
    rows = check(report, increases_of((before, first), ("", last)))
    assert (report.source, report.starts) == ("series", 1)
    assert sample_of(last).sums[names.GENERATED] > sample_of(first).sums[names.GENERATED]
    for name, reported, true in rows:
        print(f"{name:<28} {reported:>16.9g} {true:>16.9g}")
