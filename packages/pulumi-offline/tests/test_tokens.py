"""The access token: as given, or granted for a service account's key, and never shown."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.google.tokens import Tokens
from pulumi_offline_support.google import FakeGoogle

PRIVATE = rsa.generate_private_key(65537, 2048)
PEM = PRIVATE.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
PUBLIC = PRIVATE.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def key(google: FakeGoogle, tmp_path: Path) -> Path:
    file = tmp_path / "key.json"
    content = {
        "client_email": "robot@p.iam.gserviceaccount.com",
        "private_key": PEM,
        "token_uri": f"{google.base}/token",
    }
    file.write_text(json.dumps({**content, "private_key_id": "k1"}))
    return file


def test_a_given_token_is_used_as_it_is(google: FakeGoogle, key: Path) -> None:
    assert Tokens({"GOOGLE_OAUTH_ACCESS_TOKEN": "given", "GOOGLE_APPLICATION_CREDENTIALS": str(key)})() == "given"
    assert google.requests == []


def test_a_key_is_signed_with_and_its_token_kept(google: FakeGoogle, key: Path) -> None:
    tokens = Tokens({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})
    assert tokens() == tokens() == "not-a-real-granted-token"
    (request,) = google.requests
    assertion = dict(pair.split("=") for pair in request.body.split("&"))["assertion"]
    claims = jwt.decode(assertion, certs=PUBLIC, audience=f"{google.base}/token")  # type: ignore[no-untyped-call]
    assert claims["iss"] == "robot@p.iam.gserviceaccount.com"


def test_a_refused_key_is_said_without_it(google: FakeGoogle, key: Path) -> None:
    google.fail("POST /token", 401, {"error": "invalid_grant"})
    with pytest.raises(ProviderError, match=r"refused the key of robot@p\.iam") as failed:
        Tokens({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})()
    assert "PRIVATE" not in str(failed.value)


@pytest.mark.parametrize(
    ("description", "hint"),
    [("Check your iat and exp values in the JWT claim.", True), ("Invalid JWT Signature.", False)],
)
def test_a_refused_key_is_reported_with_googles_reason(
    google: FakeGoogle, key: Path, description: str, hint: bool
) -> None:
    """A wrong clock is named as such."""
    google.fail("POST /token", 400, {"error": "invalid_grant", "error_description": description})
    with pytest.raises(ProviderError) as failed:
        Tokens({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})()
    assert f"(HTTP 400, invalid_grant {description})" in str(failed.value)
    assert ("clock of this machine is wrong" in str(failed.value)) is hint


@pytest.mark.parametrize("content", ["no json", "[]", '{"type": "authorized_user"}'])
def test_what_is_no_key_is_said_with_its_place(content: str, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(content)
    with pytest.raises(ProviderError, match=r"key\.json"):
        Tokens({"GOOGLE_APPLICATION_CREDENTIALS": str(file)})()


def test_no_credential_is_said_with_what_sets_one() -> None:
    with pytest.raises(ProviderError, match="make up"):
        Tokens({})()


def test_a_key_for_another_place_is_not_signed_with(key: Path) -> None:
    content = json.loads(key.read_text()) | {"token_uri": "https://oauth2.example.com/token"}
    key.write_text(json.dumps(content))
    with pytest.raises(ProviderError, match="http only"):
        Tokens({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})()
