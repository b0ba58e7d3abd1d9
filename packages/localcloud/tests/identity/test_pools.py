"""Pools and providers of workload identity federation: what is accepted, changed by masks, deleted and restored."""

import json

import pytest

from localcloud_support import federation as at
from localcloud_support.in_process import Project
from localcloud_support.issuer import public_key

ISSUER = "https://forge.example"
DAY = 86_400


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    at.enable(project)
    at.finish(project, project.ok("POST", at.POOLS, {"displayName": "CI"}, workloadIdentityPoolId="pipeline"))
    yield project
    project.close()


def make_provider(project, **changed):
    body = at.provider(ISSUER, **changed)
    return project.call("POST", f"{at.POOL}/providers", body, workloadIdentityPoolProviderId="forge")


def test_a_pool_has_the_project_s_number_in_its_name(project):
    assert project.ok("GET", at.POOL) == {"name": at.NAME, "displayName": "CI", "state": "ACTIVE"}


def test_a_mask_changes_what_it_names(project):
    body = {"displayName": "Other", "description": "of pipelines"}
    at.finish(project, project.ok("PATCH", at.POOL, body, updateMask="description"))
    assert project.ok("GET", at.POOL) == {
        "name": at.NAME,
        "displayName": "CI",
        "description": "of pipelines",
        "state": "ACTIVE",
    }
    at.finish(project, project.ok("PATCH", at.POOL, {}, updateMask="displayName"))
    assert "displayName" not in project.ok("GET", at.POOL)
    refused = project.refusal(400, "PATCH", at.POOL, {"mode": "FEDERATION_ONLY"}, updateMask="mode")
    assert refused["message"] == "Attempted to update an immutable field."


def test_a_pool_of_federation_has_no_attestation_rules(project):
    assert project.ok("GET", f"{at.POOL}:listAttestationRules") == {}
    project.refusal(404, "GET", f"{at.POOLS}/other:listAttestationRules")


def test_a_deleted_pool_keeps_its_name_for_thirty_days_and_can_be_restored(project):
    at.finish(project, project.ok("DELETE", at.POOL))
    assert project.ok("GET", at.POOL)["state"] == "DELETED"
    assert project.ok("GET", at.POOLS) == {}
    assert len(project.ok("GET", at.POOLS, showDeleted="true")["workloadIdentityPools"]) == 1
    project.refusal(400, "PATCH", at.POOL, {"displayName": "x"}, updateMask="displayName")
    project.refusal(409, "POST", at.POOLS, {}, workloadIdentityPoolId="pipeline")
    at.finish(project, project.ok("POST", f"{at.POOL}:undelete", {}))
    restored = project.ok("GET", at.POOL)
    assert restored["state"] == "ACTIVE"
    assert "expireTime" not in restored
    project.refusal(400, "POST", f"{at.POOL}:undelete", {})


def test_a_deleted_pool_is_gone_with_its_providers_after_thirty_days(project):
    at.finish(project, make_provider(project).json())
    at.finish(project, project.ok("DELETE", at.POOL))
    project.passes(30 * DAY - 10)
    assert project.ok("GET", at.POOL)["state"] == "DELETED"
    project.passes(11)
    project.refusal(404, "GET", at.POOL)
    project.refusal(404, "GET", at.PROVIDER)
    at.finish(project, project.ok("POST", at.POOLS, {}, workloadIdentityPoolId="pipeline"))
    assert project.ok("GET", f"{at.POOL}/providers") == {}


@pytest.mark.slow
def test_a_deleted_provider_can_be_restored(project):
    at.finish(project, make_provider(project).json())
    at.finish(project, project.ok("DELETE", at.PROVIDER))
    assert project.ok("GET", at.PROVIDER)["state"] == "DELETED"
    assert project.ok("GET", f"{at.POOL}/providers") == {}
    at.finish(project, project.ok("POST", f"{at.PROVIDER}:undelete", {}))
    assert project.ok("GET", f"{at.POOL}/providers")["workloadIdentityPoolProviders"][0]["state"] == "ACTIVE"


def test_nothing_deleted_counts_as_left_behind(project):
    assert project.ok("GET", "/localcloud/resources")["identityPools"] == [at.POOL.removeprefix("/iam/v1/")]
    at.finish(project, project.ok("DELETE", at.POOL))
    assert "identityPools" not in project.ok("GET", "/localcloud/resources")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["abc", "gcp-pool", "Pool", "x" * 33, "a_bc"])
def test_an_id_of_another_form_is_refused(name, project):
    project.refusal(400, "POST", at.POOLS, {}, workloadIdentityPoolId=name)


WRONG = {
    "no subject": (
        {"attributeMapping": {"attribute.a": "assertion.a"}},
        400,
        "must include a mapping to google.subject",
    ),
    "another attribute": (
        {"attributeMapping": {"google.subject": "assertion.sub", "google.email": "assertion.email"}},
        400,
        "Invalid attribute 'google.email'",
    ),
    "a condition that does not parse": ({"attributeCondition": "assertion.a ="}, 400, "Failed to parse"),
    "a condition of unknown names": ({"attributeCondition": "token.a == 'x'"}, 400, "undeclared reference to 'token'"),
    "a mapping that reads an attribute": (
        {"attributeMapping": {"google.subject": "attribute.a"}},
        400,
        "undeclared reference to 'attribute'",
    ),
    "a function that is not served": (
        {"attributeCondition": "assertion.a.format(['x']) == 'x'"},
        400,
        "localcloud does not evaluate format()",
    ),
    "plain http": ({"oidc": {"issuerUri": "http://forge.example"}}, 400, "must be an HTTPS endpoint"),
    "no issuer": ({"oidc": {}}, 400, "oidc"),
    "a shared issuer without a condition": (
        {"oidc": {"issuerUri": "https://token.actions.githubusercontent.com"}, "attributeCondition": ""},
        400,
        "The attribute condition must reference one of the provider's claims.",
    ),
    "a condition that reads nothing": (
        {"oidc": {"issuerUri": "https://token.actions.githubusercontent.com"}, "attributeCondition": "1 == 1"},
        400,
        "The attribute condition must reference one of the provider's claims.",
    ),
    "keys with certificates": (
        {"oidc": {"issuerUri": ISSUER, "jwksJson": json.dumps({"keys": [{**public_key(), "x5c": ["x"]}]})}},
        400,
        "Input JWK is not in a valid json format",
    ),
    "keys that are no JSON": ({"oidc": {"issuerUri": ISSUER, "jwksJson": "{"}}, 400, "Input JWK is not"),
    "too many audiences": (
        {"oidc": {"issuerUri": ISSUER, "allowedAudiences": ["a"] * 11}},
        400,
        "At most 10 audiences",
    ),
    "a provider of another kind": ({"aws": {"accountId": "1"}}, 400, "aws"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_a_provider_that_google_would_refuse_is_refused(case, project):
    changed, status, text = WRONG[case]
    answer = make_provider(project, **changed)
    assert answer.status_code == status
    assert text in answer.json()["error"]["message"]
    project.refusal(404, "GET", at.PROVIDER)


def test_a_change_is_checked_like_a_new_provider(project):
    at.finish(project, make_provider(project).json())
    body = {"attributeMapping": {}}
    assert (
        "google.subject" in project.refusal(400, "PATCH", at.PROVIDER, body, updateMask="attributeMapping")["message"]
    )
    assert project.ok("GET", at.PROVIDER)["attributeMapping"] == at.MAPPING


def test_a_provider_needs_its_pool(project):
    body = at.provider(ISSUER)
    project.refusal(404, "POST", f"{at.POOLS}/other/providers", body, workloadIdentityPoolProviderId="forge")
    at.finish(project, project.ok("DELETE", at.POOL))
    assert make_provider(project).status_code == 400


def test_pools_are_global(project):
    project.refusal(403, "GET", at.POOLS.replace("global", "us-central1"))
