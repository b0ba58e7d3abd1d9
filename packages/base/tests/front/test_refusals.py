"""Refusals of a front end: known from the server's own answers, each with cause and command, and never a page."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base_support.front_answers import ANSWERS, ROBOT, page
from bezel_base.front.refusals import page_words, refusal_named, refusal_of


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_each_answer_of_the_front_end_has_its_cause_and_a_command(status: int, body: str, kind: str) -> None:
    refusal = refusal_of(status, body, "my stack")
    assert refusal is not None
    assert refusal.kind == kind
    assert not any(sign in refusal.cause + refusal.advice for sign in "<>{}")
    assert "STACK" not in refusal.advice
    assert "bezel advise" not in refusal.repair  # where that is said, advise itself shows it
    assert "bezel status" not in refusal.advice or kind == "no_service"  # it asks the platform, not the server


def test_a_page_is_shown_as_its_words() -> None:
    assert page_words(page(418, "Odd", "It <b>is</b> odd.")) == "Error: Odd It is odd."
    assert "margin" not in page_words(ROBOT)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(200, 599), st.text(max_size=60))
def test_any_answer_has_words_or_is_the_servers(status: int, text: str) -> None:
    assert refusal_named(status, text).cause
    assert "<html" not in page_words(f"<html>{text}")
    refusal_of(status, text)
