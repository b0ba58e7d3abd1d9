"""Identity of callers at the front of a service: every rule of an identity token, and what a refusal looks like."""

import base64
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from bezel_localcloud.access.credentials import keys
from localcloud_support.client import DEPLOYER, SERVICES, plain


@pytest.fixture(scope="module")
def service(cloud):
    """A service that only the deployer may call, with an audience of its own."""
    cloud.create("guarded", cloud.template(), customAudiences=["https://models.example"])
    yield cloud.service("guarded")
    cloud.remove("guarded")


@pytest.fixture
def mint(endpoint, service):
    """A function that signs a token with the issuer's own key, or another one, some claims changed; times from now."""
    issuer_key = keys.load_private((endpoint.directory / "issuer.pem").read_text())

    def sign(key=None, **changes):
        now = int(time.time())
        claims = {"iss": endpoint.base, "aud": service["uri"], "email": DEPLOYER, "iat": 0, "exp": 3600} | changes
        times = {name: now + claims[name] for name in ("iat", "exp") if claims[name] is not None}
        return keys.sign(claims | times, key or issuer_key)

    return sign


def answer(service, token, header="Authorization"):
    return plain.get(service["uri"] + "/x", headers={header: f"Bearer {token}"})


def encode(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def without_signature(token, **header):
    """The token with another header and no signature."""
    return f"{encode(json.dumps({'typ': 'JWT'} | header).encode())}.{token.split('.')[1]}."


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"aud": "https://models.example"}, {"iat": 200}, {"exp": 30}],
    ids=["plain", "custom audience", "a clock 200 s ahead", "about to end"],
)
def test_a_token_that_holds_gets_through(service, mint, changes):
    assert answer(service, mint(**changes)).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://models.example/v1"},
        {"aud": "http://127.0.0.1:1"},
        {"iss": "https://accounts.google.com"},
        {"iss": ""},
        {"exp": -1},
        {"exp": None},
        {"iat": 400},
        {"email": DEPLOYER.replace("deployer", "nobody")},
    ],
    ids=["near audience", "other audience", "other issuer", "no issuer", "ended", "endless", "future", "no account"],
)
def test_a_token_of_which_one_claim_does_not_hold_is_unauthorized(service, mint, changes):
    refused = answer(service, mint(**changes))
    assert refused.status_code == 401
    text = 'Bearer error="invalid_token" error_description="The access token could not be verified"'
    assert refused.headers["www-authenticate"] == text
    assert "Your client does not have permission to the requested URL <code>/x</code>." in refused.text


def test_a_token_of_another_algorithm_is_unauthorized(endpoint, service, mint):
    """A token that says another algorithm is unauthorized, even with the issuer's signature."""
    issuer_key = keys.load_private((endpoint.directory / "issuer.pem").read_text())
    for algorithm, status in (("RS256", 200), ("HS256", 401), ("none", 401), ("RS512", 401)):
        signed = without_signature(mint(), alg=algorithm).rstrip(".")
        signature = issuer_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        assert answer(service, f"{signed}.{encode(signature)}").status_code == status


@pytest.mark.slow
def test_a_token_that_the_issuer_did_not_sign_is_unauthorized(service, mint):
    good = mint()
    foreign = mint(key=keys.new_key())
    forged = [
        without_signature(good, alg="none"),
        without_signature(good, alg="RS256"),
        foreign,
        good[:-4] + "AAAA",
        "a.b.c",
    ]
    assert [answer(service, token).status_code for token in forged] == [401] * 5
    assert answer(service, good).status_code == 200


def test_no_token_is_forbidden_without_a_challenge(service):
    for headers in ({}, {"Authorization": "Basic dTpw"}):
        refused = plain.get(service["uri"], headers=headers)
        assert (refused.status_code, "www-authenticate" in refused.headers) == (403, False)


def test_the_platforms_own_header_counts_alone(service, mint):
    """The platform's own header is the only one that counts where it is there."""
    good, bad = mint(), mint(aud="http://127.0.0.1:1")
    both = {"Authorization": f"Bearer {good}", "X-Serverless-Authorization": f"Bearer {bad}"}
    assert plain.get(service["uri"], headers=both).status_code == 401
    assert answer(service, good, "X-Serverless-Authorization").status_code == 200


def test_a_check_that_is_switched_off_lets_anybody_through(cloud, service):
    cloud.finish(
        "run/v2", cloud.patch(f"{SERVICES}/guarded", {"invokerIamDisabled": True}, updateMask="invokerIamDisabled")
    )
    assert plain.get(service["uri"]).status_code == 200
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/guarded", {}, updateMask="invokerIamDisabled"))
    assert plain.get(service["uri"]).status_code == 403


@pytest.mark.parametrize("change", [{"ingress": "INGRESS_TRAFFIC_INTERNAL_ONLY"}, {"defaultUriDisabled": True}])
def test_an_address_that_is_not_public_is_found_by_nobody(cloud, service, mint, change):
    mask = "ingress,default_uri_disabled"
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/guarded", change, updateMask=mask))
    assert answer(service, mint()).status_code == 404
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/guarded", {"ingress": "INGRESS_TRAFFIC_ALL"}, updateMask=mask))
    assert answer(service, mint()).status_code == 200
