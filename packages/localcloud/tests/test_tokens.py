"""Tokens: what is minted for whom, and what every API refuses."""

import json
import re
import time
from pathlib import Path

import pytest

from bezel_localcloud.access.credentials import external_account, keys
from localcloud_support.client import DEPLOYER, PARENT, RUNTIME, Client, plain

CREDENTIALS = "/iamcredentials/v1/projects/-/serviceAccounts"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture
def key_file(endpoint):
    return json.loads(endpoint.credentials.read_text())


def post_assertion(key_file, **changes):
    now = int(time.time())
    claims = {
        "iss": key_file["client_email"],
        "aud": key_file["token_uri"],
        "scope": "x",
        "iat": now,
        "exp": now + 3600,
    }
    token = keys.sign(claims | changes, keys.load_private(key_file["private_key"]))
    return plain.post(key_file["token_uri"], data={"grant_type": GRANT, "assertion": token})


def test_the_key_file_gets_access_and_identity_tokens(endpoint, key_file):
    access = post_assertion(key_file).json()
    assert access["token_type"] == "Bearer"
    assert Client(endpoint, access["access_token"]).get(f"/crm/v1/{PARENT}").status_code == 200
    identity = post_assertion(key_file, target_audience="http://somebody").json()["id_token"]
    _, claims = keys.header_and_claims(identity)
    assert (claims["aud"], claims["email"], claims["iss"]) == ("http://somebody", DEPLOYER, endpoint.base)
    assert claims["exp"] - claims["iat"] == 3600


def test_the_key_file_is_for_its_owner_only(endpoint):
    assert endpoint.credentials.stat().st_mode & 0o077 == 0
    assert (endpoint.directory / "issuer.pem").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": f"nobody@{DEPLOYER.partition('@')[2]}"},
        {"aud": "http://elsewhere/token"},
        {"exp": int(time.time()) - 1},
        {"iat": int(time.time()) + 4000, "exp": int(time.time()) + 7000},
        {"exp": int(time.time()) + 20_000},
    ],
)
def test_an_assertion_that_does_not_hold_gets_no_token(key_file, changes):
    answer = post_assertion(key_file, **changes)
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_grant"


@pytest.mark.slow
def test_an_assertion_signed_by_another_key_gets_no_token(key_file):
    answer = post_assertion(key_file | {"private_key": keys.private_pem(keys.new_key())})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def exchange(endpoint, **changes):
    """The token endpoint's answer to a client with the credential file of the type external_account."""
    file = json.loads(endpoint.external_account.read_text())
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": file["audience"],
        "scope": "x",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": file["subject_token_type"],
        "subject_token": Path(file["credential_source"]["file"]).read_text(),
    }
    return plain.post(file["token_url"], data=form | changes)


def test_the_external_account_file_gets_an_access_token_of_the_deployer(endpoint):
    answer = exchange(endpoint).json()
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 3599)
    assert answer["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    client = Client(endpoint, answer["access_token"])
    assert client.get(f"/crm/v1/{PARENT}").status_code == 200
    for file in (endpoint.external_account, endpoint.directory / "subject-token.jwt"):
        assert file.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_wrong_subject_token_or_audience_gets_no_token(endpoint, key_file):
    now = int(time.time())
    claims = {"iss": DEPLOYER, "sub": DEPLOYER, "aud": external_account.AUDIENCE, "iat": now, "exp": now + 60}

    def sign(key=key_file["private_key"], **changes):
        return keys.sign(claims | changes, keys.load_private(key))

    assert exchange(endpoint, subject_token=sign()).status_code == 200
    for token in (
        *("", "x", sign(aud="elsewhere"), sign(exp=now - 1), sign(iss=f"nobody@{DEPLOYER.partition('@')[2]}")),
        *(sign(keys.private_pem(keys.new_key())), self_signed(key_file)),
    ):
        answer = exchange(endpoint, subject_token=token)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), token
    other = f"//iam.googleapis.com/{PARENT}/locations/global/workloadIdentityPools/other/providers/x"
    assert exchange(endpoint, audience=other).json()["error"] == "invalid_target"
    # The subject token is none for an API, nor an assertion.
    subject_token = (endpoint.directory / "subject-token.jwt").read_text()
    assert Client(endpoint, subject_token).get(f"/crm/v1/{PARENT}").status_code == 401
    form = {"grant_type": GRANT, "assertion": subject_token}
    assert plain.post(key_file["token_uri"], data=form).json()["error"] == "invalid_grant"


def self_signed(key_file, **changes):
    now = int(time.time())
    common_claims = {"iss": key_file["client_email"], "sub": key_file["client_email"], "iat": now, "exp": now + 3600}
    return keys.sign(common_claims | changes, keys.load_private(key_file["private_key"]))


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://secretmanager.googleapis.com/"},
        {"aud": "https://secretmanager.googleapis.com"},
        {"scope": "https://www.googleapis.com/auth/cloud-platform"},
    ],
)
def test_a_token_that_an_account_signs_itself_for_an_api_is_accepted(endpoint, key_file, claims):
    client = Client(endpoint, self_signed(key_file, **claims))
    assert client.get(f"/secretmanager/v1/{PARENT}/secrets").status_code == 200


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": "https://run.googleapis.com/"},
        {"aud": "https://run.googleapis.com/", "scope": "https://www.googleapis.com/auth/cloud-platform"},
        {"aud": "https://secretmanager.googleapis.com/", "sub": RUNTIME},
        {"aud": "https://secretmanager.googleapis.com/", "iss": RUNTIME, "sub": RUNTIME},
        {"aud": "https://secretmanager.googleapis.com/", "exp": int(time.time()) - 1},
        {"aud": "https://secretmanager.googleapis.com/", "exp": int(time.time()) + 20_000},
    ],
)
def test_a_self_signed_token_for_something_else_is_refused(endpoint, key_file, claims):
    """A token that an account signs itself for something else is refused."""
    client = Client(endpoint, self_signed(key_file, **claims))
    assert client.get(f"/secretmanager/v1/{PARENT}/secrets").status_code == 401


def test_the_expiry_of_an_access_token_has_no_fractions(cloud):
    answer = cloud.post(f"{CREDENTIALS}/{DEPLOYER}:generateAccessToken", {"scope": ["x"]}).json()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer["expireTime"])


def test_system_parameters_may_begin_with_a_dollar(endpoint, cloud):
    """System parameters may begin with a dollar and enum values may be numbers."""
    url = f"{endpoint.base}/serviceusage/v1/{PARENT}/services/run.googleapis.com"

    def get(**query):  # not by the checking client: the documents know names of enum values only
        return plain.get(url, params=query, headers={"Authorization": cloud.http.headers["Authorization"]})

    named = get().json()
    assert named["state"] == "ENABLED"
    assert get(**{"$alt": "json;enum-encoding=int", "$prettyPrint": "false"}).json() == named | {"state": 2}
    assert get(**{"$fields": "state"}).json() == {"state": "ENABLED"}
    assert get(**{"$alt": "proto"}).status_code == 400
    assert get(**{"$nothing": "x"}).status_code == 400


@pytest.mark.slow
def test_every_api_refuses_a_missing_wrong_or_expired_token(endpoint, cloud):
    paths = ["/run/v2/projects/x/locations/y/services", "/storage/v1/b", f"/crm/v1/{PARENT}", "/localcloud/resources"]
    brief = cloud.post(f"{CREDENTIALS}/{DEPLOYER}:generateAccessToken", {"scope": ["x"], "lifetime": "0.05s"}).json()
    identity = cloud.identity("http://somebody")
    time.sleep(0.06)
    for path in paths:
        missing = plain.get(endpoint.base + path)
        assert missing.status_code == 401
        # Cloud Storage names what all users may not do: its buckets can be open to them.
        expected = (
            "Anonymous caller does not have" if "storage" in path else "missing required authentication credential"
        )
        assert expected in missing.json()["error"]["message"]
        for token in ("nonsense", identity, brief["accessToken"]):
            wrong = plain.get(endpoint.base + path, headers={"Authorization": f"Bearer {token}"})
            assert wrong.status_code == 401
            assert token not in wrong.text


def test_an_account_impersonates_another_only_with_the_role(cloud):
    email = cloud.account("impersonator")
    path = f"/iam/v1/{PARENT}/serviceAccounts/{RUNTIME}"
    other = cloud.as_account(email)
    body = {"audience": "http://somebody"}
    assert other.post(f"{CREDENTIALS}/{RUNTIME}:generateIdToken", body).status_code == 403
    policy = {"bindings": [{"role": "roles/iam.serviceAccountTokenCreator", "members": [f"serviceAccount:{email}"]}]}
    assert cloud.post(f"{path}:setIamPolicy", {"policy": policy}).status_code == 200
    assert other.post(f"{CREDENTIALS}/{RUNTIME}:generateIdToken", body).status_code == 200
    assert other.post(f"{CREDENTIALS}/{DEPLOYER}:generateIdToken", body).status_code == 403
    cloud.post(f"{path}:setIamPolicy", {"policy": {}})
    cloud.delete(f"/iam/v1/{PARENT}/serviceAccounts/{email}")


def test_an_account_without_roles_may_do_nothing(cloud):
    """An account without roles may do nothing and a disabled one has no token."""
    email = cloud.account("roleless")
    client = cloud.as_account(email)
    for path in (f"/secretmanager/v1/{PARENT}/secrets", f"/crm/v1/{PARENT}", "/storage/v1/b/models"):
        answer = client.get(path)
        assert answer.status_code == 403
        assert "Permission '" in answer.json()["error"]["message"]
    cloud.post(f"/iam/v1/{PARENT}/serviceAccounts/{email}:disable")
    assert client.get("/storage/v1/b/models").status_code == 401
    cloud.delete(f"/iam/v1/{PARENT}/serviceAccounts/{email}")


def test_the_published_keys_verify_the_tokens(endpoint, cloud):
    published = plain.get(f"{endpoint.base}/oauth2/v1/certs").json()
    token = cloud.identity("http://somebody")
    header, _ = keys.header_and_claims(token)
    assert keys.verify(token, published[header["kid"]], now=time.time())["email"] == DEPLOYER
    jwk = plain.get(f"{endpoint.base}/oauth2/v3/certs").json()["keys"][0]
    assert jwk["kid"] == header["kid"]
    with pytest.raises(keys.TokenError, match="expired"):
        keys.verify(token, published[header["kid"]], now=time.time() + 3601)
