"""Each figure of a run whose truth is known, and its absence where it cannot be measured."""

from array import array
from dataclasses import replace

import pytest

from bench_support.runs import BEGAN, MS, SECOND, closed_loop, columns, failed_sample, good_sample, measurement, noise
from bezel_bench.metrics.definitions import DEFINITIONS, distributions, measure
from bezel_bench.metrics.metric_inputs import NO_TEXT, MetricInputs
from bezel_bench.metrics.steady import steady_window
from bezel_bench.result.document import Reading, Slo


def facts(run, users=4, **fields) -> MetricInputs:
    return MetricInputs(
        columns(run), steady_window(columns(run), run.began, run.ended, users=users), open_loop=False, **fields
    )


def figure(name: str, run, users=4, **fields):
    return measure(facts(run, users, **fields))[name]


def test_latencies_are_those_of_the_definitions():
    """100 ms to the first token, then 10 tokens 10 ms apart, the answer complete 1 ms later."""
    metrics = measure(facts(closed_loop(4, 10)))
    expected = {
        "ttft_p50": 100,
        "ttfc_p50": 100,
        "tpot_mean": 10,
        "itl_p50": 10,
        "e2e_p50": 200,
        "schedule_delay_p50": 0,
    }
    assert {name: metrics[name].value for name in expected} == pytest.approx(expected)


def textless(index, sent, user):
    """As any other answer, of 11 tokens in 200 ms that no client saw."""
    one = good_sample(index, sent, user=user)
    one.first = one.first_content = 0
    one.chunks = array("q")
    return one


def test_answers_without_a_text_count_in_rates_and_have_no_first_token():
    metrics, seen = measure(facts(closed_loop(4, 10, textless))), measure(facts(closed_loop(4, 10)))
    for name in ("ttft_p50", "ttfc_p50", "tpot_mean", "itl_p50", "tokens_per_chunk"):
        assert (metrics[name].value, metrics[name].why) == (None, NO_TEXT)
    for name in ("requests_per_second", "output_tokens_per_second", "prompt_tokens_per_second", "in_flight", "e2e_p50"):
        assert metrics[name].value == pytest.approx(seen[name].value, rel=0.01)


def test_a_latency_of_some_is_of_those_that_have_it():
    some = closed_loop(
        4, 10, lambda index, sent, user: (textless if index % 2 else good_sample)(index, sent, user=user)
    )
    metrics = measure(facts(some))
    assert metrics["ttft_p50"].value == pytest.approx(100)
    assert metrics["tpot_mean"].value == pytest.approx(10)
    assert metrics["tokens_per_chunk"].value == pytest.approx(1)
    assert (metrics["ttft_p50"].n or 0) < (metrics["e2e_p50"].n or 0)


def test_nobody_saw_the_first_token_of_an_answer_without_a_text_in_time():
    some = closed_loop(4, 10, lambda index, sent, user: (textless if user % 2 else good_sample)(index, sent, user=user))
    assert figure("goodput_share", some, slos=[Slo(metric="ttft", limit_ms=500)]).value == pytest.approx(0.5)
    assert figure("goodput_share", some, slos=[Slo(metric="e2e", limit_ms=500)]).value == 1


def test_rates_count_whole_rounds_of_users_in_step():
    """4 users, 201 ms a round: whatever is cut, the rates are those of an endless run."""
    metrics = measure(facts(closed_loop(4, 10)))
    assert metrics["requests_per_second"].value == pytest.approx(4 / 0.201, rel=0.005)
    assert metrics["output_tokens_per_second"].value == pytest.approx(44 / 0.201, rel=0.005)
    assert metrics["prompt_tokens_per_second"].value == pytest.approx(400 / 0.201, rel=0.005)
    assert metrics["in_flight"].value == pytest.approx(4)


def test_a_run_that_counts_whole_divides_by_the_whole_time():
    run = closed_loop(4, 2)
    assert figure("requests_per_second", run).value == pytest.approx(8 / 0.402)


def test_rates_of_an_irregular_run_hold_the_truth_in_their_interval():
    """One user, each request 100 to 300 ms: 5 a second in the long run."""
    dice = noise(5)
    run = closed_loop(
        1,
        2000,
        lambda index, sent, user: good_sample(index, sent, user=user, ttft=dice.randrange(99, 299) * MS, tokens=1),
    )
    rate = figure("requests_per_second", run, 1)
    assert rate.low < 5 < rate.high
    assert rate.value == pytest.approx(5, rel=0.02)


@pytest.mark.slow
def test_failed_requests_are_in_no_latency_and_no_rate():
    run = closed_loop(4, 10)
    worse = measurement(
        [*run.samples, *(failed_sample(100 + place, BEGAN + place * MS, "timeout") for place in range(20))]
    )
    names = ("ttft_mean", "e2e_p90", "requests_per_second", "output_tokens_per_second")
    assert {name: figure(name, worse).value for name in names} == {name: figure(name, run).value for name in names}
    assert figure("success_share", worse).value == pytest.approx(40 / 60)


def test_shares_leave_out_requests_that_the_client_cancelled():
    planned = [failed_sample(100 + place, BEGAN + 300 * MS, "cancelled", after=MS) for place in range(20)]
    names, slos = ("success_share", "goodput_share"), [Slo(metric="e2e", limit_ms=500)]
    for kind in ("cancelled", "timeout"):
        run = measurement([*closed_loop(4, 10).samples, *(replace(one, failure=kind) for one in planned)])
        shares = [figure(name, run, slos=slos) for name in names]
        assert all((share.value == 1) == (kind == "cancelled") for share in shares)
    assert figure("success_share", measurement(planned)).value is None


def test_open_loop_latencies_count_from_the_planned_instant():
    run = measurement(
        [good_sample(index, BEGAN + index * SECOND, planned=BEGAN + index * SECOND - 70 * MS) for index in range(9)]
    )
    opened = MetricInputs(columns(run), steady_window(columns(run), run.began, run.ended, users=0), open_loop=True)
    assert measure(opened)["ttft_p50"].value == pytest.approx(170)
    assert measure(opened)["schedule_delay_p50"].value == pytest.approx(70)
    assert figure("ttft_p50", run, 1).value == pytest.approx(100)


def test_input_is_what_was_computed():
    run = closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user, cached=75))
    assert figure("input_tokens_per_second", run).value == pytest.approx(100 / 0.201, rel=0.005)
    assert figure("cached_share", run).value == 0.75


def test_input_is_computed_with_counters_or_not_measurable():
    run = closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user, cached=-1))
    unknown = figure("input_tokens_per_second", run)
    assert (unknown.value, unknown.why[-21:]) == (None, "reports cached tokens")
    gained = Reading(prompt_tokens=4000, cached_tokens=1000)
    assert figure("input_tokens_per_second", run, gained=gained).value == pytest.approx(300 / 0.201, rel=0.005)


def test_chunks_of_several_tokens_are_no_tokens():
    """11 tokens in 4 chunks, 10 ms a token: the gap between chunks is no 1/rate."""
    run = closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user, per_chunk=3))
    metrics = measure(facts(run))
    assert metrics["tokens_per_chunk"].value == pytest.approx(11 / 4)
    assert metrics["tpot_p50"].value == pytest.approx(10)
    assert metrics["itl_p50"].value == pytest.approx(30)


def test_answers_of_one_token_have_no_time_between_tokens():
    metrics = measure(
        facts(closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user, tokens=1)))
    )
    assert metrics["tpot_p50"].why == "responses of one token have no time between tokens"
    assert metrics["itl_p50"].why == "every response came in one chunk"
    assert metrics["ttft_p50"].value == pytest.approx(100)


def test_goodput_is_what_met_every_limit():
    run = closed_loop(4, 10, lambda index, sent, user: good_sample(index, sent, user=user, ttft=(100 + user) * MS))
    within = [Slo(metric="ttft", limit_ms=101), Slo(metric="tpot", limit_ms=10)]
    assert figure("goodput_share", run, slos=within).value == pytest.approx(0.5, abs=0.05)
    assert figure("goodput_share", run, slos=[*within, Slo(metric="itl_max", limit_ms=9)]).value == 0
    assert figure("goodput", run).why == "no SLO was given"


def test_failed_requests_meet_no_limit():
    run = measurement([good_sample(0, BEGAN), failed_sample(1, BEGAN, "http_5xx", after=MS)])
    assert figure("goodput_share", run, 1, slos=[Slo(metric="ttft", limit_ms=1000)]).value == 0.5


def test_nothing_is_measured_where_nothing_succeeded():
    metrics = measure(facts(measurement([failed_sample(0, BEGAN, "refused")])))
    assert metrics["success_share"].value == 0
    assert {name for name, one in metrics.items() if one.value is not None} == {"success_share", "in_flight"}
    assert distributions(facts(measurement([failed_sample(0, BEGAN, "refused")]))) == {}


def test_an_unknown_price_costs_nothing_known():
    run = closed_loop(4, 10)
    assert figure("cost_per_million_output_tokens", run).why == "no price is known"
    cost = figure("cost_per_million_output_tokens", run, usd_per_hour=3.6)
    assert cost.value == pytest.approx(0.001 / (44 / 0.201) * 1e6, rel=0.005)


def test_acceptance_is_the_servers_own():
    gained = Reading(drafts=139, draft_tokens=417, accepted_tokens=23, accepted_per_position=[11, 6, 6])
    assert figure("acceptance_rate", closed_loop(4, 5), gained=gained).value == pytest.approx(0.0552, abs=1e-4)
    assert figure("acceptance_length", closed_loop(4, 5), gained=gained).value == pytest.approx(1.165, abs=1e-3)
    assert figure("acceptance_length", closed_loop(4, 5), gained=Reading()).why == "the server makes no drafts"


def test_acceptance_needs_only_the_counters_of_its_own_formula():
    steps, tokens = Reading(drafts=10, accepted_tokens=5), Reading(draft_tokens=20, accepted_tokens=5)
    assert figure("acceptance_length", closed_loop(4, 5), gained=steps).value == 1.5
    assert figure("acceptance_rate", closed_loop(4, 5), gained=steps).why == "no draft was made"
    assert figure("acceptance_rate", closed_loop(4, 5), gained=tokens).value == 0.25
    assert figure("acceptance_length", closed_loop(4, 5), gained=tokens).why == "the server makes no drafts"
    for name in ("acceptance_rate", "acceptance_length"):
        assert figure(name, closed_loop(4, 5), gained=Reading(drafts=0, draft_tokens=0)).why == "no draft was made"


def test_a_distribution_agrees_with_the_figures():
    dice = noise(8)
    inputs = facts(
        closed_loop(8, 40, lambda index, sent, user: good_sample(index, sent, user=user, ttft=dice.randrange(9**8))), 8
    )
    spread, metrics = distributions(inputs)["ttft"], measure(inputs)
    assert (spread.mean, spread.p50, spread.p99) == tuple(
        metrics[f"ttft_{name}"].value for name in ("mean", "p50", "p99")
    )


def test_names_are_unique_and_every_definition_says_what_it_is():
    assert len({one.name for one in DEFINITIONS}) == len(DEFINITIONS)
    assert all(one.formula and one.unit and one.needs for one in DEFINITIONS)
    metrics = measure(facts(closed_loop(4, 10)))
    assert {one.name: one.unit for one in DEFINITIONS} == {name: metric.unit for name, metric in metrics.items()}
