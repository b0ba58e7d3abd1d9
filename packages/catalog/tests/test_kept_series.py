"""Series of vLLM that are kept over time: recorded ones only, and no other name passes the rule of the collector."""

import re

import pytest

from bezel_catalog.vllm.kept_series import (
    KEPT_SERIES,
    RECORDED_SAMPLES,
    SAMPLES_ABOUT_A_SCRAPE,
    SERVER,
    keep_expression,
    samples_of_scrape,
)
from bezel_catalog.vllm.servers import recorded_server, recorded_servers

# A recorded server drafts nothing, and its recording has vLLM's own families only.
NOT_RECORDED = ("vllm:spec_decode_", "http_", "process_")
OF_NO_ENGINE = {"http_requests_total", "process_start_time_seconds", "vllm:admission_rejections_total"}
KEPT = re.compile(keep_expression())


@pytest.mark.parametrize("release", recorded_servers())
def test_every_recorded_release_has_the_kept_families(release: str) -> None:
    families = recorded_server(release).families
    assert [
        each.name for each in KEPT_SERIES if not each.name.startswith(NOT_RECORDED) and each.name not in families
    ] == []


def test_each_family_is_named_once_with_buckets_for_a_histogram_alone() -> None:
    assert len({each.name for each in KEPT_SERIES}) == len(KEPT_SERIES)
    for each in KEPT_SERIES:
        assert (each.buckets > 0) == (each.kind == "histogram"), each.name
        assert each.name.endswith("_total") == (each.kind == "counter"), each.name
        assert set(SERVER) <= {*each.labels} or each.name in OF_NO_ENGINE


@pytest.mark.parametrize(
    "name",
    [
        *(each.name for each in KEPT_SERIES if each.kind != "histogram"),
        *(f"{each.name}_{part}" for each in KEPT_SERIES if each.buckets for part in ("bucket", "sum", "count")),
    ],
)
def test_the_rule_keeps_every_series_of_the_families(name: str) -> None:
    assert KEPT.fullmatch(name)


@pytest.mark.parametrize(
    "name",
    [
        "vllm:num_requests_waiting_by_reason",
        "vllm:prompt_tokens_created",
        "vllm:time_to_first_token_seconds",
        "vllm:time_to_first_token_seconds_created",
        "vllm:request_params_max_tokens_bucket",
        "vllm:num_requests_running_sum",
        "http_requests_created",
        "http_request_duration_seconds_bucket",
        "process_cpu_seconds_total",
        "up",
        "",
    ],
)
def test_the_rule_keeps_nothing_else(name: str) -> None:
    assert not KEPT.fullmatch(name)


def test_a_histogram_counts_two_samples_and_its_buckets() -> None:
    plain = [each.series for each in KEPT_SERIES if each.kind != "histogram"]
    buckets = [each.buckets for each in KEPT_SERIES if each.kind == "histogram"]
    assert (sum(plain), len(buckets), sum(buckets)) == (43, 7, 133)
    assert samples_of_scrape() == 43 + 2 * 7 + 133 + SAMPLES_ABOUT_A_SCRAPE
    assert 0 < RECORDED_SAMPLES < samples_of_scrape()
