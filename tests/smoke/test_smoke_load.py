"""The small load: streams read as recorded, failures by kind and in no latency, figures by their definitions."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke.figures import figures, percentile
from smoke.load import Load, Sample, prompt, read_stream, run
from smoke.server import counters, usage_fault
from tests.rest.fake_google import Answer, jwt
from tests.smoke.fake_service import FIXTURES, MODEL, Project, recorded_stream

RECORDED = [(at / 1000, line) for at, line in recorded_stream("chat-stream-usage.txt")]
WHOLE = b"".join(line for _, line in RECORDED)


def load(url: str = "http://127.0.0.1:9", **others: Any) -> Load:
    return Load(
        **(
            {"url": url, "model": MODEL, "requests": 6, "concurrency": 2, "prompt_tokens": 20, "output_tokens": 6}
            | others
        )
    )


def test_a_recorded_stream_gives_the_times_of_its_tokens_and_the_counts_of_its_usage() -> None:
    sample = read_stream(RECORDED, 6)
    # The role's chunk (15.1 ms) and the usage's chunk carry no token.
    assert sample == Sample("", pytest.approx(0.0152), pytest.approx(0.026), 19, 6)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=12).map(sorted))
def test_how_the_network_cuts_a_stream_changes_no_count(cuts: list[int]) -> None:
    edges = [0, *cuts, len(WHOLE)]
    chunks = [(float(n + 1), WHOLE[a:b]) for n, (a, b) in enumerate(itertools.pairwise(edges))]
    sample = read_stream(chunks, 6)
    assert (sample.failure, sample.prompt_tokens, sample.output_tokens) == ("", 19, 6)
    assert 1 <= sample.ttft <= sample.e2e <= len(chunks)


@given(st.integers(0, len(WHOLE) - 16))
def test_a_stream_cut_short_is_a_failure_wherever_it_breaks(end: int) -> None:
    assert read_stream([(1.0, WHOLE[:end])], 6).failure == "truncated"


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (b'data: {"error": {"message": "EngineCore"}}\n\ndata: [DONE]\n\n', "error_in_stream"),
        (b"data: {broken\n\ndata: [DONE]\n\n", "bad_json"),
        (b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n', "bad_usage"),
        (b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\ndata: [DONE]\n\n', "no_token"),
        (b"", "truncated"),
    ],
)
def test_a_200_with_something_wrong_inside_is_a_failure(stream: bytes, kind: str) -> None:
    assert read_stream([(1.0, stream)], 6).failure == kind


@pytest.mark.parametrize("channel", ['"reasoning":"hm"', '"reasoning_content":"hm"', '"tool_calls":[{"index":0}]'])
def test_a_token_of_any_channel_is_a_token(channel: str) -> None:
    stream = b'data: {"choices":[{"delta":{%s}}]}\ndata: {"choices":[],"usage":%s}\ndata: [DONE]\n' % (
        channel.encode(),
        b'{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}',
    )
    assert read_stream([(0.5, stream)], 6) == Sample("", 0.5, 0.5, 3, 1)


def test_no_two_prompts_begin_alike_and_a_seed_makes_them_again() -> None:
    prompts = [prompt(load(), index) for index in range(200)]
    assert len({text[:16] for text in prompts}) == 200
    assert prompts == [prompt(load(), index) for index in range(200)]
    assert prompts[0] != prompt(load(seed=1), 0)
    # A run with other settings meets a server that may still hold the prompts of the last one.
    assert prompts[0] != prompt(load(requests=7), 0)


def test_a_run_sends_every_request_once_and_no_more_at_a_time_than_users(project: Project) -> None:
    shown: list[str] = []
    samples, seconds = run(load(project.vllm.url), _token(project), shown.append)
    assert [one.failure for one in samples] == [""] * 6
    assert shown == ["0 of 6 requests answered, 2 at once"]
    assert all(0 < one.ttft <= one.e2e <= seconds for one in samples)
    sent = [call for call in project.vllm.calls if call.path == "/v1/chat/completions"]
    assert len({call.json["messages"][0]["content"] for call in sent}) == 6
    assert {call.json["max_tokens"] for call in sent} == {6}
    assert all(call.json["ignore_eos"] and call.json["stream_options"] == {"include_usage": True} for call in sent)


def test_failures_are_counted_by_kind_and_are_in_no_latency(project: Project) -> None:
    project.chat_status = [429, 503, 200]
    samples, seconds = run(load(project.vllm.url), _token(project), print)
    found = figures(load(), samples, seconds, simulated=False)
    assert found["failed"] == {"http_429": 1, "http_503": 1}
    assert (found["requests"], found["completed"], found["output_tokens"]) == (6, 4, 24)
    assert "2 of 6 requests failed and are in no figure but `failed`" in found["notes"]


def test_a_server_that_is_slower_than_the_deadline_times_out(project: Project) -> None:
    project.vllm.routes.insert(
        0, lambda call: Answer(chunks=[0.6, WHOLE]) if call.path == "/v1/chat/completions" else None
    )
    samples, seconds = run(load(project.vllm.url, requests=3, deadline_seconds=0.2), _token(project), print)
    assert [one.failure for one in samples] == ["timeout"] * 3
    assert seconds < 1


def test_nobody_listening_is_a_failure_of_each_request() -> None:
    samples, _ = run(load(), {}, print)
    assert [one.failure for one in samples] == ["connect"] * 6


def test_the_figures_follow_their_definitions() -> None:
    samples = [Sample("", 0.1, 1.1, 100, 11), Sample("", 0.3, 2.3, 100, 11), Sample("http_429")]
    found = figures(load(requests=3, concurrency=2), samples, 4.0, simulated=False)
    assert found["ttft_ms"] == {"p50": 200.0, "p99": 298.0}
    assert found["e2e_ms"] == {"p50": 1700.0, "p99": 2288.0}
    assert found["tpot_ms"] == {"p50": 150.0, "p99": 199.0}
    assert (found["output_tokens_per_second"], found["input_tokens_per_second"]) == (5.5, 50.0)
    assert found["requests_per_second"] == 0.5


def test_what_cannot_be_measured_is_absent_and_not_zero() -> None:
    found = figures(load(), [Sample("timeout")] * 6, 1.0, simulated=False)
    assert found["completed"] == 0
    assert not {"ttft_ms", "tpot_ms", "e2e_ms", "output_tokens_per_second"} & set(found)
    single = figures(load(output_tokens=1), [Sample("", 0.1, 0.1, 5, 1)] * 6, 1.0, simulated=False)
    assert "tpot_ms" not in single
    assert single["ttft_ms"] == {"p50": 100.0, "p99": 100.0}


@pytest.mark.parametrize(
    ("change", "simulated", "note"),
    [
        ({}, True, "simulated: "),
        ({"requests": 5}, False, "5 requests are fewer than 3 x 2 users"),
        ({"output_tokens": 7}, False, "6 answers are shorter than the 7 tokens asked for"),
    ],
)
def test_a_doubt_stands_beside_the_figures(change: dict[str, int], simulated: bool, note: str) -> None:
    given_load = load(**change)
    samples = [Sample("", 0.1, 0.2, 19, 6)] * given_load.requests
    assert [text for text in figures(given_load, samples, 1.0, simulated=simulated)["notes"] if text.startswith(note)]


def test_a_run_without_doubts_has_no_notes_and_cached_prompts_are_one() -> None:
    assert figures(load(), [Sample("", 0.1, 0.2, 19, 6)] * 6, 1.0, simulated=False)["notes"] == []
    cached = figures(load(), [Sample("", 0.1, 0.2, 19, 6, 16)] * 6, 1.0, simulated=False)["notes"]
    assert cached == ["96 prompt tokens came from the prefix cache: prompts were not as unique as meant"]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.floats(0, 1), st.floats(0, 1))
def test_a_percentile_lies_among_the_values_and_grows_with_its_share(values: list[float], a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert min(values) <= percentile(values, low) <= percentile(values, high) + 1e-6
    assert percentile(values, 1) == max(values)


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


@pytest.mark.parametrize(("name", "sums"), [("metrics-ngram.txt", (762, 47)), ("metrics-mtp.txt", (5415, 0))])
def test_recorded_counters_are_summed_without_their_dates(name: str, sums: tuple[int, int]) -> None:
    found = counters((FIXTURES / name).read_text(), "vllm:spec_decode_")
    drafted, accepted = "vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total"
    assert (found[drafted], found[accepted]) == sums
    assert all(value < 1e6 for value in found.values())
    assert found["vllm:spec_decode_num_accepted_tokens_per_pos_total"] == sums[1]


def test_a_label_may_hold_anything_and_a_server_without_drafts_has_no_counters() -> None:
    text = (
        '# HELP a_total x\na_total{m="b } 7 {",n="1"} 3.0\na_total{n="2"} 4 1795219792\n'
        'a_created{n="2"} 9e9\nbroken\n\n'
    )
    assert counters(text, "a") == {"a_total": 7.0}
    assert counters((FIXTURES / "metrics.txt").read_text(), "vllm:spec_decode_") == {}


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_true_counts_have_no_fault(prompt_tokens: int, output: int) -> None:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": output, "total_tokens": prompt_tokens + output}
    assert usage_fault(usage, asked=64) is None
    assert usage_fault(usage | {"completion_tokens": 65}, asked=64)


def _token(project: Project) -> dict[str, str]:
    return {"Authorization": f"Bearer {jwt({'aud': project.vllm.url, 'exp': 4102444800})}"}
