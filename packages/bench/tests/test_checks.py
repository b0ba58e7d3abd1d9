"""Each validity check fires where it must, and keeps still where it must."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from bench_support.runs import BEGAN, MS, closed_loop, columns, failed_sample, good_sample, measurement, noise
from bezel_bench.load.plan import Body, Closed, Load, PromptPlan, Stop, Target
from bezel_bench.metrics.definitions import measure
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.metrics.steady import Steady, steady_window
from bezel_bench.result.document import Counters, Reading
from bezel_bench.result.records import Client, Machine, Manifest, Metric, Platform, PriceBasis, ServedBy
from bezel_bench.server.counters import counter_increase
from bezel_bench.server.drain import Drained
from bezel_bench.validity import load_checks, server_checks
from bezel_bench.validity.checks import CHECKS, Evidence, beginnings, check_all, most_in_flight
from bezel_bench.validity.roofline import Work, hardware_of

CACHED = Metric(value=0.001, unit="share", n=10)
RATE = Metric(value=10.0, unit="requests/s", low=9.8, high=10.2, n=100, confidence=0.95)
STEADY = Steady(0, 10**10, "", cut=True)


# 1: unique prompts
@pytest.mark.parametrize(
    ("kind", "beginnings_seen", "cached", "state"),
    [
        ("unique", ["a", "b"], CACHED, "passed"),
        ("unique", ["a", "a"], CACHED, "failed"),
        ("unique", ["a", "b"], Metric(value=0.5, unit="share", n=10), "failed"),
        ("unique", ["a", "b"], Metric(value=None, unit="share", why="not reported"), "unknown"),
        ("file", ["a", "a"], CACHED, "suspect"),
        ("shared_prefix", [], Metric(value=0.9, unit="share", n=10), "passed"),
    ],
)
def test_prompts_that_a_cache_answers_fail(kind, beginnings_seen, cached, state):
    check = load_checks.unique_prompts(kind, 7, beginnings_seen, cached)
    assert check.state == state
    assert check.numbers["seed"] == 7


def test_beginnings_are_those_of_the_prompts_themselves():
    class Bodies:
        turns = 1

        def body(self, index: int, turn: int = 0) -> Body:
            assert turn == 0
            return Body(b'{"messages": [{"role": "user", "content": "%d and so on"}]}' % (index // 2), 4)

    assert beginnings(Bodies(), 4) == ["0 and so on", "0 and so on", "1 and so on", "1 and so on"]


# 2: output length
@pytest.mark.parametrize(
    ("lengths", "drafts", "fixed", "state"),
    [
        ([128, 128], None, True, "passed"),
        ([128, 100], None, True, "failed"),
        ([128, 100], None, False, "passed"),
        ([128, 128], 900, True, "passed"),
    ],
)
def test_lengths_are_as_asked_for_or_reported(lengths, drafts, fixed, state):
    check = load_checks.output_length(
        np.array([128, 128]), np.array(lengths), np.array([True, True]), drafts, fixed=fixed
    )
    assert check.state == state
    assert check.numbers["min"] == min(lengths)


def test_drafts_are_not_judged_by_one_token():
    one, text = np.array([1]), np.array([True])
    assert load_checks.output_length(one, one, text, 139, fixed=True).state == "suspect"
    assert load_checks.output_length(one, one, text, 0, fixed=True).state == "passed"


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("requested", "counted", "text"),
    [
        (128, 256, "up to 2 times"),
        (128, 129, "up to 1.01 times"),
        (128, 128, ""),
        (128, 90, ""),
        (0, 0, ""),
        (-1, 90, ""),
    ],
)
def test_more_tokens_than_requested_are_a_wrong_count(fixed, requested, counted, text):
    """No server generates more than `max_tokens`: also where responses may end earlier."""
    asked, lengths = np.array([128 if requested > 0 else requested, requested]), np.array([requested, counted])
    check = load_checks.output_length(asked, lengths, np.array([True, True]), None, fixed=fixed)
    assert text in check.text
    assert ("1 of 2 responses have more tokens in `usage` than requested" in check.text) == bool(text)
    if text:
        assert check.state == "failed"


def test_answers_without_a_text_are_reported():
    lengths = np.array([128, 128, 128])
    check = load_checks.output_length(lengths, lengths, np.array([True, False, True]), None, fixed=True)
    assert (check.state, check.numbers["without_text"]) == ("suspect", 1)
    assert "1 of 3 responses had no text" in check.text
    short = load_checks.output_length(lengths, np.array([128, 1, 128]), np.array([True, False, True]), None, fixed=True)
    assert short.state == "failed", "the end of the text at once is first of all another length"


# 3: counters
SEEN = server_checks.ClientCounts(requests=100, prompt_tokens=10_000, output_tokens=5_000, unfinished=0)


def counters_of(requests: int = 100, prompt: int = 10_000, output: int = 5_000) -> Counters:
    none = Reading(process_started=1.0, requests=0, prompt_tokens=0, generated_tokens=0)
    now = Reading(process_started=1.0, requests=requests, prompt_tokens=prompt, generated_tokens=output)
    return counter_increase([none], [now], instances=1)


@pytest.mark.parametrize(
    ("counters", "state"),
    [
        (counters_of(), "passed"),
        (counters_of(102, 10_200, 5_100), "passed"),
        (counters_of(output=5_150), "failed"),
        (counters_of(output=4_800), "failed"),
        (counters_of(requests=110), "failed"),
        (Counters(before=None, after=None, gained=None, why="2 instances"), "unknown"),
    ],
)
def test_server_and_client_count_the_same_within_two_percent(counters, state):
    check = server_checks.counters_agree(SEEN, counters)
    assert check.state == state
    if state == "failed":
        assert "by more than 2%" in check.text


def test_a_server_may_have_worked_for_what_then_failed():
    with_failures = server_checks.ClientCounts(requests=100, prompt_tokens=10_000, output_tokens=5_000, unfinished=10)
    more = server_checks.counters_agree(with_failures, counters_of(105, 11_000, 5_300))
    assert (more.state, "with work for 10 requests that ended early" in more.text) == ("passed", True)
    assert server_checks.counters_agree(with_failures, counters_of(105, 11_000, 5_800)).state == "failed"
    assert server_checks.counters_agree(with_failures, counters_of(105, 11_000, 4_800)).state == "failed"


# 4: roofline
def work(prompt: float | None = 1_000.0, output: float = 100.0, sequences: int = 64, tokens: float = 1.0) -> Work:
    return Work(prompt, output, sequences, tokens, 1_000.0)


def test_figures_above_the_roof_are_refused_with_the_arithmetic():
    """16384 tokens x 31.9 requests/s of a 12B model on one RTX PRO 6000."""
    hardware = hardware_of("gemma-4-12b-it", "nvidia-rtx-pro-6000", 1, 1, "fp8")
    check = server_checks.below_roofline(work(16_384 * 31.9), hardware)
    assert check.state == "failed"
    assert "x 2 x" in check.text
    assert check.numbers["flops"] == pytest.approx(12.5e15, rel=0.03)


def test_figures_near_the_roof_are_suspect_and_others_keep_still():
    hardware = hardware_of("gemma-4-12b-it", "v6e-4", None, 1, None)
    peak = hardware.peaks.flops * 4 / 2 / hardware.model.architecture.active_parameters
    assert server_checks.below_roofline(work(0.7 * peak), hardware).state == "suspect"
    assert server_checks.below_roofline(work(0.5 * peak), hardware).state == "passed"
    assert server_checks.below_roofline(work(None), hardware).state == "unknown"
    assert server_checks.below_roofline(work(None, output=1e9), hardware).state == "failed"


def test_decoding_cannot_read_faster_than_memory():
    """One user of a 12B model in bf16: each token reads all weights, at most 300 GB/s / 24 GB = 12 times a second."""
    hardware = hardware_of("gemma-4-12b-it", "nvidia-l4", 1, 1, None)
    assert server_checks.below_roofline(work(output=40, sequences=1), hardware).state == "failed"
    assert server_checks.below_roofline(work(output=9, sequences=1), hardware).state == "passed"
    # Drafts give several tokens a step, several instances read at once, many users share a step.
    assert server_checks.below_roofline(work(output=36, sequences=1, tokens=4), hardware).state == "passed"
    assert server_checks.below_roofline(work(output=72, sequences=8), hardware).state == "passed"
    assert (
        server_checks.below_roofline(
            work(output=27, sequences=3), hardware_of("gemma-4-12b-it", "nvidia-l4", 1, 3, None)
        ).state
        == "passed"
    )


@pytest.mark.parametrize(
    ("setup", "text"),
    [
        (("gemma-9", "nvidia-l4", 1, 1, None), "computed: checkpoint 'gemma-9' is not in the catalogue"),
        (("google/gemma-4-E2B-it", "nvidia-l4", 1, 1, None), "not in the catalogue: perhaps gemma-4-e2b-it"),
        (("gemma-4-12b-it", "v6e4", 1, 1, None), "accelerator 'v6e4' is not in the catalogue: perhaps v6e-4"),
        ((None, "nvidia-l4", 1, 1, None), "the checkpoint is not stated"),
        (("gemma-4-12b-it", None, 1, 1, None), "the accelerator is not stated"),
        (("gemma-4-12b-it", "nvidia-l4", 1, None, None), "the number of instances"),
        (("gemma-4-12b-it", "nvidia-l4", 1, 1, "int2"), "int2 are unknown"),
    ],
)
def test_a_roof_that_is_not_known_accuses_nobody(setup, text):
    check = server_checks.below_roofline(work(1e12), hardware_of(*setup))
    assert (check.state, text in check.text) == ("unknown", True)


# 5: drained
@pytest.mark.parametrize(
    ("drained", "state"),
    [
        (Drained(True, 0.1, 0, 0), "passed"),
        (Drained(False, 120.0, 3, 60), "failed"),
        (Drained(None, 0.1, why="/metrics answered HTTP 404"), "unknown"),
    ],
)
def test_a_load_begins_on_an_idle_server(drained, state):
    assert server_checks.drained_before(drained).state == state


# 6: steady state
def test_few_requests_are_no_steady_state():
    assert load_checks.steady_state(STEADY, 64, 191, 100, np.ones(100), RATE).state == "suspect"
    assert load_checks.steady_state(STEADY, 64, 192, 100, np.ones(100), RATE).state == "passed"


def test_a_run_that_drifts_is_suspect_and_an_even_one_is_not():
    dice = noise(4)
    even = np.array([100 + dice.gauss(0, 10) for _ in range(500)])
    rising = even + np.linspace(0, 30, 500)
    assert load_checks.steady_state(STEADY, 8, 600, 500, rising, RATE).state == "suspect"
    check = load_checks.steady_state(STEADY, 8, 600, 500, even, RATE)
    assert (check.state, "known to 2.0%" in check.text) == ("passed", True)


def test_even_runs_are_not_accused_of_drift():
    dice = noise(6)
    accused = 0
    for _ in range(100):
        level, values = 0.0, []
        for _ in range(300):
            level = 0.8 * level + dice.gauss(0, 10)
            values.append(100 + level)
        change, certain = load_checks.drift(np.array(values))
        accused += certain and abs(change) > load_checks.DRIFT_SHARE
    assert accused == 0


def test_a_run_that_counts_whole_claims_no_steady_state():
    whole = Steady(0, 10, "nothing is cut: the load changes on purpose", cut=False)
    assert load_checks.steady_state(whole, 0, 500, 500, np.ones(500), RATE).state == "unknown"


# 7: manifest
MACHINE = Machine(cores=2, cpu="test", memory_bytes=None, kernel="6.1")
WHOLE = Manifest(
    title="t", url="http://127.0.0.1:1", model="m", checkpoint="gemma-4-12b-it",
    served_by=ServedBy(digest="sha256:1", vllm_version="0.32.0", arguments=["--dtype=auto"], max_model_len=4096),
    platform=Platform(
        accelerator="nvidia-l4", chips=1, revision="r-1", instances=1, concurrency=64, region="europe-west4"
    ),
    price=PriceBasis(usd_per_hour=1.0, as_of="2026-11-01", source="catalogue"),
    client=Client(bezel="0.1.0", python="3.11", machine=MACHINE, workers=1, tls=False),
    started_at=datetime(2026, 11, 22, tzinfo=UTC), seed=7,
)  # fmt: skip


def test_a_manifest_names_what_is_missing():
    assert server_checks.manifest_complete(WHOLE, WHOLE.served_by).state == "passed"
    bare = WHOLE.model_copy(update={"price": PriceBasis()})
    check = server_checks.manifest_complete(bare, ServedBy())
    assert check.state == "unknown"
    assert "image digest, vLLM version, arguments, price, date of the price" in check.text


def test_a_leased_machine_has_no_concurrency_to_tell():
    service = WHOLE.platform.model_copy(update={"concurrency": None})
    leased = service.model_copy(update={"revision": None, "lease": "node-1"})
    states = [
        server_checks.manifest_complete(WHOLE.model_copy(update={"platform": one}), WHOLE.served_by).state
        for one in (service, leased)
    ]
    assert states == ["unknown", "passed"]


# 8: failures
@pytest.mark.parametrize(
    ("failures", "state"),
    [
        ({}, "passed"),
        ({"http_429": 1}, "suspect"),
        ({"http_429": 5}, "failed"),
        ({"http_401": 1}, "failed"),
        ({"client": 1}, "failed"),
        ({"timeout": 200}, "failed"),
        ({"cancelled": 50}, "passed"),
        ({"cancelled": 50, "http_429": 2}, "failed"),
    ],
)
def test_failures_are_counted_by_kind_and_never_hidden(failures, state):
    check = load_checks.failures_apart(200, failures)
    assert check.state == state
    assert all(kind in check.text for kind in failures)


# all of them
def evidence(run, **changes) -> Evidence:
    load = Load(Target("http://127.0.0.1:1", "m"), Closed(4), Stop(requests=len(run.samples)), PromptPlan(seed=7))
    rows = columns(run)
    good = rows.good()
    now = Reading(
        process_started=1.0, requests=len(good), prompt_tokens=int(good["prompt_tokens"].sum()),
        cached_tokens=0, generated_tokens=int(good["output_tokens"].sum()),
    )  # fmt: skip
    none = Reading(process_started=1.0, requests=0, prompt_tokens=0, cached_tokens=0, generated_tokens=0)
    counters = counter_increase([none], [now], instances=1)
    facts = MetricInputs(
        rows, steady_window(rows, run.began, run.ended, users=4), open_loop=False, gained=counters.gained
    )
    fields = {
        "load": load, "facts": facts, "metrics": measure(facts), "counters": counters,
        "drained": Drained(True, 0.1, 0, 0), "manifest": WHOLE, "served": WHOLE.served_by, "beginnings": ["a", "b"],
    }  # fmt: skip
    return Evidence(**(fields | changes))


def test_a_sound_run_passes_every_check():
    checks = check_all(
        evidence(
            closed_loop(
                4, 10, lambda index, sent, user: good_sample(index, sent, user=user, ttft=2_000 * MS, step=60 * MS)
            )
        )
    )
    assert {check.name: check.state for check in checks} == dict.fromkeys(
        (
            "unique_prompts",
            "output_length",
            "conservation",
            "counters",
            "roofline",
            "drained",
            "steady_state",
            "manifest",
            "failures_apart",
        ),
        "passed",
    )
    assert len(checks) == len(CHECKS) == 9


def test_a_run_of_failures_only_is_checked_without_a_figure():
    states = {
        check.name: check.state for check in check_all(evidence(measurement([failed_sample(0, BEGAN, "refused")])))
    }
    assert states["failures_apart"] == "failed"
    assert (states["output_length"], states["roofline"]) == ("unknown", "unknown")


def test_conservation_calls_a_cancelled_request_no_failed_one():
    for kind, word in (("cancelled", "1 failed or cancelled;"), ("timeout", "1 failed;")):
        first, *others = closed_loop(4, 10).samples
        run = measurement([replace(first, failure=kind), *others])
        (check,) = (check for check in check_all(evidence(run)) if check.name == "conservation")
        assert (check.state, word in check.text) == ("passed", True)


def test_requests_at_once_are_counted_exactly():
    assert most_in_flight(columns(closed_loop(4, 10))) == 4
    assert most_in_flight(columns(measurement([]))) == 0
