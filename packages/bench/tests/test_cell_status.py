"""The state of a cell: each rule of its state, on its own."""

import numpy as np
import pytest

from bench_support.runs import BEGAN, MS, SECOND, columns, good_sample, measurement
from bezel_bench.cell.build_cell import client_figures, relative_rate
from bezel_bench.metrics.statistics import Series, distribution
from bezel_bench.metrics.steady import Steady
from bezel_bench.result.cell_status import busy_machine, infeasible, limits_of_client, queueing_reason, state_of
from bezel_bench.result.document import Check, ClientFigures
from bezel_bench.result.sample import ClientHealth, Sample
from bezel_bench.validity.ttft_part import ttft_part

PASSED = Check(name="counters", state="passed", text="fine")
FAILED = Check(name="counters", state="failed", text="off by 30 %")


def state(*checks: Check, **changes: object) -> tuple[str, str]:
    fields = {"interrupted": False, "requests": 10, "failures": {}, "examples": {}, "client_limits": [], "queueing": ""}
    return state_of(checks or (PASSED,), **(fields | changes))


def health(**changes: float) -> ClientFigures:
    fields = {
        "workers": 1, "cpu_seconds": 1, "busiest_cpu_share": 0.5, "wall_seconds": 2, "loop_lag_p99_ms": 1,
        "loop_lag_max_ms": 2, "schedule_delay_p99_ms": 1, "connections": 4, "reconnections": 0, "connect_failures": 0,
        "interrupted": False,
    }  # fmt: skip
    return ClientFigures.model_validate(fields | changes)


def test_a_cell_that_nothing_speaks_against_is_ok():
    assert state() == ("ok", "")
    assert (
        state(Check(name="roofline", state="suspect", text="near"), Check(name="manifest", state="unknown", text="?"))[
            0
        ]
        == "ok"
    )


def test_a_failed_check_fails_the_cell_with_its_text():
    assert state(PASSED, FAILED) == ("failed", "counters: off by 30 %")


def test_a_load_that_its_share_of_failures_ended_failed():
    few = {"failures": {"http_5xx": 1}, "requests": 200}
    assert state(**few, failed_share=0.004)[0] == "failed"
    assert "0.4% of its requests had failed (--max-failed)" in state(**few, failed_share=0.004)[1]
    assert state(**few) == ("ok", "")


def test_a_cell_without_an_answer_failed():
    assert state(requests=2, failures={"timeout": 2}, examples={"timeout": "300 s"}) == (
        "failed", "no request succeeded (timeout: 2): 300 s",
    )  # fmt: skip
    assert state(requests=0)[0] == "failed"


def test_what_the_server_refuses_as_too_long_is_infeasible():
    examples = {"http_4xx": "This model's maximum context length is 512 tokens."}
    assert state(requests=2, failures={"http_4xx": 2}, examples=examples)[0] == "infeasible"
    assert state(requests=3, failures={"http_4xx": 2}, examples=examples)[0] == "ok"
    assert state(requests=2, failures={"http_4xx": 1, "timeout": 1}, examples=examples | {"timeout": ""})[0] == "failed"


@pytest.mark.parametrize(
    ("context", "output", "limits", "rule"),
    [
        (16384, 1, {"max_model_len": 16384, "kv_cache_tokens": None}, "= 16385 > max_model_len 16384"),
        (16383, 1, {"max_model_len": 16384, "kv_cache_tokens": None}, ""),
        (9000, 100, {"max_model_len": 16384, "kv_cache_tokens": 9000}, "= 9100 > 9000 tokens that the KV cache holds"),
        (9000, 100, {"max_model_len": None, "kv_cache_tokens": None}, ""),
    ],
)
def test_what_cannot_fit_is_named_with_its_rule(context, output, limits, rule):
    reason = infeasible(context, output, **limits)
    assert rule in reason
    assert bool(reason) == bool(rule)


@pytest.mark.parametrize(
    ("worse", "achieved_share", "text"),
    [
        ({}, None, ""),
        ({}, 0.98, ""),
        ({}, 0.97, "97.0% of the planned rate"),
        ({"schedule_delay_p99_ms": 10.1}, None, "10.1 ms late"),
        ({"loop_lag_p99_ms": 10.1}, None, "lagged by 10.1 ms"),
        ({"busiest_cpu_share": 0.86}, None, "86% of a core"),
    ],
)
def test_a_client_that_falls_short_says_so(worse, achieved_share, text):
    limits = limits_of_client(health(**worse), achieved_share)
    assert text in "".join(limits)
    assert len(limits) == bool(text)
    assert state(client_limits=limits)[0] == ("client_limited" if text else "ok")


@pytest.mark.parametrize("late", ["schedule_delay_p99_ms", "loop_lag_p99_ms"])
def test_a_client_is_late_in_relation_to_what_it_measures(late):
    """10 ms, or 5 % of the time to the first token where that is more."""
    assert limits_of_client(health(**{late: 99.0}), None, 2000.0) == []
    assert (
        "above 100 ms (5% of the median ttft of 2,000 ms)" in limits_of_client(health(**{late: 101.0}), None, 2000)[0]
    )
    assert limits_of_client(health(**{late: 9.9}), None, 1.0) == [], "no server is so fast that less is a fault"
    assert "above 10 ms" in limits_of_client(health(**{late: 10.1}), None, 100.0)[0]


@pytest.mark.parametrize(
    ("stall", "ttft", "text"),
    [
        (0.0, 50.0, ""),
        (1.0, 50.0, ""),
        (1.01, 50.0, "for 1.0 ms (p99), above 1 ms"),
        (1.01, None, "above 1 ms"),
        (1.9, 200.0, ""),
        (2.1, 200.0, "above 2 ms"),
        (19.0, 2000.0, ""),
        (21.0, 2000.0, "above 20 ms"),
    ],
)
def test_a_stall_beyond_the_promised_accuracy_is_a_busy_machine(stall, ttft, text):
    """1 ms, or 1 % of the time to the first token where that is more."""
    busy = busy_machine(health(stall_p99_ms=stall), [], ttft)
    assert text in busy
    assert bool(busy) == bool(text)
    assert state(busy=busy)[0] == ("busy_machine" if text else "ok")


def part(values):
    return distribution(Series(np.array(values)), "ms")


@pytest.mark.parametrize(
    ("of_ttft", "ttft", "text"),
    [
        (None, 50.0, ""),
        (part([0.01] * 99 + [9.0]), 50.0, ""),
        (part([0.01] * 98 + [9.0] * 2), 50.0, "up to 9.0 ms of the ttft were its own (p99), above 1 ms"),
        (part([0.01] * 95 + [1.4] * 5), 150.0, ""),
        (part([0.01] * 95 + [1.6] * 5), 150.0, "1.6 ms of the ttft were its own (p99), above 1.5 ms"),
        (part([0.01] * 29 + [9.0]), 50.0, ""),
        (part([0.01] * 8 + [9.0] * 4), 50.0, "9.0 ms of the ttft were its own (p90)"),
        (part([0.01, 0.02, 9.0]), 50.0, ""),
    ],
)
def test_a_part_of_the_ttft_beyond_the_promised_accuracy_is_the_clients(of_ttft, ttft, text):
    """1 ms, or 1 % of the median, at the highest percentile that has a request above it."""
    limits = limits_of_client(health(ttft_part=of_ttft), None, ttft)
    assert text in "".join(limits)
    assert state(client_limits=limits)[0] == ("client_limited" if text else "ok")
    stalled = health(ttft_part=of_ttft, stall_p99_ms=20.0)
    busy = busy_machine(stalled, limits_of_client(stalled, None, ttft), ttft)
    assert state(client_limits=limits, busy=busy)[0] == "busy_machine"


def test_the_clients_part_is_before_sending_and_after_arrival():
    rows = [good_sample(index, BEGAN + index * SECOND, ttft=50 * MS) for index in range(6)]
    for sample, after in zip(rows, (0, 47 * MS, -9 * MS, 70 * MS), strict=False):
        sample.departed = sample.sent + MS // 4
        sample.first_after = after and sample.sent + after
    rows[4].departed, rows[4].failure = rows[4].sent + 9 * MS, "truncated"
    steady = Steady(BEGAN, BEGAN + 6 * SECOND, "", cut=False)
    # A request counts from its sending at the earliest, and one without a stamp, or that failed, in no way.
    seen = ttft_part(columns(measurement(rows)), steady)
    assert (seen.n, seen.min, seen.p50, seen.max) == (4, 0.25, pytest.approx(1.75), pytest.approx(50.25))
    assert ttft_part(columns(measurement(rows[5:])), steady) is None
    assert ttft_part(columns(measurement(rows)), Steady(BEGAN, BEGAN + SECOND, "", cut=True)).n == 1


def test_lateness_on_a_busy_machine_is_no_limit_of_the_client():
    figures = health(loop_lag_p99_ms=12.0, stall_p99_ms=11.0)
    limits = limits_of_client(figures, 0.9)
    busy = busy_machine(figures, limits, 50.0)
    assert len(limits) == 2
    name, why = state(client_limits=limits, busy=busy)
    assert name == "busy_machine"
    assert all(limit in why for limit in limits)


@pytest.mark.parametrize("worse", [{"busiest_cpu_share": 0.9}, {"stall_p99_ms": 0.4}])
def test_lateness_by_the_clients_own_work_stays_its_limit(worse):
    figures = health(**{"loop_lag_p99_ms": 12.0, "stall_p99_ms": 11.0} | worse)
    limits = limits_of_client(figures, None)
    assert busy_machine(figures, limits, 50.0) == ""
    assert state(client_limits=limits, busy="")[0] == "client_limited"


def test_unknown_stalls_are_judged_by_the_loops_lag():
    figures = health(loop_lag_p99_ms=3.0)
    assert figures.stall_p99_ms is None
    assert "event loop lagged for 3.0 ms (p99), above 1 ms" in busy_machine(figures, [], 50.0)
    assert busy_machine(figures, [], 400.0) == ""
    late = health(loop_lag_p99_ms=12.0)
    assert busy_machine(late, limits_of_client(late, None), 50.0) == "", "whose doing it was is unknown"


def test_a_failed_check_is_told_before_a_busy_machine():
    name, why = state(FAILED, busy="measured on a busy machine")
    assert (name, why) == ("failed", "counters: off by 30 %; measured on a busy machine")
    assert state(busy="measured on a busy machine", saturated="its queue grew")[0] == "busy_machine"


APART = Check(name="failures_apart", state="failed", text="13 of 80 requests failed (http_5xx: 13)")


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ({"http_5xx": 13}, "failed"),
        ({"timeout": 13}, "failed"),
        ({"http_401": 1}, "failed"),
        ({"http_5xx": 13, "client": 1}, "failed"),
        ({"client": 13}, "client_limited"),
        ({"client": 13, "http_5xx": 1}, "client_limited"),
        ({}, "client_limited"),
    ],
)
def test_a_servers_failure_stays_the_servers_however_the_client_fared(failures, expected):
    checks = (PASSED, APART) if failures else (PASSED,)
    name, why = state(*checks, requests=100, failures=failures, client_limits=["it lagged"])
    assert name == expected
    assert ("13 of 80 requests failed" in why) == (name == "failed")
    assert "it lagged" in why


@pytest.mark.parametrize(("late", "count"), [("sent", 0), ("begun", 2)])
def test_server_slow_to_take_connections_is_not_the_clients_fault(late, count):
    """Each request leaves later than planned; by whose doing, the instant at which it was begun says."""

    def one(index: int) -> Sample:
        planned, sent = BEGAN + index * 100 * MS, BEGAN + index * 150 * MS
        return good_sample(index, sent, planned=planned, begun=planned if late == "sent" else sent)

    rows = columns(measurement([one(index) for index in range(50)]))
    assert len(limits_of_client(client_figures(ClientHealth(), rows), relative_rate(rows))) == count


def test_a_client_that_sends_too_slowly_achieves_less():
    def rate_at(gap: int) -> float | None:
        samples = [good_sample(index, BEGAN + index * gap, planned=BEGAN + index * 100 * MS) for index in range(50)]
        return relative_rate(columns(measurement(samples)))

    assert rate_at(100 * MS) == pytest.approx(1)
    assert rate_at(110 * MS) == pytest.approx(100 / 110)
    assert relative_rate(columns(measurement([good_sample(0, BEGAN + SECOND)]))) is None


def test_load_above_the_platforms_concurrency_is_queueing():
    reason = queueing_reason(2048, instances=1, concurrency=64)
    assert "2048 requests at once > 1 instance x concurrency 64 = 64" in reason
    assert state(queueing=reason)[0] == "queueing"
    assert (
        queueing_reason(64, instances=1, concurrency=64) == queueing_reason(2048, instances=None, concurrency=64) == ""
    )


def test_an_interrupted_cell_is_no_result():
    assert state(interrupted=True, failures={"client": 4})[1] == "interrupted after 6 answers: run it again"
