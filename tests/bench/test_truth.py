"""Comparison with the server that knows the truth: exact figures pass, wrong ones are found, of the real server too."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench_support.runs import BEGAN, MS, SECOND, failed_sample, good_sample
from bezel_bench.result.columns import Columns
from bezel_bench.result.sample import CLIENT, HTTP_5XX, TRUNCATED, Sample
from tests.support.needed_programs import need_program
from tools.bench.truth.compare import Compared, compare_cell
from tools.bench.truth.loads import LOADS, TruthLoad
from tools.bench.truth.truth_server import Record

TTFT, TOKENS, EVERY = 100 * MS, 11, 20 * MS


def samples(count: int = 200) -> list[Sample]:
    return [good_sample(index, BEGAN + index * EVERY, ttft=TTFT + index % 7 * MS) for index in range(count)]


def record(sample: Sample, **other: Any) -> Record:
    """What a server knows of a request that arrived as it was sent."""
    outcome = {"": "ok", HTTP_5XX: "error", TRUNCATED: "reset"}[sample.failure]
    exact = Record(sample.index, sample.sent, sample.sent, sample.first, sample.last, sample.done, TOKENS, outcome)
    return replace(exact, **other)


def cell(rows: list[Sample], **figures: float) -> dict[str, Any]:
    """The client's figures of these requests, in a window of two seconds."""
    good = [one for one in rows if not one.failure]
    begins, ends = BEGAN + SECOND, BEGAN + 3 * SECOND
    inside = [one for one in good if begins < one.done <= ends]
    ttft = sorted((one.first - one.sent) / MS for one in inside)
    seconds = (ends - begins) / SECOND
    figures_of_rows = {
        "requests_per_second": len(inside) / seconds,
        "output_tokens_per_second": TOKENS * len(inside) / seconds,
        "ttft_p50": ttft[len(ttft) // 2],
        "ttft_p99": ttft[-1],
        "tpot_mean": 10.0,
    }
    return {
        "state": "ok",
        "users": 8,
        "window": {"begins": 1.0, "ends": 3.0},
        "metrics": {name: {"value": value} for name, value in (figures_of_rows | figures).items()},
    }


def compare_rows(rows: list[Sample], truth: list[Record] | None = None, **figures: float) -> Compared:
    return compare_cell(cell(rows, **figures), Columns.of(rows), BEGAN, truth or [record(one) for one in rows])


def test_exact_figures_have_no_fault() -> None:
    rows = samples()
    result = compare_rows(rows)
    assert result.faults("ok") == []
    assert (result.requests, result.ttft_p99_ms, result.paired_p99_ms) == (200, pytest.approx(0, abs=0.01), 0)
    assert result.rate == pytest.approx(0, abs=0.005)


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"requests_per_second": 51.0}, "requests/s are +"),
        ({"output_tokens_per_second": 500.0}, "tokens/s are -"),
        ({"ttft_p99": 107.5}, "TTFT p99 is +1.5"),
    ],
)
def test_a_wrong_figure_is_found(figures: dict[str, float], message: str) -> None:
    (fault,) = compare_rows(samples(), **figures).faults("ok")
    assert message in fault


def test_what_the_client_measures_late_is_found() -> None:
    rows = samples()
    truth = [record(one, first=one.first - 3 * MS) for one in rows]
    result = compare_rows(rows, truth)
    assert result.ttft_p50_ms == pytest.approx(3, abs=0.1)
    assert any("TTFT p99 is +3" in fault for fault in result.faults("ok"))


def test_a_client_that_was_the_limit_is_accused_of_its_counts_alone() -> None:
    rows = samples()
    limited = cell(rows, ttft_p99=900.0) | {"state": "client_limited"}
    truth = [record(one) for one in rows]
    assert compare_cell(limited, Columns.of(rows), BEGAN, truth).faults("client_limited") == []
    assert compare_cell(limited, Columns.of(rows), BEGAN, truth[1:]).faults("client_limited") != []


def test_another_state_than_that_of_the_load_is_a_fault() -> None:
    assert compare_rows(samples()).faults("saturated") == ["the state is ok, not saturated"]


def test_failures_are_compared_by_their_kind() -> None:
    rows = samples()
    rows[3] = failed_sample(3, rows[3].sent, HTTP_5XX)
    rows[5] = failed_sample(5, rows[5].sent, TRUNCATED)
    assert compare_rows(rows).faults("ok") == []
    swapped = [record(one) for one in rows]
    swapped[3], swapped[5] = replace(swapped[3], outcome="reset"), replace(swapped[5], outcome="reset")
    assert any(
        "1 requests counted as http_5xx, 0 ended by error" in fault
        for fault in compare_rows(rows, swapped).faults("ok")
    )
    rows[7] = failed_sample(7, rows[7].sent, CLIENT)
    truth = [record(one) for one in rows if one.failure != CLIENT]
    text = " ".join(compare_rows(rows, truth).faults("ok"))
    assert "200 requests sent, 199 arrived" in text
    assert "failures that the server did not make: client" in text


def test_an_open_loops_truth_counts_from_the_planned_instant() -> None:
    rows = samples()
    for one in rows:
        one.planned -= 5 * MS
    closed = cell(rows, ttft_p50=108.0, ttft_p99=111.0)
    open_loop = compare_cell(closed | {"users": None}, Columns.of(rows), BEGAN, [record(one) for one in rows])
    assert open_loop.ttft_p99_ms == pytest.approx(0, abs=0.1)
    by_arrival = compare_cell(closed, Columns.of(rows), BEGAN, [record(one) for one in rows])
    assert by_arrival.ttft_p99_ms == pytest.approx(5, abs=0.1)


@pytest.mark.wide_except("closed loop, 64 users-*", "5 % connections*")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("closed loop, 64 users", ("--users", "4", "--requests", "80", "--output-tokens", "4")),
        ("open loop, 70 % of saturation", ("--rate", "60", "--requests", "120", "--output-tokens", "4")),
        ("5 % connections reset among their tokens", ("--users", "4", "--requests", "80", "--output-tokens", "4")),
        ("TLS, closed loop, 64 users", ("--users", "4", "--requests", "80", "--output-tokens", "4")),
    ],
)
def test_the_client_counts_what_the_server_did(name: str, sent: tuple[str, ...], tmp_path: Path) -> None:
    """Counts only: latencies of a busy machine are a benchmark's."""
    need_program("go", "builds the server")
    from tools.bench.compare_clients import certificate
    from tools.bench.truth.__main__ import own

    (load,) = [one for one in LOADS if one.name == name]
    small = TruthLoad(name, ("-ttft", "10ms", "-itl", "2ms", *load.server[4:]), sent, tls=load.tls)
    result = own(small, tmp_path, certificate(tmp_path), (None, None))
    assert result.miscounted == ()
    assert result.requests in {80, 120}
    assert result.state in {"ok", "failed", "client_limited", "busy_machine", "saturated"}
