"""Refusals of a front end: known from the server's own answers, each with cause and command, and never a page."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base_support.front_answers import ANSWERS, ROBOT, page
from bezel_base.front.refusals import any_refusal, logged_refusal, page_words, refusal_named, refusal_of


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_each_answer_of_the_front_end_has_its_cause_and_a_command(status: int, body: str, kind: str) -> None:
    refusal = refusal_of(status, body, "my stack")
    assert refusal is not None
    assert refusal.kind == kind
    assert not any(sign in refusal.cause + refusal.advice for sign in "<>{}")
    assert "STACK" not in refusal.advice
    assert "bezel advise" not in refusal.repair  # where that is said, advise itself shows it
    assert "bezel status" not in refusal.advice or kind == "no_service"  # it asks the platform, not the server


@pytest.mark.parametrize(
    ("status", "kind", "by"),
    [
        (401, "server_key", "server"),
        (404, "server_not_found", "server"),
        (422, "server_refused", "server"),
        (500, "server_failed", "server"),
        (503, "server_unavailable", "server"),
        (502, "gateway_lost", "gateway"),
        (503, "gateway_no_machine", "gateway"),
        (504, "gateway_timeout", "gateway"),
        (404, "gateway_refused", "gateway"),
    ],
)
def test_answers_in_json_are_the_servers_or_the_gateways(status: int, kind: str, by: str) -> None:
    error = {"message": "why", "type": "gateway_error" if by == "gateway" else "NotFoundError", "code": status}
    refusal = any_refusal(status, json.dumps({"error": error}), "dev")
    assert (refusal.kind, refusal.by) == (kind, by)
    assert refusal.cause
    assert "STACK" not in refusal.advice
    assert logged_refusal(status, "").by == "server"
    assert logged_refusal(status, "", has_gateway=True).by == ("gateway" if status in {502, 503, 504} else "server")


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_only_what_reached_no_server_is_unserved(status: int, body: str, kind: str) -> None:
    assert any_refusal(status, body) == refusal_of(status, body)
    assert any_refusal(status, body).is_unserved is (kind in {"no_instance", "not_started", "replaced"})


def test_a_page_is_shown_as_its_words() -> None:
    assert page_words(page(418, "Odd", "It <b>is</b> odd.")) == "Error: Odd It is odd."
    assert "margin" not in page_words(ROBOT)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(200, 599), st.text(max_size=60))
def test_any_answer_has_words_or_is_the_servers(status: int, text: str) -> None:
    assert refusal_named(status, text).cause
    assert "<html" not in page_words(f"<html>{text}")
    refusal_of(status, text)
