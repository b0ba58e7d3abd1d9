"""The end of `make up`: nothing made up, nothing that is unknown shown as a number."""

from typing import Any

import pytest

from bezel.ops.summary import summary


@pytest.fixture
def outputs() -> dict[str, Any]:
    return {
        "url": "http://127.0.0.1:4000",
        "revision": "projects/p/locations/l/services/s/revisions/s-00001-abc",
        "model": "gemma",
        "simulated": True,
        "plan": {
            "fit": {
                "weights_gib": 7.59,
                "kv_cache_gib": 11.66,
                "budget_gib": 21.23,
                "full_context_sequences": 25,
                "max_model_len": 32768,
            },
            "cost": {"usd_per_hour": 1.0465, "usd_per_month_always_on": 763.96, "usd_per_month_without_traffic": 0},
        },
        "smoke": {
            "verdict": {"ok": True, "checks": {"health": {}, "models": {}}},
            "figures": {
                "ttft_ms": {"p50": 2015.6},
                "tpot_ms": {"p50": 43.3},
                "output_tokens_per_second": 107.3,
                "concurrency": 8,
                "completed": 24,
                "requests": 24,
            },
        },
    }


def test_tells_place_revision_price_checks_and_figures(outputs: dict[str, Any]) -> None:
    text = summary("l4-qat", outputs, behind="a simulated vLLM")
    assert "s-00001-abc" in text
    assert "1.0465 USD per hour while an instance runs" in text
    assert "health, models: all passed" in text
    assert "107.3 output tokens/s with 8 users; 24 of 24 requests answered" in text
    assert "curl -N http://127.0.0.1:4000/v1/chat/completions" in text


@pytest.mark.parametrize("simulated", [True, False])
def test_says_simulated_beside_the_figures_when_and_only_when_they_are(
    outputs: dict[str, Any], simulated: bool
) -> None:
    outputs["simulated"] = simulated
    assert ("measured (simulated)" in summary("l4-qat", outputs, behind="x")) is simulated


def test_an_unknown_price_is_no_number(outputs: dict[str, Any]) -> None:
    outputs["plan"]["cost"]["usd_per_hour"] = "unknown: no row gpu nvidia-l4"
    text = summary("l4-qat", outputs, behind="x")
    assert "an unknown price (unknown: no row gpu nvidia-l4) per hour" in text
    assert "0 USD per hour" not in text


@pytest.mark.parametrize(("source", "said"), [("derived: a row of us-central1", True), ("pricing page, Tier 1", False)])
def test_a_derived_price_is_said_to_be_one(outputs: dict[str, Any], source: str, said: bool) -> None:
    outputs["plan"]["cost"] |= {"lines": [{"item": "gpu nvidia-l4", "source": source}], "not_included": ["logs"]}
    text = summary("l4-qat", outputs, behind="x")
    assert ("derived: gpu nvidia-l4" in text) is said
    assert "not included: logs" in text


def test_what_was_not_measured_is_left_out(outputs: dict[str, Any]) -> None:
    outputs["smoke"] = {}
    text = summary("l4-qat", outputs, behind="x")
    assert "measured" not in text
    assert "checked" not in text


def test_the_next_commands_name_another_stack(outputs: dict[str, Any]) -> None:
    assert "make down STACK=other" in summary("other", outputs, behind="x")
    assert "make down\n" in summary("l4-qat", outputs, behind="x")


def test_requests_of_the_benchmark_that_failed_are_told_by_their_kinds(outputs: dict[str, Any]) -> None:
    outputs["smoke"]["figures"] |= {"completed": 21, "failed": {"truncated": 2, "http_503": 1}}
    text = summary("l4-qat", outputs, behind="x")
    assert "21 of 24 requests answered, the others failed (http_503: 1, truncated: 2)" in text
