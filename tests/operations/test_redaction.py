"""Text from outside: no credential of any known form survives, no control character does, and vLLM's own lines stay."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.redaction import clean_text, cleaned_lines
from bezel_base.text.printable import printable
from bezel_base.text.redaction import redact

VLLM = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm"
SECRET = "Pl4ntedSecretValue0123456789abcdefghij"  # 38 characters, in every planted form
FORMS = (
    f"hf_{SECRET}", f"HF_TOKEN=hf_{SECRET}", f"token_hf_{SECRET}", f"ya29.a0{SECRET}", f"ya29.c.{SECRET}",
    f"AIza{SECRET}", f"eyJhbGciOiJSUzI1NiJ9.{SECRET}.{SECRET}", f"eyJ{SECRET}", f"GOCSPX-{SECRET}", f"1//0{SECRET}",
    f"ghp_{SECRET}", f"github_pat_{SECRET}", f"glpat-{SECRET}", f"sk-{SECRET}", f"sk-proj-{SECRET}",
    f"bezel-k7m2p9q4-{SECRET}", f"x-api-key: bezel-k7m2p9q4-{SECRET}",
    f"Authorization: Bearer {SECRET}", f"authorization: bearer  {SECRET}", f"'Authorization': 'Basic {SECRET}'",
    f"X-Serverless-Authorization: Bearer {SECRET}", f"x-goog-api-key: {SECRET}", f"Cookie: sid={SECRET}; a=b",
    f"postgres://user:{SECRET}@db.example/x", f"https://:{SECRET}@host", f"https://x.example/?key={SECRET}&a=1",
    f"https://storage.example/o?X-Goog-Signature={SECRET}", f"--api-key {SECRET}", f"--hf-token={SECRET}",
    f"'api_key': ['{SECRET}', '{SECRET}']", f'"password": "a {SECRET}"', f"password={SECRET}", f"passwd: {SECRET}",
    f"client_secret={SECRET}", f"SECRET_KEY={SECRET}", f"access_token: {SECRET}", f"MY_API_KEY={SECRET}",
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}{SECRET}\n-----END PRIVATE KEY-----",
    f"-----BEGIN RSA PRIVATE KEY-----\\n{SECRET}\\n", f"\n{SECRET}{SECRET}\n",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_credential_of_any_form_is_hidden(form: str) -> None:
    assert SECRET not in redact(f"before {form} after")


@pytest.mark.slow
@given(
    st.sampled_from(FORMS),
    st.text(st.sampled_from(" \t\n\"'=:,;()[]{}<>|xé7")),
    st.text(st.sampled_from(" \t\n\"'=,;()[]{}<>|")),
)
def test_a_credential_is_hidden_wherever_it_stands(form: str, before: str, after: str) -> None:
    assert SECRET not in redact(f"{before} {form}{after}")


@pytest.mark.slow
@given(st.sampled_from(FORMS[:15]), st.integers(0, 30), st.sampled_from(["\x1b[0m", "\x00", "\u200b", "\x1b]8;;x\x07"]))
def test_no_control_character_breaks_a_credential_into_two(form: str, place: int, control: str) -> None:
    text = clean_text(f"x {form[:place]}{control}{form[place:]}", 1000)
    assert SECRET[-12:] not in text
    assert not any(ord(character) < 32 for character in text)


@pytest.mark.slow
@given(st.sampled_from(FORMS[:15]), st.integers(8, 200), st.integers(0, 200))
def test_a_cut_leaves_no_first_half_of_a_credential(form: str, limit: int, padding: int) -> None:
    text = clean_text("x " * padding + form + " y" * 3000, limit)
    assert SECRET[:8] not in text
    assert len(text) <= limit + 6


def test_a_private_key_that_is_logged_line_by_line_is_hidden() -> None:
    key = [f"{number}{SECRET}" for number in range(20)]
    lines = ["first", "-----BEGIN PRIVATE KEY-----", *key, "-----END PRIVATE KEY-----", "last"]
    shown = list(cleaned_lines(lines))
    assert SECRET not in "".join(shown)
    assert (shown[0], shown[-1], len(shown)) == ("first", "last", len(lines))


def test_a_known_value_is_hidden_in_any_form() -> None:
    assert redact("a planted-value b", "planted-value") == "a [redacted] b"


@pytest.mark.parametrize(
    "line",
    [
        "GPU KV cache size: 1,151,744 tokens, Maximum concurrency for 8,192 tokens per request: 140.59x",
        "non-default args: {'model_tag': '/mnt/models/x', 'max_num_batched_tokens': 4096, 'spec_tokens': 3}",
        "EngineCore encountered an issue. max_tokens=17 prompt_tokens: 4 eos_token='<eos>' bos_token_id=2",
        "image us-docker.pkg.dev/p/r/vllm@sha256:" + "0a" * 32,
        "0a" * 32,
        "Permission denied on secret: projects/1/secrets/hf/versions/latest for Revision service account a@b.example",
        "https://llm-abc-uk.a.run.app:443/v1/models?limit=3 user@host.example",
    ],
)
def test_ordinary_lines_stay(line: str) -> None:
    assert redact(line) == line


def test_recorded_responses_and_failures_of_vllm_stay() -> None:
    for name in ("failing-starts.txt", "metrics.txt", "chat.txt", "err-overload-queue-full.txt"):
        text = printable((VLLM / name).read_text())
        assert redact(text) == text, name


def test_a_line_cannot_look_like_another_one() -> None:
    text = "\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J \u202egnp.exe\u2028next\x85\x9b31mq\tb"
    assert printable(text) == "red gnp.exenextq\tb"
    assert printable("one\r\ntwo\rthree") == "one\ntwo\nthree"


@pytest.mark.slow
@given(st.text(max_size=2000), st.integers(6, 500))
def test_any_text_is_bounded_and_cleaned_once(text: str, limit: int) -> None:
    once = clean_text(text, limit)
    assert len(once) <= limit + 6
    assert redact(printable(once)) == redact(printable(redact(printable(once))))


@pytest.mark.parametrize("piece", ["hf_", "eyJa.", "://a:", "-----BEGIN ", "password=[", "A" * 60, "\x1b]", "token: '"])
def test_a_long_line_is_read_in_linear_time(piece: str) -> None:
    before = time.thread_time()
    clean_text(piece * 100_000, 2000)
    assert time.thread_time() - before < 5  # of the processor: a machine that stalls does not count
