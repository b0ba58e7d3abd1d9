"""The requests of a login: repeated while a server is away, within a deadline, and never with a token in a message."""

import pytest

from bezel.gitops.login.causes import exchange_refused
from bezel.gitops.login.job_identity import DEADLINE_SECONDS, JobTokens, Login
from bezel.gitops.login.settings import LoginSettings
from bezel_base.errors import UserError
from localcloud_support.issuer import REQUEST_TOKEN, Issuer
from tests.support.clock import Clock
from tests.support.rest.fake_google import Answer, serving

PROVIDER = "projects/1/locations/global/workloadIdentityPools/pipeline/providers/forge"
SETTINGS = LoginSettings(PROVIDER, "deploy@demo.iam.gserviceaccount.com", "demo")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def issuer():
    with Issuer() as issuer:
        yield issuer


def login(issuer, clock, google, masked=None):
    environ = issuer.environment() | {
        "GOOGLE_STS_CUSTOM_ENDPOINT": f"{google}/sts/v1/",
        "GOOGLE_IAM_CREDENTIALS_CUSTOM_ENDPOINT": f"{google}/iamcredentials/v1/",
    }
    tokens = JobTokens.of(environ, SETTINGS.token_audience)
    mask = masked.append if masked is not None else lambda _: None
    return Login(SETTINGS, environ, mask, clock=clock, sleep=clock.sleep).run(tokens)


def test_a_server_that_is_away_for_a_moment_is_asked_again(issuer):
    left = [503, 429]

    def google(call):
        if call.path == "/sts/v1/token":
            return Answer(left.pop()) if left else Answer(json={"access_token": "federated-token"})
        assert call.headers["authorization"] == "Bearer federated-token"
        return Answer(json={"accessToken": "account-token", "expireTime": "2030-01-01T00:00:00Z"})

    clock, masked = Clock(), []
    with serving() as server:
        server.routes.append(google)
        session = login(issuer, clock, server.url, masked)
    assert session == ("repo:example/bezel:ref:refs/heads/main", "2030-01-01T00:00:00Z")
    assert len(clock.slept) == 2
    assert masked[0] == REQUEST_TOKEN
    assert masked[1].startswith("eyJ")
    assert masked[2:] == ["federated-token", "account-token"]


@pytest.mark.parametrize("away", ["the forge", "google"])
def test_a_server_that_stays_away_is_named_with_the_time_that_was_waited(away, issuer):
    clock = Clock()
    issuer.status = 503 if away == "the forge" else 200
    what = "the forge's token for this job" if away == "the forge" else "the exchange of the token at Google"
    with pytest.raises(UserError, match=f"did not come within {DEADLINE_SECONDS:g} s") as caught:
        login(issuer, clock, NOWHERE)
    assert what in str(caught.value)
    assert DEADLINE_SECONDS - 17 <= clock.now < DEADLINE_SECONDS
    assert REQUEST_TOKEN not in str(caught.value)


def test_a_refusal_that_repeats_the_token_does_not_show_it(issuer):
    def google(call):
        text = f"cannot take {call.form['subject_token']}"
        return Answer(400, {"error": "invalid_grant", "error_description": text})

    with serving() as server:
        server.routes.append(google)
        with pytest.raises(UserError) as caught:
            login(issuer, Clock(), server.url)
    assert "cannot take [redacted]" in str(caught.value)
    assert "eyJ" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [Answer(200, text="<html>"), Answer(200, {}), Answer(404, text="no such page")])
def test_an_answer_of_another_form_is_a_refusal(answer, issuer):
    with serving() as server:
        server.routes.append(lambda _: answer)
        with pytest.raises(UserError, match="look at the provider"):
            login(issuer, Clock(), server.url)


@pytest.mark.parametrize(
    ("error", "text", "repair"),
    [
        ("SERVICE_DISABLED", "has not been used in project 1", "gcloud services enable sts.googleapis.com"),
        ("invalid_target", "is disabled or deleted", "undelete"),
        ("unauthorized_client", "rejected by the attribute condition", "attributeCondition"),
        ("unauthorized_client", "Could not obtain a value for google.subject", "attributeMapping"),
        ("invalid_grant", "The audience in ID Token [x] does not match", "allowedAudiences"),
        ("invalid_grant", "The issuer in ID Token x does not match", "issuerUri"),
        ("invalid_grant", "ID Token issued at 1 is stale to sign-in.", "set the clock of the runner"),
        ("internal_failure", "", "look at the provider"),
    ],
)
def test_each_refusal_has_its_repair(error, text, repair):
    assert repair in exchange_refused(SETTINGS, error, text, "not a token").repair
