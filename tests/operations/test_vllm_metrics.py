"""Figures of a server from its metrics: recorded ones are read as written, and nothing is made of two servers."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.metrics.metrics import choose
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.figures import Figure, figure_text, figures_of, notes_of, outcomes_of
from bezel.operations.vllm_metrics.sample import Sample, parse, why_not_comparable
from bezel_catalog.vllm.options import vllm_options

FIXTURES = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm"
EVERY_NAME = {
    names.RUNNING, names.WAITING, names.KV_USAGE, *names.COUNTERS, *names.OUTCOMES,
    *(f"{name}_{part}" for name in names.HISTOGRAMS for part in ("sum", "count")),
}  # fmt: skip


def recorded_sample(name: str = "metrics-ngram.txt", read_at: float = 0.0) -> Sample:
    sample = parse((FIXTURES / name).read_text(), read_at)
    assert sample is not None
    return sample


def by_name(figures: tuple[Figure, ...]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures}


def later(first: Sample, seconds: float = 10.0, **gained: float) -> Sample:
    """A sample of the same process after some more was counted."""
    sums = {**first.sums, **{name: first.sums.get(name, 0.0) + count for name, count in gained.items()}}
    return replace(first, read_at=first.read_at + seconds, sums=sums)


def test_every_name_that_is_read_is_one_that_vllm_wrote() -> None:
    written = set(re.findall(r"^([\w:]+)[{ ]", (FIXTURES / "metrics-ngram.txt").read_text(), re.MULTILINE))
    assert written >= EVERY_NAME
    assert "vllm:gpu_cache_usage_perc" not in written  # the name of older versions


def test_options_that_a_repair_names_are_options_of_vllm() -> None:
    texts = " ".join(figure.repair + figure.unhealthy_when for figure in figures_of(recorded_sample()))
    options = set(re.findall(r"vllm\.([a-z][\w-]*[a-z])", texts)) - {"spec"}
    assert options
    assert options <= {flag.removeprefix("--") for option in vllm_options("0.32.0").options for flag in option.flags}


def test_recorded_metrics_give_the_figures_that_follow_from_them() -> None:
    figures = by_name(figures_of(recorded_sample()))
    assert figures["acceptance_rate"].value == pytest.approx(47 / 762)
    assert figures["acceptance_length"].value == pytest.approx(1 + 47 / 297, abs=0.02)
    assert (figures["running"].value, figures["running"].basis) == (0, "now")
    assert (figures["acceptance_rate"].is_unhealthy, figures["ttft"].is_unhealthy) == (True, False)
    assert figures["generation_throughput"].value is None  # a rate needs two readings


def test_a_server_without_speculation_has_no_acceptance_and_not_one_of_0() -> None:
    figures = by_name(figures_of(recorded_sample("metrics.txt")))
    assert figures["acceptance_rate"].value is figures["acceptance_rate"].is_unhealthy is None
    assert figure_text(figures["acceptance_length"]) == "unknown"


def test_requests_are_counted_by_how_they_ended() -> None:
    ended = {(item.counted_by, item.outcome): item for item in outcomes_of(recorded_sample("metrics.txt"))}
    assert (ended["engine", "length"].requests, ended["engine", "length"].is_failure) == (13, False)
    assert ended["http", "4xx"].requests == 18  # without probes, and without paths that are not there
    assert ended["engine", "error"].is_failure


def test_rates_are_of_the_time_between_two_readings() -> None:
    first = recorded_sample(read_at=100.0)
    last = later(first, 10.0, **{names.GENERATED: 500.0, f"{names.TTFT}_sum": 3.0, f"{names.TTFT}_count": 2.0})
    figures = by_name(figures_of(last, first))
    assert (figures["generation_throughput"].value, figures["ttft"].value) == (50.0, 1.5)
    assert figures["itl"].value is None  # nothing was counted in that time
    assert figures["ttft"].basis == "in the interval"


def test_answers_of_one_token_do_not_sink_the_tpot() -> None:
    first = recorded_sample()
    answers = {names.ONE_TOKEN: 15.0, f"{names.TPOT}_sum": 5 * 0.04375, f"{names.TPOT}_count": 20.0}
    assert by_name(figures_of(later(first, **answers), first))["tpot"].value == pytest.approx(0.04375)
    single = {names.ONE_TOKEN: 15.0, f"{names.TPOT}_count": 15.0}
    assert by_name(figures_of(later(first, **single), first))["tpot"].value is None  # none had a further token
    last = later(first, **answers)
    unknown = replace(last, sums={name: value for name, value in last.sums.items() if name != names.ONE_TOKEN})
    assert by_name(figures_of(unknown, first))["tpot"].value is None  # other buckets than vLLM's own


@pytest.mark.parametrize(
    ("engine", "single", "calls", "judged"),
    [
        (20, 0, 20, True),  # a call each
        (20, 20, 20, True),  # answers of one token
        (20, 0, 4, True),  # lists of prompts
        (100, 4, 96, True),  # a search among many calls
        (20, 16, 4, False),  # beam searches
    ],
)
def test_steps_of_beam_searches_leave_the_ttft_unknown(
    engine: float, single: float, calls: float, judged: bool
) -> None:
    first = recorded_sample()
    counted = {names.ENGINE_REQUESTS: engine, names.ONE_TOKEN_ASKED: single}
    times = {f"{name}_{part}": 20.0 for name in (names.TTFT, names.QUEUE) for part in ("sum", "count")}
    last = later(first, **counted, **times)
    last = replace(last, outcomes={**last.outcomes, (names.HTTP, "2xx"): last.outcomes[names.HTTP, "2xx"] + calls})
    figures = by_name(figures_of(last, first))
    assert (figures["ttft"].value is not None) is (figures["queue_time"].value is not None) is judged
    assert (notes_of(last, first) == ()) is judged


def test_several_answers_to_a_call_are_one_call_of_the_share_of_success() -> None:
    first = recorded_sample()
    ended = {**first.outcomes}
    for key, count in {(names.FINISHED, "stop"): 100.0, (names.HTTP, "2xx"): 10.0, (names.HTTP, "5xx"): 10.0}.items():
        ended[key] = ended.get(key, 0.0) + count
    figures = by_name(figures_of(replace(later(first), outcomes=ended), first))
    assert figures["success_rate"].value == 0.5
    assert figures["requests_rate"].value == 2.0


def test_a_refusal_inside_a_stream_is_a_failure_although_its_status_is_200() -> None:
    first = recorded_sample()
    ended = {**first.outcomes}
    for key, count in {(names.REJECTED, "max_num_queued_reqs"): 5.0, (names.HTTP, "2xx"): 20.0}.items():
        ended[key] = ended.get(key, 0.0) + count
    assert by_name(figures_of(replace(later(first), outcomes=ended), first))["success_rate"].value == 0.75


def test_a_queue_is_one_that_both_readings_met() -> None:
    first = recorded_sample()
    queued = later(first, 5.0, **{names.WAITING: 4.0})
    assert by_name(figures_of(queued, first))["waiting"].is_unhealthy is False
    assert by_name(figures_of(queued, queued))["waiting"].is_unhealthy is True


def test_preemptions_are_judged_by_their_growth() -> None:
    first = recorded_sample()
    grown = later(first, 5.0, **{names.PREEMPTIONS: 1.0})
    assert by_name(figures_of(grown))["preemptions"].is_unhealthy is None
    assert by_name(figures_of(grown, first))["preemptions"].is_unhealthy is True


def test_failures_of_the_server_alone_lower_the_share_of_success() -> None:
    """Requests that clients got wrong do not lower it."""
    first = recorded_sample("metrics.txt")
    assert by_name(figures_of(first))["success_rate"].value == 1.0  # in spite of 18 refused requests
    failed = replace(first, outcomes={**first.outcomes, (names.HTTP, "5xx"): 12.0})
    assert by_name(figures_of(failed))["success_rate"].value == 0.5


def test_two_processes_are_told_apart_by_their_start() -> None:
    first = recorded_sample()
    assert why_not_comparable(first, later(first)) == ""
    assert "another process" in why_not_comparable(first, replace(first, created=1.0))


def test_a_counter_that_fell_is_another_server_s() -> None:
    first = recorded_sample()
    assert f"{names.GENERATED} fell" in why_not_comparable(first, later(first, **{names.GENERATED: -1.0}))
    gone = replace(first, sums={name: value for name, value in first.sums.items() if name != names.DRAFTS})
    assert "one time only" in why_not_comparable(first, gone)


def test_of_two_instances_only_readings_of_one_are_compared() -> None:
    here = recorded_sample()
    there = replace(here, created=5.0, sums={**here.sums, names.GENERATED: 1.0})
    first, last, notes = choose([here, there], [later(there), later(here)])
    assert first is not None
    assert first.process == last.process == here.process
    assert "2 server processes answered" in notes[0]
    first, last, notes = choose([here], [there])
    assert (first, last) == (None, there)
    assert "no process answered both times" in notes[-1]


def test_one_instance_needs_no_note() -> None:
    here = recorded_sample()
    assert choose([here, here], [later(here)])[2] == ()


def test_another_server_s_metrics_are_none() -> None:
    assert parse("# HELP go_goroutines x\ngo_goroutines 7\n", 0.0) is None


@pytest.mark.slow
@given(st.text(max_size=300))
def test_whatever_stands_in_a_response_it_is_read_or_refused(text: str) -> None:
    parsed = parse(text + "\nvllm:num_requests_running 1\nvllm:num_requests_waiting 0\n" + text, 0.0)
    assert parsed is not None
    assert all(figure.value is None or figure.value == figure.value for figure in figures_of(parsed))


def refers_to_another(figure: Figure, all_names: set[str]) -> bool:
    """Whether a repair can be followed only with that of another figure beside it."""
    return "do as for" in figure.repair or any(f"`{name}`" in figure.repair for name in all_names)


def test_a_repair_needs_no_other_figure_to_be_followed() -> None:
    figures = figures_of(recorded_sample())
    all_names = {name for figure in figures for name in (figure.name, figure.title)}
    assert [figure.name for figure in figures if refers_to_another(figure, all_names)] == []
    one = figures[0].model_copy(update={"repair": "do more of it, as of `waiting`."})
    assert refers_to_another(one, all_names)
