"""Refusals of a front end are not mistaken for answers of vLLM, nor for causes of a failed deploy."""

import re

import pytest

from base_support.front_answers import ANSWERS
from bezel.diagnosis.diagnosis import named_causes
from bezel.proxy.refusals import of_page
from bezel_base.front.refusals import any_refusal, refusal_named, refusal_of
from bezel_components.config import gateway
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


@pytest.mark.parametrize("fallback", [None, "https://llm-fallback.run.app"])
def test_each_error_of_the_gateway_is_known_as_its_own(fallback: str | None) -> None:
    text = gateway.gateway_configuration(("10.64.0.2", "10.64.0.3"), 8000, fallback=fallback)
    errors = re.findall(r"(?:status|http-error status) (\d{3}) content-type application/json \S+ '(\{.*?\}\})'", text)
    assert {int(status) for status, _ in errors} == {400, 404, 405, 408, 500, 502, 503, 504}
    assert {any_refusal(int(status), body).by for status, body in errors} == {"gateway"}


@pytest.mark.parametrize(("status", "body", "kind"), [row for row in ANSWERS if row[0] >= 400])
def test_the_proxy_explains_a_status_as_every_command_does(status: int, body: str, kind: str) -> None:
    refusal = any_refusal(status, body, "dev")
    shown = of_page(status, "https://llm.example", body.encode(), 3.0, is_html=False, stack="dev")
    assert (shown.kind, shown.status, shown.is_final) == (kind, status, refusal.is_unserved)
    assert shown.text.startswith(f"https://llm.example answered HTTP {status}: {refusal.cause}")
    assert shown.text.endswith(f"Repair: {refusal.advice}")
    assert ("may have run" in shown.text) is (status >= 500 and not refusal.is_unserved)
