"""Times in a token's claims are numbers of seconds: a token whose end is none is refused, and never lasts for ever."""

import base64
import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from bezel_localcloud.access.credentials import keys
from bezel_localcloud.access.credentials.claim_times import is_time

NOW = 1_800_000_000.0
KEY = keys.new_key()
NO_TIMES = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "true",
    "null",
    '"1900000000"',
    "[]",
    "{}",
    "9" * 400,
    "1e300",
    "-1",
)


def sign(claims: str) -> str:
    """A token with claims in this very text of JSON, signed by the key."""
    parts = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg": "RS256"}', claims))
    text = ".".join(parts)
    signature = KEY.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def verify(claims: str) -> dict[str, object]:
    return keys.verify(sign(claims), keys.public_pem(KEY), now=NOW)


@pytest.mark.parametrize("value", NO_TIMES)
@pytest.mark.parametrize("claim", ["exp", "iat"])
def test_a_token_whose_times_are_none_is_refused(claim: str, value: str) -> None:
    times = {"iat": str(int(NOW)), "exp": str(int(NOW + 60))} | {claim: value}
    with pytest.raises(keys.TokenError):
        verify(f'{{"iat": {times["iat"]}, "exp": {times["exp"]}}}')


@pytest.mark.parametrize("value", [NOW + 60, int(NOW + 60), NOW + 0.5])
def test_a_token_with_a_time_is_accepted_until_then(value: float) -> None:
    assert verify(json.dumps({"iat": NOW, "exp": value}))["exp"] == value
    with pytest.raises(keys.TokenError, match="expired"):
        verify(json.dumps({"iat": NOW, "exp": NOW - 1}))


def test_claims_of_a_great_depth_are_no_token() -> None:
    with pytest.raises(keys.TokenError):
        verify("[" * 200_000)


@pytest.mark.parametrize("value", [0, 1, 1.5, NOW, 253_402_300_799])
def test_a_number_of_seconds_is_a_time(value: float) -> None:
    assert is_time(value)
