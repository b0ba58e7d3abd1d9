"""The pure parts: addresses, waits, and what is taken out of a text."""

import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.rest import AddressError, ApiError, Backoff, endpoint
from bezel.rest.client import is_retryable, retry_delay
from bezel_base.text.redaction import redact


@pytest.mark.parametrize("api", ["CLOUD_BILLING", "CLOUD_RUN_V2", "IAM_CREDENTIALS", "LOGGING", "STORAGE"])
def test_every_api_has_google_s_address_and_takes_the_override(api: str) -> None:
    """Every API has Google's own address and takes the provider's override."""
    default = endpoint(api, {})
    assert default.startswith("https://")
    assert ".googleapis.com/" in default
    assert default.endswith("/")
    variable = f"GOOGLE_{api}_CUSTOM_ENDPOINT"
    assert endpoint(api, {variable: "http://127.0.0.1:1/x/v1"}) == "http://127.0.0.1:1/x/v1/"
    assert endpoint(api, {variable: ""}) == default


@pytest.mark.parametrize(
    "url", ["http://elsewhere.example/v1/", "ftp://127.0.0.1/", "127.0.0.1:80", "https://", "http://10.0.0.1/"]
)
def test_an_override_that_would_carry_a_token_in_clear_is_refused(url: str) -> None:
    with pytest.raises(AddressError, match=r"(?s)GOOGLE_STORAGE_CUSTOM_ENDPOINT = .*use https"):
        endpoint("STORAGE", {"GOOGLE_STORAGE_CUSTOM_ENDPOINT": url})


@pytest.mark.parametrize(
    "url", ["https://x.example/v1/", "http://localhost:1/v1/", "http://[::1]:1/v1/", "http://127.9.9.9/v1/"]
)
def test_an_override_that_is_safe_is_taken(url: str) -> None:
    assert endpoint("STORAGE", {"GOOGLE_STORAGE_CUSTOM_ENDPOINT": url}) == url


def test_an_api_nobody_uses_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown API 'BIGQUERY'; known: ARTIFACT_REGISTRY, BILLING_BUDGETS, "):
        endpoint("BIGQUERY", {})


@pytest.mark.slow
@given(st.floats(0, 0.999))
def test_waits_grow_to_the_longest_and_stay_between_half_and_whole(dice: float) -> None:
    delays = list(itertools.islice(Backoff().delays(lambda: dice), 9))
    steps = [0.5, 1, 2, 4, 8, 16, 16, 16, 16]
    assert all(step / 2 <= delay <= step for delay, step in zip(delays, steps, strict=True))


@pytest.mark.slow
@given(st.integers(100, 599))
def test_whatever_may_be_repeated_blindly_may_be_repeated_knowingly(status: int) -> None:
    if is_retryable(status, idempotent=False):
        assert is_retryable(status, idempotent=True)
    assert not (status < 429 and is_retryable(status, idempotent=True))


@pytest.mark.parametrize(("header", "seconds"), [(None, 0), ("5", 5), ("Sat, 21 Nov 2026 00:00:00 GMT", 0), ("-1", 0)])
def test_only_a_number_of_seconds_is_a_wait(header: str | None, seconds: float) -> None:
    assert retry_delay(header) == seconds


TOKENS = st.sampled_from(
    [
        "ya29.a0AfB_by-planted",
        "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJwbGFudGVkIn0.c2ln-planted",
        "Bearer planted-opaque-token",
        "hf_plantedplantedplanted",
        "-----BEGIN PRIVATE KEY-----\nplanted\n-----END PRIVATE KEY-----",
    ]
)


@pytest.mark.slow
@given(st.text("abc \n.:;", max_size=20), TOKENS, st.text("abc \n;", max_size=20))
def test_a_token_is_taken_out_wherever_it_stands(before: str, token: str, after: str) -> None:
    assert "planted" not in redact(f"{before} {token} {after}")


@pytest.mark.slow
@given(st.text("abcdefgh :/-.\n", max_size=60))
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert redact(text) == text


def test_a_known_secret_is_taken_out_and_a_short_word_is_not() -> None:
    assert redact("key=s3cr3t-value, a=b", "s3cr3t-value", "b") == "key=[redacted], a=b"


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        (b'{"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}', "PERMISSION_DENIED", "no"),
        (b'{"error": {"code": 404, "message": "none", "errors": [{"reason": "notFound"}]}}', "notFound", "none"),
        (b'{"error": {"code": 404, "message": "none", "errors": []}}', "", "none"),
        (b'{"error": "Unauthorized"}', "", '{"error": "Unauthorized"}'),
        (b"<html>busy</html>", "", "<html>busy</html>"),
        (b"", "", "(empty response)"),
        (b"[1]", "", "[1]"),
    ],
)
def test_every_shape_of_error_is_read(body: bytes, reason: str, message: str) -> None:
    error = ApiError.of(403, body, method="GET", url="https://x.example/y?key=planted")
    assert (error.reason, error.message) == (reason, message)
    assert "planted" not in str(error)


@pytest.mark.slow
def test_importing_the_package_loads_neither_httpx_nor_google_auth() -> None:
    program = "import sys, bezel.rest; print(sorted({'httpx', 'google.auth', 'pulumi'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
