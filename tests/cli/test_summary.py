"""The end of `make up`: nothing made up, nothing that is unknown shown as a number."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from bezel.cli import up_summary
from bezel_base.terminal.layout import lay_out

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def summary(
    stack: str, outputs: dict[str, Any], *, behind: str, not_serving: str = "", now: datetime = NOW, folder: str = ""
) -> str:
    blocks = up_summary.summary(stack, outputs, behind=behind, not_serving=not_serving, now=now, folder=folder)
    return "".join(f"{line}\n" for line in lay_out(blocks))


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


def test_tells_regions_and_address_and_asks_the_first_region(outputs: dict[str, Any]) -> None:
    outputs |= {
        "url": "https://llm.acme.example",
        "regions": ["us-east4", "europe-west4"],
        "urls": {"europe-west4": "http://127.0.0.1:4001", "us-east4": "http://127.0.0.1:4000"},
        "address": {"domain": "llm.acme.example", "ip": "127.250.1.2"},
    }
    text = summary("l4-qat", outputs, behind="x")
    rows = ["address https://llm.acme.example, at 127.250.1.2"]
    rows += ["url us-east4 http://127.0.0.1:4000", "url europe-west4 http://127.0.0.1:4001"]
    assert [" ".join(line.split()) for line in text.splitlines()][3:6] == rows
    assert "curl -N http://127.0.0.1:4000/v1/chat/completions" in text
    outputs |= {"regions": ["us-east4"], "urls": {"us-east4": "http://127.0.0.1:4000"}}
    assert "url us-east4" not in summary("l4-qat", outputs, behind="x")


@pytest.mark.parametrize("judged", [True, False])
def test_an_address_that_no_caller_reaches_yet_says_why(outputs: dict[str, Any], judged: bool) -> None:
    check = {"ok": True, "judged": judged, "detail": "no connection with TLS"}
    outputs["address"] = {"domain": "llm.acme.example", "ip": "127.250.1.2", "check": check}
    text = " ".join(summary("l4-qat", outputs, behind="x").split())
    assert ("callers could not connect when a deploy last tried: no connection with TLS;" in text) is not judged


@pytest.mark.parametrize("regions", [["us-east4", "europe-west4"], ["us-east4"]])
def test_the_price_of_regions_and_address_is_their_sum(outputs: dict[str, Any], regions: list[str]) -> None:
    total = {"usd_per_hour_all_instances": 2.118, "usd_per_month_without_traffic": 18.25}
    outputs["plan"]["cost"]["total"] = total | {"regions": {each: {"usd_per_hour": 1.0465} for each in sorted(regions)}}
    outputs["regions"] = regions  # the order of the stack file, which the engine keeps in a list alone
    rows = [" ".join(line.split()) for line in summary("l4-qat", outputs, behind="x").splitlines()]
    assert "price in all 2.118 USD per hour at most, 18.25 USD per month without traffic" in rows
    in_each = [f"price in {each} 1.0465 USD per hour while an instance runs" for each in regions]
    assert [row for row in rows if row in in_each] == (in_each if len(regions) > 1 else [])
    assert any(row.startswith("price of an instance 1.0465 USD") for row in rows) is (len(regions) == 1)


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


@pytest.mark.parametrize(("kind", "is_said"), [("derived", True), ("list price", False)])
def test_a_derived_price_is_said_to_be_one(outputs: dict[str, Any], kind: str, is_said: bool) -> None:
    outputs["plan"]["cost"] |= {"lines": [{"item": "gpu nvidia-l4", "kind": kind}], "not_included": ["logs"]}
    text = summary("l4-qat", outputs, behind="x")
    assert ("derived: gpu nvidia-l4" in text) is is_said
    assert "not included: logs" in text


def test_commands_name_the_folder_of_a_localcloud_elsewhere(outputs: dict[str, Any]) -> None:
    text = summary("dev", outputs, behind="x", folder="two words")
    for action in ("outputs dev", "down dev"):
        assert f"  .venv/bin/bezel local {action} --dir 'two words'\n" in text
    assert re.search(r"bezel local token \S+ --dir 'two words'\)", text)
    assert "make " not in text


def test_commands_name_no_folder_where_they_find_it(outputs: dict[str, Any]) -> None:
    text = summary("dev", outputs, behind="x")
    assert "  make outputs STACK=dev\n  make down STACK=dev\n" in text
    assert "--dir" not in text


def test_what_was_not_measured_is_left_out(outputs: dict[str, Any]) -> None:
    outputs["smoke"] = {}
    text = summary("l4-qat", outputs, behind="x")
    assert "measured" not in text
    assert "checked" not in text


def test_the_next_commands_name_another_stack(outputs: dict[str, Any]) -> None:
    assert "make down STACK=other" in summary("other", outputs, behind="x")
    assert "make down\n" in summary("l4-qat", outputs, behind="x")


def test_requests_of_the_benchmark_that_failed_are_reported_by_their_kinds(outputs: dict[str, Any]) -> None:
    outputs["smoke"]["figures"] |= {"completed": 21, "failed": {"truncated": 2, "http_503": 1}}
    text = summary("l4-qat", outputs, behind="x")
    assert "21 of 24 requests answered, the others failed (http_503: 1, truncated: 2)" in text


def test_a_client_limited_benchmark_shows_its_reason_and_no_figure(outputs: dict[str, Any]) -> None:
    reason = "the client was measured, not the server: its event loop lagged"
    outputs["smoke"]["figures"] |= {"state": "client_limited", "notes": [reason]}
    text = summary("l4-qat", outputs, behind="x")
    assert "not measured  client limited" in text
    assert f"note          {reason}" in text
    assert "107.3" not in text


@pytest.mark.parametrize("state", ["ok", "queueing", "saturated"])
def test_figures_of_the_service_are_shown_with_every_note(outputs: dict[str, Any], state: str) -> None:
    outputs["smoke"]["figures"] |= {"state": state, "notes": ["the first", "the second"]}
    text = summary("l4-qat", outputs, behind="x")
    assert "107.3 output tokens/s" in text
    assert "note 1" in text
    assert "the second" in text


def test_a_check_that_was_not_judged_did_not_pass(outputs: dict[str, Any]) -> None:
    refusal = {"ok": True, "judged": False, "detail": "access.public is set"}
    outputs["smoke"]["verdict"]["checks"]["refusal"] = refusal
    text = summary("l4-qat", outputs, behind="x")
    assert "health, models: passed; refusal: not checked (access.public is set)" in text
    assert "all passed" not in text


def test_a_service_that_does_not_answer_is_not_in_service(outputs: dict[str, Any]) -> None:
    text = summary("l4-qat", outputs, behind="x", not_serving="HTTP 503: no machine is there")
    assert "l4-qat is deployed on localcloud and not in service: HTTP 503: no machine is there" in text
    assert "is in service" not in text
    assert "checked before" in text
    assert "all passed" not in text
    assert "curl" not in text
    assert "lease" not in text
    assert "renew: true" in summary("v6e4-moe", leased_outputs(outputs), behind="x", not_serving="HTTP 503")


def leased_outputs(outputs: dict[str, Any]) -> dict[str, Any]:
    cost = {"usd_per_hour": 5.4, "so_far_usd": 0.3, "at_end_usd": 21.6, "as_of": "2026-11-21T10:00:00Z"}
    lease = {"state": "active", "zone": "us-east5-a", "ends_at": "2026-11-21T14:00:00Z", "cost": cost}
    money = {
        "usd_per_hour": 5.4,
        "usd_per_lease": 21.6,
        "lease_seconds": 14400,
        "usd_per_hour_with_gateway": 5.5818,
        "usd_per_lease_with_gateway": 22.33,
    }
    plan = {**outputs["plan"], "cost": money}
    return {key: value for key, value in outputs.items() if key != "revision"} | {"leases": {"l": lease}, "plan": plan}


def test_a_lease_is_shown_with_its_place_end_and_cost_beside_the_gateway(outputs: dict[str, Any]) -> None:
    text = summary("v6e4-moe", leased_outputs(outputs), behind="x")
    assert "active in us-east5-a, ends 2026-11-21T14:00:00Z; 0.30 USD so far (as of 2026-11-21T10:00:00Z)" in text
    assert "5.4000 USD per hour and 21.60 USD for 4 h of accelerators; with the gateway at most 5.5818 USD" in text
    assert "revision" not in text


@pytest.mark.parametrize(
    ("state", "not_serving", "text_part"),
    [
        ("active", "HTTP 503", "was active in us-east5-a at the last check, ends 2026-11-21T14:00:00Z"),
        ("expired", "HTTP 503", "expired, was in us-east5-a, planned end 2026-11-21T14:00:00Z; 0.30 USD so far"),
        ("gone", "", "gone, was in us-east5-a, planned end 2026-11-21T14:00:00Z; 0.30 USD so far"),
    ],
)
def test_a_lease_is_called_active_only_where_the_service_answers(
    outputs: dict[str, Any], state: str, not_serving: str, text_part: str
) -> None:
    changed = leased_outputs(outputs)
    changed["leases"]["l"]["state"] = state
    text = summary("v6e4-moe", changed, behind="x", not_serving=not_serving)
    assert text_part in text
    assert ("USD at its end" in text) is (state == "active")


def scheduled_outputs(outputs: dict[str, Any]) -> dict[str, Any]:
    changed = leased_outputs(outputs)
    hours = {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "zone": "Europe/Berlin"}
    changed["leases"]["l"] |= {"state": "scheduled", "ends_at": None, "hours": [hours]}
    changed["leases"]["l"]["cost"] |= {"so_far_usd": "unknown"}
    return changed


def test_hours_of_a_lease_are_shown_and_nothing_that_they_change(outputs: dict[str, Any]) -> None:
    text = summary("v6e1", scheduled_outputs(outputs), behind="x")
    hours = "leased from 0 8 * * 1-5 until 0 18 * * 1-5 (Europe/Berlin)"
    assert f"us-east5-a, {hours}; 21.60 USD at most for each" in text
    assert "so far" not in text


@pytest.mark.parametrize(
    ("now", "text_part"),
    [
        ("2026-11-27T19:00:00+00:00", "outside its hours, and the next lease is requested at 2026-11-30 07:00 UTC"),
        ("2026-11-27T12:00:00+00:00", "not in service: HTTP 503"),
    ],
)
def test_outside_its_hours_a_stack_that_does_not_answer_says_when_it_will(
    outputs: dict[str, Any], now: str, text_part: str
) -> None:
    at = datetime.fromisoformat(now)
    text = summary("v6e1", scheduled_outputs(outputs), behind="x", not_serving="HTTP 503", now=at)
    assert text_part in text
    assert ("renew" in text) is ("503" in text_part)
    assert bool(up_summary.off_hours(scheduled_outputs(outputs), at)) is ("503" not in text_part)


def test_the_price_of_a_fallback_is_beside_that_of_the_lease(outputs: dict[str, Any]) -> None:
    leased = leased_outputs(outputs)
    assert "fallback" not in summary("v6e1", leased, behind="x")
    prices = {"usd_per_hour_of_fallback": 1.2283, "usd_per_hour_in_a_change": 2.5783, "usd_per_hour_at_rest": 0.0}
    leased["plan"]["cost"] |= prices
    rows = " ".join(summary("v6e1", leased, behind="x").split())
    assert "price of the fallback 1.2283 USD per hour at most while it serves, with the gateway" in rows
    assert "2.5783 USD per hour at most while one takes over from the other; 0.0000 USD per hour without" in rows
    leased["plan"]["cost"]["usd_per_hour_of_fallback"] = "unknown"
    assert "an unknown price (unknown) per hour at most while it serves" in summary("v6e1", leased, behind="x").replace(
        "\n", " "
    ).replace("  ", "")


def test_samples_and_a_door_are_beside_the_price_where_there_are_any(outputs: dict[str, Any]) -> None:
    leased = leased_outputs(outputs)
    plain = summary("v6e1", leased, behind="x")
    assert "samples" not in plain
    assert "door" not in plain
    leased["plan"]["cost"]["door"] = {"usd_per_hour_serving": 0.0987}
    leased["plan"]["metrics"] = {"samples": {"leases": {"millions_at_most": 0.084, "usd_at_most": 0.01}}}
    rows = " ".join(summary("v6e1", leased, behind="x").split())
    assert "with the gateway and the door at most" in rows
    assert "samples of figures 0.084 million and 0.01 USD until the leases end at most" in rows
    idle = {"millions_at_most": 0.0, "usd_at_most": 0.0}
    service = {"month at most": {"millions_at_most": 15.33, "usd_at_most": 0.92}, "month without traffic": idle}
    outputs["plan"]["metrics"] = {"samples": service}
    assert "15.33 million and 0.92 USD per month at most" in " ".join(summary("l4", outputs, behind="x").split())


def test_an_unknown_price_of_a_lease_is_no_number(outputs: dict[str, Any]) -> None:
    changed = leased_outputs(outputs)
    changed["leases"]["l"]["cost"] |= {"so_far_usd": "unknown", "at_end_usd": "unknown"}
    text = summary("v6e4-moe", changed, behind="x")
    assert "an unknown price (unknown) so far" in text
    assert "0.30" not in text


def test_tells_the_door_for_keys_where_there_is_one(outputs: dict[str, Any]) -> None:
    shown = " ".join(summary("l4-qat", outputs | {"door": "http://127.0.0.1:4002"}, behind="x").split())
    assert "door for keys http://127.0.0.1:4002; `bezel keys create l4-qat` makes a key" in shown
    assert "door" not in summary("l4-qat", outputs, behind="x")
