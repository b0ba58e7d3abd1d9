"""Exchange of an outside issuer's token at STS: what is refused, in which words, and what a principal may do then."""

import json
import socket

import pytest

from bezel_localcloud.core.paths import DEPLOYER
from localcloud_support import federation as at
from localcloud_support.issuer import CLAIMS, LIFETIME, public_curve_key, public_key, sign

AUDIENCE = f"https:{at.AUDIENCE}"
PRINCIPAL = f"principal://iam.googleapis.com/{at.NAME}/subject"
SET = f"principalSet://iam.googleapis.com/{at.NAME}"
DISABLED = (
    'The target service indicated by the "audience" parameters is invalid. This might either be because the pool or '
    "provider is disabled or deleted or because it doesn't exist."
)
NOT_EXPECTED = f"does not match the expected audience {AUDIENCE}, {at.AUDIENCE}."
TOO_LONG = (
    "The size of mapped attribute google.subject exceeds the 127 bytes limit. Either modify your attribute mapping or "
    "the incoming assertion to produce a mapped attribute that is less than 127 bytes."
)


@pytest.mark.slow
def test_a_token_of_the_issuer_becomes_a_federated_one(project, issuer):
    answer = at.exchange(project, issuer.token(AUDIENCE))
    assert answer.pop("access_token").count(".") == 2
    assert answer == {
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": LIFETIME,
    }


def test_json_is_as_good_as_a_form(project, issuer):
    fields = at.form(issuer.token(AUDIENCE))
    camel = {"grantType": fields["grant_type"], "requestedTokenType": fields["requested_token_type"]}
    camel |= {"subjectToken": fields["subject_token"], "subjectTokenType": fields["subject_token_type"]}
    body = camel | {"audience": fields["audience"], "scope": fields["scope"]}
    assert project.ok("POST", "/sts/v1/token", body)["token_type"] == "Bearer"


def claims(issuer, **changed):
    now = int(issuer.clock())
    whole = {"iss": issuer.url, "aud": AUDIENCE, "iat": now, "exp": now + LIFETIME, **CLAIMS} | changed
    return {name: value for name, value in whole.items() if value is not None}


REFUSED = {
    "wrong issuer": (
        lambda issuer: issuer.token(AUDIENCE, iss="https://other.example"),
        "invalid_grant",
        "The issuer in ID Token https://other.example does not match the expected ones: {url}",
    ),
    "wrong audience": (
        lambda issuer: issuer.token("https://github.com/example"),
        "invalid_grant",
        f"The audience in ID Token [https://github.com/example] {NOT_EXPECTED}",
    ),
    "no audience": (
        lambda issuer: issuer.token(AUDIENCE, aud=None),
        "invalid_grant",
        f"The audience in ID Token [None] {NOT_EXPECTED}",
    ),
    "expired": (
        lambda issuer: issuer.token(AUDIENCE, iat=1_700_000_000, nbf=None, exp=1_700_000_300),
        "invalid_grant",
        "ID Token issued at 1700000000 is stale to sign-in.",
    ),
    "not yet valid": (
        lambda issuer: issuer.token(AUDIENCE, nbf=4_000_000_000),
        "invalid_grant",
        "ID Token is not valid before 4000000000.",
    ),
    "issued in the future": (
        lambda issuer: issuer.token(AUDIENCE, iat=4_000_000_000, nbf=None, exp=4_000_000_300),
        "invalid_grant",
        "ID Token is not valid before 4000000000.",
    ),
    "no times": (
        lambda issuer: issuer.token(AUDIENCE, iat=None, exp=None),
        "invalid_grant",
        "The ID Token must have the claims iat and exp, in seconds.",
    ),
    "another repository": (
        lambda issuer: issuer.token(AUDIENCE, repository="example/other", repository_id="13"),
        "unauthorized_client",
        "The given credential is rejected by the attribute condition.",
    ),
    "a fork": (
        lambda issuer: issuer.token(AUDIENCE, sub="repo:fork/bezel:pull_request", repository_id="99"),
        "unauthorized_client",
        "The given credential is rejected by the attribute condition.",
    ),
    "a claim of the condition missing": (
        lambda issuer: issuer.token(AUDIENCE, repository_id=None),
        "unauthorized_client",
        "The given credential is rejected by the attribute condition.",
    ),
    "a mapped claim missing": (
        lambda issuer: issuer.token(AUDIENCE, ref=None),
        "unauthorized_client",
        "Could not obtain a value for attribute.ref from the given credential.",
    ),
    "no subject": (
        lambda issuer: issuer.token(AUDIENCE, sub=""),
        "unauthorized_client",
        "Could not obtain a value for google.subject from the given credential.",
    ),
    "a subject of another type": (
        lambda issuer: issuer.token(AUDIENCE, sub=7),
        "unauthorized_client",
        "The mapped attribute 'google.subject' must be of type STRING.",
    ),
    "a long subject": (
        lambda issuer: issuer.token(AUDIENCE, sub="x" * 128),
        "invalid_request",
        TOO_LONG,
    ),
    "wrong key": (
        lambda issuer: sign(claims(issuer), number=1),
        "invalid_grant",
        "Unable to verify the ID Token signature.",
    ),
    "unknown key": (
        lambda issuer: sign(claims(issuer), kid="other"),
        "invalid_grant",
        "No key of the issuer has the id that the ID Token names.",
    ),
    "alg none": (
        lambda issuer: sign(claims(issuer), alg="none"),
        "invalid_grant",
        "The signing algorithm none of the ID Token is not supported. Use one of: RS256, ES256.",
    ),
    "HS256 with the public key": (
        lambda issuer: sign(claims(issuer), alg="HS256"),
        "invalid_grant",
        "The signing algorithm HS256 of the ID Token is not supported. Use one of: RS256, ES256.",
    ),
    "ES256 with an RSA key's id": (
        lambda issuer: sign(claims(issuer), alg="ES256"),
        "invalid_grant",
        "No key of the issuer has the id that the ID Token names.",
    ),
    "changed claims": (
        lambda issuer: ".".join(
            part
            for part in (
                sign(claims(issuer)).split(".")[0],
                sign(claims(issuer, repository_id="12", actor="evil")).split(".")[1],
                sign(claims(issuer)).split(".")[2],
            )
        ),
        "invalid_grant",
        "Unable to verify the ID Token signature.",
    ),
    "no token": (lambda _: "not.a.token", "invalid_grant", "Unable to parse the ID Token."),
    "an empty token": (lambda _: "", "invalid_grant", "Unable to parse the ID Token."),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_a_token_that_proves_nothing_is_refused(case, project, issuer):
    token, error, text = REFUSED[case]
    answer = at.exchange(project, token(issuer))
    assert answer == {"error": error, "error_description": text.format(url=issuer.url)}


def change_provider(project, mask, **fields):
    at.finish(project, project.ok("PATCH", at.PROVIDER, fields, updateMask=mask))


TARGETS = {
    "the pool is disabled": lambda project: project.ok("PATCH", at.POOL, {"disabled": True}, updateMask="disabled"),
    "the pool is deleted": lambda project: project.ok("DELETE", at.POOL),
    "the provider is disabled": lambda project: change_provider(project, "disabled", disabled=True),
    "the provider is deleted": lambda project: project.ok("DELETE", at.PROVIDER),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TARGETS)
def test_no_token_is_exchanged_where(case, project, issuer):
    TARGETS[case](project)
    answer = at.exchange(project, issuer.token(AUDIENCE))
    assert answer == {"error": "invalid_target", "error_description": DISABLED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "error", "text"),
    [
        ("grant_type", "client_credentials", "unsupported_grant_type", "Invalid grant_type"),
        (
            "audience",
            at.NAME,
            "invalid_request",
            'Invalid value for "audience". This value should be the full resource',
        ),
        ("audience", at.AUDIENCE.replace("forge", "other"), "invalid_target", DISABLED),
        ("audience", at.AUDIENCE.replace("123456789012", "1"), "invalid_target", DISABLED),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:saml2", "invalid_request", "requested_token_type"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:saml2", "invalid_request", "subject_token_type"),
        ("scope", "", "invalid_scope", "The scope is required"),
    ],
)
def test_a_request_of_another_form_is_refused(field, value, error, text, project, issuer):
    answer = at.exchange(project, issuer.token(AUDIENCE), **{field: value})
    assert answer["error"] == error
    assert text in answer["error_description"]


@pytest.mark.slow
def test_keys_are_fetched_once_and_again_for_a_new_one(project, issuer):
    for _ in range(2):
        assert "access_token" in at.exchange(project, issuer.token(AUDIENCE))
    assert issuer.requests == ["/.well-known/openid-configuration", "/keys"]
    issuer.keys = [public_key(1, "key-1")]
    token = sign(claims(issuer), number=1, kid="key-1")
    assert "access_token" in at.exchange(project, token)
    assert issuer.requests.count("/keys") == 2


def test_an_issuer_that_is_not_there_is_named_as_the_cause(project, issuer):
    token = issuer.token(AUDIENCE)
    issuer.__exit__()
    answer = at.exchange(project, token)
    expected = {"error": "invalid_grant", "error_description": "Error connecting to the given credential's issuer."}
    assert answer == expected
    issuer.__enter__()


def test_keys_of_the_settings_are_used_without_asking_anyone(project, issuer):
    oidc = {"issuerUri": "https://forge.example", "jwksJson": json.dumps({"keys": [public_curve_key()]})}
    change_provider(project, "oidc", oidc=oidc)
    token = sign(claims(issuer, iss="https://forge.example"), alg="ES256", kid="curve")
    assert "access_token" in at.exchange(project, token)
    assert issuer.requests == []
    broken = f"{token[:-4]}AAAA"
    assert at.exchange(project, broken)["error_description"] == "Unable to verify the ID Token signature."


@pytest.mark.slow
def test_an_issuer_elsewhere_is_never_asked(project, issuer):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = f"https://0.0.0.0:{listener.getsockname()[1]}"  # it leads here, and is no address of the loopback
        change_provider(project, "oidc", oidc={"issuerUri": there})
        answer = at.exchange(project, issuer.token(AUDIENCE, iss=there))
        assert answer["error_description"] == "Error connecting to the given credential's issuer."
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # no connection waits
            listener.accept()


def test_allowed_audiences_take_the_place_of_the_provider_s_name(project, issuer):
    change_provider(project, "oidc.allowedAudiences", oidc={"allowedAudiences": ["bezel"]})
    assert "access_token" in at.exchange(project, issuer.token("bezel"))
    answer = at.exchange(project, issuer.token(AUDIENCE))
    assert answer["error_description"].endswith("does not match the expected audience bezel.")


MEMBERS = {
    f"{PRINCIPAL}/{CLAIMS['sub']}": True,
    f"{SET}/attribute.repository/example/bezel": True,
    f"{SET}/attribute.ref/refs/heads/main": True,
    f"{SET}/*": True,
    f"{PRINCIPAL}/repo:example/bezel:pull_request": False,
    f"{SET}/attribute.repository/example/other": False,
    f"{SET}/attribute.nothing/main": False,
    f"{SET}/group/admins": False,
    "allAuthenticatedUsers": False,
}


@pytest.mark.slow
@pytest.mark.parametrize("member", MEMBERS)
def test_a_principal_acts_as_an_account_only_where_a_member_includes_it(member, project, issuer):
    at.let_in(project, member)
    answer = at.impersonate(project, at.exchange(project, issuer.token(AUDIENCE))["access_token"])
    assert answer.status_code == (200 if MEMBERS[member] else 403), answer.text
    if not MEMBERS[member]:
        assert "iam.serviceAccounts.getAccessToken" in answer.json()["error"]["message"]
        return
    project.token = answer.json()["accessToken"]
    assert project.call("GET", at.ACCOUNT_PATH).status_code == 403, "the account itself has no role"


def test_another_role_does_not_let_a_principal_act_as_the_account(project, issuer):
    at.let_in(project, f"{SET}/*", "roles/iam.serviceAccountUser")
    token = at.exchange(project, issuer.token(AUDIENCE))["access_token"]
    assert at.impersonate(project, token).status_code == 403


@pytest.mark.slow
def test_groups_are_members_too(project, issuer):
    mapping = at.MAPPING | {"google.groups": "assertion.teams"}
    change_provider(project, "attributeMapping", attributeMapping=mapping)
    at.let_in(project, f"{SET}/group/admins")
    token = at.exchange(project, issuer.token(AUDIENCE, teams=["admins", "devs"]))["access_token"]
    assert at.impersonate(project, token).status_code == 200
    token = at.exchange(project, issuer.token(AUDIENCE, teams=["devs"]))["access_token"]
    assert at.impersonate(project, token).status_code == 403


def test_a_principal_can_be_granted_a_role_of_the_project_itself(project, issuer):
    token = at.exchange(project, issuer.token(AUDIENCE))["access_token"]
    owner_token, project.token = project.token, token
    assert project.call("GET", at.POOL).status_code == 403
    project.token = owner_token
    path = "/crm/v1/projects/bezel-local"
    policy = project.ok("POST", f"{path}:getIamPolicy")
    policy["bindings"].append({"role": "roles/iam.workloadIdentityPoolViewer", "members": [f"{SET}/*"]})
    project.ok("POST", f"{path}:setIamPolicy", {"policy": policy})
    project.token = token
    assert project.ok("GET", at.POOL)["state"] == "ACTIVE"


def test_a_token_ends_with_the_one_that_it_was_given_for(project, issuer):
    at.let_in(project, f"{SET}/*")
    token = at.exchange(project, issuer.token(AUDIENCE))["access_token"]
    project.clock.time += LIFETIME - 1
    assert at.impersonate(project, token).status_code == 200
    project.clock.time += 2
    assert at.impersonate(project, token).status_code == 401


@pytest.mark.slow
@pytest.mark.parametrize(("case", "status"), list(zip(TARGETS, (401, 401, 200, 200), strict=True)))
def test_a_token_ends_with_its_pool_and_not_with_its_provider(case, status, project, issuer):
    """A token that is there ends with its pool and not with its provider."""
    at.let_in(project, f"{SET}/*")
    token = at.exchange(project, issuer.token(AUDIENCE))["access_token"]
    TARGETS[case](project)
    assert at.impersonate(project, token).status_code == status


@pytest.mark.slow
@pytest.mark.parametrize(
    "member",
    [
        f"{SET.replace('pipeline', 'missing')}/*",
        f"{SET.replace('123456789012', 'bezel-local')}/*",
        f"{SET}/subject/x",
        f"{PRINCIPAL.rpartition('/')[0]}/*",
        SET,
    ],
)
@pytest.mark.usefixtures("issuer")
def test_a_member_of_no_pool_is_refused(member, project):
    policy = {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]}
    error = project.refusal(400, "POST", f"{at.ACCOUNT_PATH}:setIamPolicy", {"policy": policy})
    assert "Identity Pool does not exist" in error["message"]


def test_nothing_is_exchanged_before_the_api_is_enabled(project, issuer):
    project.cloud.store.delete("api", "sts.googleapis.com")
    answer = at.exchange(project, issuer.token(AUDIENCE))
    assert "Security Token Service API has not been used" in answer["error"]["message"]


@pytest.mark.slow
def test_no_token_gets_into_an_error(project, issuer):
    for token, _, _ in REFUSED.values():
        text = token(issuer)
        for part in text.split(".")[1:]:
            assert len(part) < 9 or part not in json.dumps(at.exchange(project, text))


@pytest.mark.usefixtures("issuer")
def test_the_deployer_s_tokens_are_no_subject_tokens(project):
    deployer_token = project.cloud.tokens.identity_token(DEPLOYER, AUDIENCE)
    assert at.exchange(project, deployer_token)["error_description"].startswith("The issuer in ID Token")
