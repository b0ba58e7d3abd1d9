"""/metrics against the recordings of a real vLLM 0.32.0: every family, and how each grows by known requests.

Both the simulated server and a real one (`tools/vllm/contract.py`) pass these tests.
"""

from __future__ import annotations

import re
import time

import pytest

from simulated_vllm_support.samples import text_of

RECORDED = [
    ("plain", "metrics"),
    ("plain-dead", "engine-dead/metrics"),
    ("keyed", "ngram-apikey/metrics"),
    ("keyed", "metrics-ngram"),
    ("mtp", "metrics-mtp"),
]


def families(text: str) -> dict[str, tuple[str, str, set[tuple[str, ...]]]]:
    """Name -> help, type and the sets of label names with their fixed values."""
    by_name: dict[str, tuple[str, str, set[tuple[str, ...]]]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, help_text = line[7:].partition(" ")
            by_name[name] = (help_text, "", set())
        elif line.startswith("# TYPE "):
            by_name[name] = (by_name[name][0], line.split()[3], set())
        elif line and name and line.startswith(name):
            by_name[name][2].add(series(line))
    return by_name


def series(line: str) -> tuple[str, ...]:
    """A series without its number and without values that differ from server to server."""
    name, _, inside = line.rpartition(" ")[0].partition("{")
    varying = ("handler=", "method=", "status=", "generation=", "version=", "patchlevel=", "minor=", "le=")
    pairs = inside.rstrip("}").split('",') if "cache_config_info" in name else inside.rstrip("}").split(",")
    hidden = "cache_config_info" in name
    return (name, *(pair.partition("=")[0] if hidden or pair.startswith(varying) else pair for pair in pairs))


@pytest.mark.slow
@pytest.mark.parametrize(("configuration", "name"), RECORDED)
def test_every_family_has_the_recorded_name_type_help_and_labels(servers, configuration, name):
    client = servers(configuration)
    client.post("/v1/completions", json={"prompt": "a", "max_tokens": 1})
    response = client.get("/metrics")
    expected, actual = families(text_of(name)), families(response.text)
    if name == "metrics-ngram":  # recorded on a server without the keyed one's parser of tool calls
        actual = {family: row for family, row in actual.items() if "tool_call_parser" not in family}
    ours = [family for family in expected if family.startswith("vllm:")]
    assert [family for family in actual if family.startswith("vllm:")] == ours
    for family in ours:
        assert actual[family] == expected[family], family
    assert {name: row[:2] for name, row in expected.items()} == {name: row[:2] for name, row in actual.items()}
    assert response.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


@pytest.mark.parametrize(("configuration", "name"), RECORDED)
def test_buckets_are_the_recorded_ones(servers, configuration, name):
    def buckets(text):
        return [line.partition(" ")[0] for line in text.splitlines() if line.startswith("vllm:") and "_bucket{" in line]

    assert buckets(servers(configuration).get("/metrics").text) == buckets(text_of(name))


def numbers(client) -> dict[str, float]:
    """Every series of the engine and of http by its name and the labels that tell it from its brothers."""
    by_series = {}
    for line in client.get("/metrics").text.splitlines():
        if line.startswith(("vllm:", "http_")) and "_created{" not in line:
            name, value = line.rsplit(" ", 1)
            by_series[re.sub(r'(engine|model_name)="[^"]*",?', "", name).replace(",}", "}").replace("{}", "")] = float(
                value
            )
    return by_series


def growth(client, *bodies: dict, path: str = "/v1/completions") -> tuple[dict[str, float], list[dict]]:
    """What the requests have added to each series that they moved, and their answers."""
    before = numbers(client)
    answers = [client.post(path, json=body) for body in bodies]
    assert [answer.status_code for answer in answers] == [200] * len(bodies)
    after = numbers(client)
    return {name: after[name] - before.get(name, 0.0) for name in after if after[name] != before.get(name, 0.0)}, [
        answer.json() for answer in answers
    ]


def untimed_values(delta: dict[str, float], prefix: str) -> dict[str, float]:
    """The histograms' counts and sums and the counters, without buckets and without measured times."""
    timed = ("_seconds_sum", "iteration_tokens_total")
    return {
        name.removeprefix(prefix): value
        for name, value in delta.items()
        if name.startswith(prefix) and "_bucket{" not in name and not any(part in name for part in timed)
    }


ENDLESS = {"prompt": "def main():", "ignore_eos": True, "temperature": 0}


def test_counters_grow_by_what_was_asked_and_answered(servers):
    delta, (first, second) = growth(
        servers("plain"), ENDLESS | {"max_tokens": 8}, ENDLESS | {"max_tokens": 3, "prompt": "import os"}
    )
    read = first["usage"]["prompt_tokens"] + second["usage"]["prompt_tokens"]
    once_each = (
        "time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds",
        "request_inference_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds",
        "request_time_per_output_token_seconds", "request_prompt_tokens", "request_generation_tokens",
        "request_max_num_generation_tokens", "request_params_n", "request_params_max_tokens",
        "request_num_preemptions", "request_prefill_kv_computed_tokens",
    )  # fmt: skip
    assert untimed_values(delta, "vllm:") == {
        "prompt_tokens_total": read,
        'prompt_tokens_by_source_total{source="local_compute"}': read,
        "prefix_cache_queries_total": read,
        "generation_tokens_total": 11.0,
        'request_success_total{finished_reason="length"}': 2.0,
        "inter_token_latency_seconds_count": 7.0 + 2.0,
        **{f"{name}_count": 2.0 for name in once_each},
        "request_prompt_tokens_sum": read,
        "request_generation_tokens_sum": 11.0,
        "request_max_num_generation_tokens_sum": 11.0,
        "request_params_n_sum": 2.0,
        "request_params_max_tokens_sum": 11.0,
        "request_prefill_kv_computed_tokens_sum": read,
    }
    steps, tokens = (delta[f"vllm:iteration_tokens_total_{what}"] for what in ("count", "sum"))
    assert steps >= 8 + 3
    assert tokens >= 11


def test_the_middle_of_each_histogram_fits_its_sum(servers):
    """Buckets are cumulative and grow with their count."""
    delta, _ = growth(servers("plain"), ENDLESS | {"max_tokens": 5})
    for name in [name for name in delta if name.endswith("_count") and name.startswith("vllm:")]:
        family = name.removesuffix("_count")
        buckets = [value for key, value in delta.items() if key.startswith(f"{family}_bucket{{")]
        assert max(buckets) == delta[name], family
        assert buckets == sorted(buckets), family


def test_an_answer_that_ends_by_itself_is_another_success(servers):
    body = {"prompt": "a", "structured_outputs": {"choice": ["yes", "no"]}, "max_tokens": 10, "temperature": 0}
    delta, (answer,) = growth(servers("plain"), body)
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert delta['vllm:request_success_total{finished_reason="stop"}'] == 1.0
    assert delta["vllm:generation_tokens_total"] == answer["usage"]["completion_tokens"]
    assert 'vllm:request_success_total{finished_reason="length"}' not in delta


def test_choices_are_requests_of_their_own_with_one_parameter_between_them(servers):
    body = ENDLESS | {"max_tokens": 4, "n": 2, "temperature": 1, "seed": 1}
    delta, (answer,) = growth(servers("plain"), body)
    assert answer["usage"]["completion_tokens"] == delta["vllm:generation_tokens_total"] == 8.0
    assert delta['vllm:request_success_total{finished_reason="length"}'] == 2.0
    assert (delta["vllm:request_params_n_count"], delta["vllm:request_params_n_sum"]) == (1.0, 2.0)
    longest = "vllm:request_max_num_generation_tokens"
    assert (delta[f"{longest}_count"], delta[f"{longest}_sum"]) == (1.0, 4.0)
    assert (delta["vllm:request_generation_tokens_count"], delta["vllm:request_generation_tokens_sum"]) == (2.0, 8.0)


def test_an_answer_of_one_token_has_a_time_per_further_token_of_zero(servers):
    delta, _ = growth(servers("plain"), ENDLESS | {"max_tokens": 1})
    name = "vllm:request_time_per_output_token_seconds"
    assert (delta[f"{name}_count"], delta.get(f"{name}_sum", 0.0)) == (1.0, 0.0)
    assert delta['vllm:request_generation_tokens_bucket{le="1.0"}'] == 1.0


def test_a_beam_search_is_one_request_for_each_token_of_each_beam(servers):
    body = ENDLESS | {"max_tokens": 4, "n": 2, "use_beam_search": True}
    delta, (answer,) = growth(servers("plain"), body)
    requests, read = 1 + 3 * 2, answer["usage"]["prompt_tokens"]
    assert answer["usage"]["completion_tokens"] == 8
    assert delta["vllm:request_params_n_count"] == delta["vllm:time_to_first_token_seconds_count"] == requests
    assert delta["vllm:generation_tokens_total"] == requests
    assert delta["vllm:prompt_tokens_total"] == requests * read + 2 * (1 + 2 + 3)
    assert "vllm:inter_token_latency_seconds_count" not in delta
    completions = 'http_requests_total{handler="/v1/completions",method="POST",status="2xx"}'
    assert delta[completions] == 1.0


def test_a_repeated_prompt_is_counted_as_a_hit_of_the_cache(servers):
    body = ENDLESS | {"prompt": [300 + number % 50 for number in range(700)], "max_tokens": 2}
    client = servers("plain")
    growth(client, body)
    delta, _ = growth(client, body)
    hits = delta["vllm:prefix_cache_hits_total"]
    assert 512 <= hits < 700
    assert delta["vllm:prefix_cache_queries_total"] == 700
    assert delta["vllm:prompt_tokens_total"] == 700
    assert delta['vllm:prompt_tokens_by_source_total{source="local_cache_hit"}'] == hits
    assert delta['vllm:prompt_tokens_by_source_total{source="local_compute"}'] == 700 - hits
    assert delta["vllm:prompt_tokens_cached_total"] == hits
    assert delta['vllm:prompt_tokens_cached_by_source_total{source="device"}'] == hits
    assert delta["vllm:request_prefill_kv_computed_tokens_sum"] == 700 - hits


def test_gauges_return_to_rest(servers):
    client = servers("plain")
    client.post("/v1/completions", json=ENDLESS | {"max_tokens": 2})
    values = numbers(client)
    still = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
    assert {name: values[f"vllm:{name}"] for name in still} == dict.fromkeys(still, 0.0)
    assert values['vllm:engine_sleep_state{sleep_state="awake"}'] == 1.0
    assert [value for name, value in values.items() if "cache_config_info" in name] == [1.0]


def test_running_requests_show_while_they_run(servers):
    client = servers("plain")
    body, ended = ENDLESS | {"max_tokens": 4000, "stream": True}, 'vllm:request_success_total{finished_reason="length"}'
    for _ in range(10):
        before = numbers(client)
        with client.stream("POST", "/v1/completions", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            values = numbers(client)
        if values.get(ended) == before.get(ended):  # else a busy machine had kept this client until all was answered
            break
    assert values["vllm:num_requests_running"] == 1.0
    assert values["vllm:kv_cache_usage_perc"] > 0
    # What the client has left is stopped: nothing of it is counted in the tests that follow.
    deadline = time.monotonic() + 60
    while numbers(client)["vllm:num_requests_running"] and time.monotonic() < deadline:
        pass


def test_http_families_count_by_route_method_and_status(servers):
    client = servers("plain")
    before = numbers(client)
    client.post("/tokenize", json={"prompt": "a"})
    client.get("/v1/nothing")
    client.post("/v1/chat/completions", json={"messages": 1})
    after = numbers(client)
    for name in (
        'http_requests_total{handler="/tokenize",method="POST",status="2xx"}',
        'http_requests_total{handler="none",method="GET",status="4xx"}',
        'http_requests_total{handler="/v1/chat/completions",method="POST",status="4xx"}',
        'http_request_duration_seconds_count{handler="/tokenize",method="POST"}',
        'http_request_size_bytes_count{handler="/tokenize"}',
        'http_response_size_bytes_count{handler="/tokenize"}',
    ):
        assert after[name] - before.get(name, 0) == 1.0, name
    # A stream that a test before this one left is counted when the server has noticed.
    assert after["http_request_duration_highr_seconds_count"] - before["http_request_duration_highr_seconds_count"] >= 3
    # Those that only look are not counted.
    assert not [name for name in after if 'handler="/metrics"' in name or 'handler="/health"' in name]


@pytest.mark.slow
@pytest.mark.parametrize("configuration", ["keyed", "mtp"])
def test_drafts_are_counted_by_their_place(servers, configuration):
    body = {"prompt": "a b a b a b a b a b", "max_tokens": 120, "ignore_eos": True, "temperature": 0}
    delta, _ = growth(servers(configuration), body)
    drafts, drafted = delta["vllm:spec_decode_num_drafts_total"], delta["vllm:spec_decode_num_draft_tokens_total"]
    accepted = delta.get("vllm:spec_decode_num_accepted_tokens_total", 0.0)
    by_place = [
        delta.get(f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{place}"}}', 0.0)
        for place in range(3)
    ]
    assert drafts < drafted <= 3 * drafts
    assert accepted == sum(by_place)
    assert by_place == sorted(by_place, reverse=True)
    assert delta["vllm:generation_tokens_total"] == 120
