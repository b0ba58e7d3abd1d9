"""Tokens: where they come from, how long they are kept, and that they are seen nowhere."""

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bezel.operations.redaction import clean_text
from bezel.rest import Credentials, CredentialsError
from bezel_base.errors import one_line
from tests.support.rest.fake_google import ACCESS_TOKEN, PLANTED, Answer, Call, Server, jwt, key_file, token_route

AUDIENCE = "https://llm.example"
SOMEBODY = "smoke@demo.iam.gserviceaccount.com"


class Now:
    def __init__(self) -> None:
        self.seconds = time.time()

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def key(server: Server, tmp_path: Path) -> dict[str, str]:
    server.routes.append(token_route())
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(key_file(tmp_path, server)),
        "GOOGLE_IAM_CREDENTIALS_CUSTOM_ENDPOINT": f"{server.url}/iamcredentials/v1/",
    }


@pytest.fixture
def user(server: Server, tmp_path: Path) -> dict[str, str]:
    """A person's own login, as gcloud writes it; its token address is google-auth's own, so no token is had here."""
    path = tmp_path / "adc.json"
    path.write_text(
        json.dumps({"type": "authorized_user", "client_id": "c", "client_secret": PLANTED, "refresh_token": PLANTED})
    )
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(path),
        "GOOGLE_IAM_CREDENTIALS_CUSTOM_ENDPOINT": f"{server.url}/iamcredentials/v1/",
    }


def generate(server: Server, status: int = 200) -> list[Call]:
    """IAM Credentials: mints for SOMEBODY, for the deployer's token only."""
    seen: list[Call] = []

    def route(call: Call) -> Answer | None:
        method = call.path.rpartition(":")[2]
        if call.path != f"/iamcredentials/v1/projects/-/serviceAccounts/{SOMEBODY}:{method}":
            return None
        seen.append(call)
        if status != 200:
            refusal = f"{call.headers['authorization']} may not"
            return Answer(status, {"error": {"code": status, "message": refusal, "status": "PERMISSION_DENIED"}})
        if method == "generateAccessToken":
            return Answer(json={"accessToken": f"ya29.impersonated-{PLANTED}", "expireTime": "2030-01-01T00:00:00Z"})
        return Answer(json={"token": jwt({"aud": call.json["audience"], "exp": 4102444800, "email": SOMEBODY})})

    server.routes.append(route)
    return seen


def test_a_key_gives_both_kinds_of_token(key: dict[str, str]) -> None:
    credentials = Credentials(environ=key)
    assert credentials.access_token() == ACCESS_TOKEN
    assert credentials.identity_token(AUDIENCE).startswith("eyJ")
    assert credentials.headers() == {"Authorization": f"Bearer {ACCESS_TOKEN}"}


def test_a_token_is_asked_for_once_for_each_audience(server: Server, key: dict[str, str]) -> None:
    credentials = Credentials(environ=key)
    for _ in range(3):
        credentials.access_token()
        credentials.identity_token(AUDIENCE)
    credentials.identity_token("https://other.example")
    assert server.paths() == ["POST /token"] * 3


@pytest.mark.parametrize(("passed", "asked"), [(3200.0, 1), (3400.0, 2)])
def test_a_token_is_renewed_before_it_ends_and_not_long_before(
    server: Server, key: dict[str, str], passed: float, asked: int
) -> None:
    now = Now()
    credentials = Credentials(environ=key, clock=now)
    credentials.identity_token(AUDIENCE)
    now.seconds += passed
    credentials.identity_token(AUDIENCE)
    assert len(server.paths()) == asked


def test_a_forgotten_token_is_asked_for_again(server: Server, key: dict[str, str]) -> None:
    credentials = Credentials(environ=key)
    credentials.identity_token(AUDIENCE)
    credentials.forget(AUDIENCE)
    credentials.identity_token(AUDIENCE)
    assert len(server.paths()) == 2


def test_impersonation_mints_for_the_other_account(server: Server, key: dict[str, str]) -> None:
    seen = generate(server)
    credentials = Credentials(SOMEBODY, environ=key)
    assert credentials.identity_token(AUDIENCE).startswith("eyJ")
    assert seen[0].json == {"audience": AUDIENCE, "includeEmail": True, "delegates": []}
    assert seen[0].headers["authorization"] == f"Bearer {ACCESS_TOKEN}"


def test_a_refused_impersonation_names_the_role(server: Server, key: dict[str, str]) -> None:
    generate(server, 403)
    with pytest.raises(CredentialsError, match=r"roles/iam\.serviceAccountTokenCreator") as caught:
        Credentials(SOMEBODY, environ=key).identity_token(AUDIENCE)
    assert SOMEBODY in str(caught.value)
    assert PLANTED not in str(caught.value)


def test_the_provider_s_own_impersonation_is_followed(server: Server, key: dict[str, str]) -> None:
    generate(server)
    credentials = Credentials(environ=key | {"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": SOMEBODY})
    assert credentials.access_token() == f"ya29.impersonated-{PLANTED}"
    assert credentials.identity_token(AUDIENCE).startswith("eyJ")


def test_a_person_s_login_cannot_mint_and_the_error_says_what_to_set(user: dict[str, str]) -> None:
    with pytest.raises(CredentialsError, match=r"impersonate = \(not set\)\n   a user's own login cannot") as caught:
        Credentials(environ=user).identity_token(AUDIENCE)
    assert PLANTED not in str(caught.value)


def test_a_bare_access_token_cannot_mint_but_may_impersonate(server: Server, key: dict[str, str]) -> None:
    generate(server)
    bare = {"GOOGLE_OAUTH_ACCESS_TOKEN": ACCESS_TOKEN} | {k: v for k, v in key.items() if "IAM" in k}
    with pytest.raises(CredentialsError, match=r"smoke\.impersonate") as caught:
        Credentials(environ=bare).identity_token(AUDIENCE)
    assert PLANTED not in str(caught.value)
    assert Credentials(environ=bare).access_token() == ACCESS_TOKEN
    assert Credentials(SOMEBODY, environ=bare).identity_token(AUDIENCE).startswith("eyJ")


def test_a_key_in_the_environment_is_read_as_the_provider_reads_it(key: dict[str, str]) -> None:
    text = Path(key["GOOGLE_APPLICATION_CREDENTIALS"]).read_text()
    assert Credentials(environ={"GOOGLE_CREDENTIALS": text}).access_token() == ACCESS_TOKEN


@pytest.mark.parametrize("content", ["{", '{"type": "service_account", "private_key": "planted"}', '{"type": "x"}', ""])
def test_a_broken_key_is_reported_without_its_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(content)
    with pytest.raises(CredentialsError, match="login to Google\n   cannot be read: ") as caught:
        Credentials(environ={"GOOGLE_APPLICATION_CREDENTIALS": str(path)}).access_token()
    assert PLANTED not in str(caught.value)


def test_a_missing_file_is_reported_with_the_repair(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="gcloud auth application-default login"):
        Credentials(environ={"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json")}).access_token()


def test_a_refused_key_is_reported_without_the_server_s_whole_answer(server: Server, key: dict[str, str]) -> None:
    answer = {"error": "invalid_grant", "error_description": "Invalid JWT Signature.", "assertion": PLANTED}
    server.routes.insert(0, lambda call: Answer(400, answer) if call.path == "/token" else None)
    with pytest.raises(CredentialsError, match="invalid_grant: Invalid JWT Signature") as caught:
        Credentials(environ=key).access_token()
    assert PLANTED not in str(caught.value)
    assert "log in again" in str(caught.value)


def test_a_token_server_that_does_not_respond_is_no_refusal(server: Server, tmp_path: Path) -> None:
    path = key_file(tmp_path, server)
    path.write_text(path.read_text().replace(server.url, "http://127.0.0.1:1"))
    with pytest.raises(CredentialsError) as caught:
        Credentials(environ={"GOOGLE_APPLICATION_CREDENTIALS": str(path)}).access_token()
    text = one_line(caught.value)
    assert "http://127.0.0.1:1/token (ConnectError)" in text
    assert "check this machine's network" in text
    assert "log in again" not in text
    assert "refused" not in text
    # No part of it has the form of a credential: notes that repeat it are legible.
    assert clean_text(text, 1000) == text


def test_a_signature_from_a_wrong_clock_is_reported_as_such(server: Server, key: dict[str, str]) -> None:
    message = "Invalid JWT: Token must be a short-lived token. Check your iat and exp values in the JWT claim."
    answer = {"error": "invalid_grant", "error_description": message}
    server.routes.insert(0, lambda call: Answer(400, answer) if call.path == "/token" else None)
    with pytest.raises(CredentialsError, match="set this machine's clock") as caught:
        Credentials(environ=key).access_token()
    assert "log in again" not in str(caught.value)


def test_a_key_that_would_send_its_assertion_in_clear_is_refused(server: Server, tmp_path: Path) -> None:
    path = key_file(tmp_path, server)
    path.write_text(path.read_text().replace(server.url, "http://elsewhere.example"))
    with pytest.raises(ValueError, match="token_uri of the credentials"):
        Credentials(environ={"GOOGLE_APPLICATION_CREDENTIALS": str(path)}).access_token()


def test_credentials_have_no_readable_form(key: dict[str, str]) -> None:
    credentials = Credentials(SOMEBODY, environ=key)
    credentials.access_token()
    assert repr(credentials) == f"Credentials(impersonate='{SOMEBODY}')"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(credentials)


def test_an_impersonating_login_mints_with_the_identity_behind_it(
    server: Server, key: dict[str, str], tmp_path: Path
) -> None:
    seen = generate(server)
    path = tmp_path / "impersonated.json"
    source = json.loads(Path(key["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
    account = f"{server.url}/iamcredentials/v1/projects/-/serviceAccounts/{SOMEBODY}"
    url = f"{account}:generateAccessToken"
    path.write_text(
        json.dumps(
            {
                "type": "impersonated_service_account",
                "service_account_impersonation_url": url,
                "source_credentials": source,
            }
        )
    )
    credentials = Credentials(environ=key | {"GOOGLE_APPLICATION_CREDENTIALS": str(path)})
    assert credentials.identity_token(AUDIENCE).startswith("eyJ")
    assert seen[-1].headers["authorization"] == f"Bearer {ACCESS_TOKEN}"
    assert credentials.access_token() == f"ya29.impersonated-{PLANTED}"


@pytest.mark.slow
def test_on_google_s_machines_the_metadata_server_gives_both(server: Server, tmp_path: Path) -> None:
    flavour = {"Metadata-Flavor": "Google", "content-type": "application/text"}
    identity = jwt({"aud": AUDIENCE, "exp": 4102444800})
    account = "/computeMetadata/v1/instance/service-accounts/default/"
    answers = {
        "/": Answer(headers=flavour),
        "/computeMetadata/v1/project/project-id": Answer(text="demo", headers=flavour),
        account: Answer(json={"email": SOMEBODY, "scopes": []}, headers=flavour | {"content-type": "application/json"}),
        f"{account}token": Answer(
            json={"access_token": ACCESS_TOKEN, "expires_in": 3600, "token_type": "Bearer"},
            headers=flavour | {"content-type": "application/json"},
        ),
        f"{account}identity": Answer(text=identity, headers=flavour),
    }
    # The e-mail may stand for "default" once it is known.
    server.routes.append(lambda call: answers.get(call.path.replace(SOMEBODY, "default")))
    program = (
        "from bezel.rest import Credentials as C; c = C(); "
        f"print(c.access_token() == {ACCESS_TOKEN!r}, c.identity_token({AUDIENCE!r}) == {identity!r})"
    )
    host = server.url.removeprefix("http://")
    environment = {
        "GCE_METADATA_HOST": host,
        "GCE_METADATA_IP": host,
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "True True\n", done.stderr
    assert any(call.query.get("audience") == AUDIENCE for call in server.calls)
