"""Refusals of a front end are not mistaken for answers of vLLM, nor for causes of a failed deploy."""

import re

import pytest

from base_support.front_answers import ANSWERS
from bezel.diagnosis.diagnosis import named_causes
from bezel_base.front.refusals import refusal_named, refusal_of
from tests.support.docs.markdown import ROOT

VLLM = ROOT / "packages/simulated-vllm/tests/fixtures/vllm"
OWN = [*sorted(path.name for path in VLLM.glob("err-*.txt")), "chat-engine-dead.txt", "health-engine-dead.txt"]


@pytest.mark.parametrize("name", OWN)
def test_no_recorded_answer_of_a_real_vllm_is_the_front_ends(name: str) -> None:
    text = (VLLM / name).read_text()
    begin = re.search(r"^(?:< |HTTP/1\.1 )(\d{3}) ", text, re.MULTILINE)
    assert begin is not None
    status, body = int(begin[1]), text[begin.end() :].partition("\n\n")[2].strip()
    assert refusal_of(status, body) is None


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_the_words_of_a_refusal_are_no_cause_of_a_failed_deploy(status: int, body: str, kind: str) -> None:
    """The smoke check repeats them, and the diagnosis looks for causes in what it observed."""
    refusal = refusal_named(status, body)
    observed = f"waited 3 s for /health to return 200, the last state was: HTTP {status}: {refusal.cause}"
    assert list(named_causes([observed, refusal.advice])) == [], kind
