"""Only known identities get a role: no set of all, no project's editors, no shared account, no open pool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bezel.foundation.settings import Settings
from bezel_bootstrap.access import attribute_condition, attribute_mapping, principals
from bezel_policies.security.pool_condition import is_pinned
from tests.support.policies.harness import UNKNOWN, violations

MEMBER = "gcp:projects/iAMMember:IAMMember"
BINDING = "gcp:cloudrunv2/serviceIamBinding:ServiceIamBinding"
POLICY = "gcp:cloudrunv2/serviceIamPolicy:ServiceIamPolicy"
PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
WORKFORCE = "gcp:iam/workforcePoolProvider:WorkforcePoolProvider"
RAW = "pulumi-python:dynamic/somebody:Request"
POOL = "//iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/forge"
UNKNOWN_ONES = [
    "allUsers",
    "allusers",
    "allAuthenticatedUsers",
    "principalSet://goog/public:all",
    f"principalSet:{POOL}/*",
    f"principalset:{POOL}/*",
    f"principalSet:{POOL}/attribute.repository/*",
    f"principalSet:{POOL}/attribute.repository/acme/*",
    f"principalSet:{POOL}/namespace/default",
    f"principalSet:{POOL}/kubernetes.cluster/https://container.googleapis.com/v1/projects/p/locations/l/clusters/c",
    "principalSet://iam.googleapis.com/locations/global/workforcePools/people/*",
    "principalSet://cloudresourcemanager.googleapis.com/projects/123",
    "principalSet://cloudresourcemanager.googleapis.com/organizations/1/type/ServiceAccount",
    *(
        f"principalSet:{POOL}/attribute.{each}"
        for each in (
            "repository_owner/acme",
            "repository_owner_id/1",
            "aud/x",
            "iss/x",
            "actor/me",
            "ref/refs/heads/main",
            "event/push",
            "environment/prod",
            "job_workflow_ref/acme/x/.github/workflows/a.yml@refs/heads/main",
            "pipeline_slug/deploy",
        )
    ),
    "principalSet://iam.googleapis.com/locations/global/workforcePools/people/attribute.aud/x",
    f"principal:{POOL}/subject/*",
    f"principal:{POOL}/subject/repo:acme/*",
    f"principal:{POOL}/subject/repository_owner:acme:environment:prod",
    "principal://iam.googleapis.com/locations/global/workforcePools/people/subject/*",
    "domain:example.com",
    "projectOwner:acme-llm",
    "projectEditor:acme-llm",
    "projectViewer:acme-llm",
    "serviceAccount:123-compute@developer.gserviceaccount.com",
    "serviceAccount:acme-llm@appspot.gserviceaccount.com",
    "serviceAccount:example.com:acme-llm@appspot.gserviceaccount.com",
    "serviceAccount:123@cloudservices.gserviceaccount.com",
    "serviceAccount:123@cloudbuild.gserviceaccount.com",
]
KNOWN_ONES = [
    "user:a@example.com",
    "group:domain@example.com",
    "serviceAccount:app@acme-llm.iam.gserviceaccount.com",
    "serviceAccount:acme-llm.svc.id.goog[chat/server]",
    "serviceAccount:service-123@gcp-sa-run.iam.gserviceaccount.com",
    f"principal:{POOL}/subject/repo:acme/shop:ref:refs/heads/main",
    f"principalSet:{POOL}/attribute.repository/acme/shop",
    principals(POOL.removeprefix("//iam.googleapis.com/"), "deploy"),
    principals(POOL.removeprefix("//iam.googleapis.com/"), "preview"),
    f"principalSet:{POOL}/attribute.repository_id/123456789",
    f"principalSet:{POOL}/attribute.project_path/acme/shop",
    f"principalSet:{POOL}/attribute.terraform_workspace_id/ws-1",
    f"principal:{POOL}/subject/ns/default/sa/server",
    f"principal:{POOL}/subject/system:serviceaccount:default:server",
    "principal://iam.googleapis.com/locations/global/workforcePools/people/subject/a@example.com",
    "principalSet://iam.googleapis.com/locations/global/workforcePools/people/attribute.department/finance",
    f"principalSet:{POOL}/group/deployers",
]


def places(member: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Wherever a member may stand."""
    policy = {"bindings": [{"role": "roles/run.invoker", "members": ["user:a@example.com", member]}]}
    return {
        "member": (MEMBER, {"member": member}),
        "members": (BINDING, {"members": ["user:a@example.com", member]}),
        "policy": (POLICY, {"policyData": json.dumps(policy)}),
        "policy in snake case": (POLICY, {"policy_data": json.dumps(policy)}),
        "raw body": (RAW, {"body": {"policy": policy}}),
        "raw text": (RAW, {"body": json.dumps({"policy": policy})}),
        "text in text": (RAW, {"body": json.dumps({"policy": json.dumps(policy)})}),
        "a bucket": ("gcp:storage/bucketIAMBinding:BucketIAMBinding", {"members": [member]}),
        "a dataset": ("gcp:bigquery/datasetAccess:DatasetAccess", {"iamMember": member}),
    }


@pytest.mark.parametrize("member", UNKNOWN_ONES)
def test_a_member_that_is_no_known_identity_is_refused_everywhere(member: str) -> None:
    for place, (token, inputs) in places(member).items():
        (message,) = violations("no-public-invoker", token, inputs)
        assert member.lower() in message.lower(), place


@pytest.mark.parametrize("member", KNOWN_ONES)
def test_a_known_identity_passes_everywhere(member: str) -> None:
    for place, (token, inputs) in places(member).items():
        assert violations("no-public-invoker", token, inputs) == [], place


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:storage/bucketAccessControl:BucketAccessControl", {"entity": "project-editors-123", "role": "OWNER"}),
        ("gcp:storage/bucketAccessControl:BucketAccessControl", {"entity": "domain-example.com", "role": "READER"}),
        ("gcp:storage/bucketACL:BucketACL", {"roleEntities": ["READER:project-viewers-123"]}),
        (
            "gcp:storage/bucketACL:BucketACL",
            {"role_entities": ["OWNER:user-1-compute@developer.gserviceaccount.com"]},
        ),
        ("gcp:bigquery/dataset:Dataset", {"accesses": [{"specialGroup": "projectWriters", "role": "WRITER"}]}),
        ("gcp:bigquery/dataset:Dataset", {"accesses": [{"domain": "example.com", "role": "READER"}]}),
    ],
)
def test_an_entry_of_an_access_list_that_stands_for_many_is_refused(token: str, inputs: dict[str, Any]) -> None:
    assert len(violations("no-public-invoker", token, inputs)) == 1


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:storage/bucketAccessControl:BucketAccessControl", {"entity": "user-a@example.com", "role": "READER"}),
        ("gcp:bigquery/dataset:Dataset", {"accesses": [{"userByEmail": "a@example.com", "role": "READER"}]}),
        ("gcp:dns/managedZone:ManagedZone", {"dnsName": "example.com.", "description": "domain:example.com"}),
        ("gcp:cloudrun/domainMapping:DomainMapping", {"name": "chat.example.com", "domain": "example.com"}),
        ("gcp:iam/denyPolicy:DenyPolicy", {"rules": [{"denyRule": {"deniedPrincipals": [f"principalSet:{POOL}/*"]}}]}),
        ("gcp:iam/denyPolicy:DenyPolicy", {"rules": [{"deny_rule": {"denied_principals": ["allUsers"]}}]}),
        ("gcp:logging/metric:Metric", {"filter": 'protoPayload.member="projectEditor:p"'}),
    ],
)
def test_words_like_a_member_elsewhere_pass(token: str, inputs: dict[str, Any]) -> None:
    assert violations("no-public-invoker", token, inputs) == []


MAPPING = {
    "google.subject": "assertion.sub",
    "attribute.repository": "assertion.repository",
    "attribute.project_path": "assertion.actor",
}
PINNED = [
    "assertion.repository == 'acme/shop'",
    "assertion.repository_id == '123456789'",
    "'123456789' == assertion.repository_id",
    "assertion['repository'] == \"acme/shop\"",
    "attribute.repository == 'acme/shop'",
    "google.subject == 'repo:acme/shop:environment:prod'",
    "assertion.repository in ['acme/shop', 'acme/chat']",
    "assertion.sub.startsWith('repo:acme/shop:')",
    "assertion.workflow_ref.startsWith('acme/shop/.github/workflows/deploy.yml@')",
    "assertion.job_workflow_ref.startsWith('acme/x/.github/workflows/a.yml@') && assertion.repository_owner_id == '1'",
    "assertion.repository_owner == 'acme' && assertion.job_workflow_ref in ['acme/x/.github/workflows/a.yml@v1']",
    "assertion.job_workflow_ref == 'acme/x/.github/workflows/a.yml@v1' && assertion.repository == 'acme/shop'",
    "assertion.pipeline_slug == 'deploy' && assertion.organization_slug == 'acme'",
    "assertion.pipeline_id == '0184990a'",
    "assertion.sub == 'organization:acme:pipeline:deploy:ref:refs/heads/main:commit:1:step:a'",
    "assertion.sub.startsWith('organization:acme:project:shop:')",
    "assertion.sub.startsWith('project_path:acme/group/shop:')",
    "assertion.sub == 'repository_owner:acme:repo:acme/shop:environment:prod'",
    "assertion.sub == 'system:serviceaccount:default:server'",
    "assertion.ci_config_ref_uri.startsWith('gitlab.com/acme/shop//.gitlab-ci.yml@')",
    "assertion['oidc.circleci.com/project-id'] == '0184990a'",
    "assertion.project_path == 'acme/shop' && assertion.ref_protected == 'true'",
    "(assertion.ref == 'refs/heads/main') && (assertion.repository == 'acme/shop')",
    "assertion.repository == 'acme/shop' || assertion.repository == 'acme/chat'",
    "assertion.repository == 'acme/shop' && (assertion.ref == 'a' || assertion.ref == 'b')",
]
OPEN = [
    "true",
    "assertion.repository_owner == 'acme'",
    "assertion.repository_owner_id == '1'",
    "assertion.ref == 'refs/heads/main'",
    "assertion.aud == 'https://example.com'",
    "assertion.repository == 'acme/shop' || true",
    "assertion.repository == 'acme/shop' || assertion.actor == 'me'",
    "assertion.repository != 'acme/shop'",
    "!(assertion.repository == 'acme/shop')",
    "assertion.repository == 'acme/shop' ? true : true",
    "assertion.repository == assertion.repository",
    "assertion.repository.startsWith('acme/')",
    "assertion.repository.startsWith('acme/shop')",
    "assertion.sub.startsWith('repo:')",
    "assertion.pipeline_slug == 'deploy'",
    "assertion.pipeline_slug in ['deploy', 'test'] && assertion.ref == 'refs/heads/main'",
    "assertion.job_workflow_ref == 'acme/x/.github/workflows/a.yml@refs/heads/main'",
    "assertion.job_workflow_ref.startsWith('acme/shop/.github/workflows/deploy.yml@')",
    "assertion.job_workflow_ref == 'acme/x/a.yml@v1' && assertion.ref == 'refs/heads/main'",
    "assertion.job_workflow_ref == 'acme/x/a.yml@v1' || assertion.repository_owner == 'acme'",
    "assertion.sub.startsWith('repository_owner:acme/x:')",
    "assertion.sub.startsWith('repository_owner:acme:environment:a/b:')",
    "assertion.sub.startsWith('job_workflow_ref:acme/x/.github/workflows/a.yml@')",
    "assertion.sub.startsWith('ref:refs/heads/main:')",
    "assertion.sub == 'environment:prod'",
    "assertion.sub == 'repository_owner:acme'",
    "google.subject in ['repo:acme/shop:environment:prod', 'repository_owner_id:1']",
    "assertion.project_path.startsWith('acme/shop/')",  # a group, and its projects
    "assertion.ci_config_ref_uri.startsWith('gitlab.com/acme/')",
    "assertion.vcs_origin.startsWith('github.com/acme/')",
    "assertion.hd == 'example.com'",
    "assertion.repository.matches('.*')",
    "assertion.repository.contains('shop')",
    "assertion.repository in assertion.repositories",
    "attribute.repository_id == '1'",  # mapped to nothing
    "attribute.project_path == 'acme/shop'",  # mapped to another claim
    "'assertion.repository == x' == 'assertion.repository == x'",
    "assertion.repository == 'acme/shop' && (true",
    "(" * 2000 + "true" + ")" * 2000,
    "assertion.repository == 'a/b' && " * 200 + "true",
]


def provider(condition: object, **changes: Any) -> dict[str, Any]:
    oidc = {"issuerUri": "https://token.actions.githubusercontent.com"}
    return {"oidc": oidc, "attributeMapping": MAPPING, "attributeCondition": condition, **changes}


@pytest.mark.parametrize("condition", PINNED)
def test_a_pool_of_named_repositories_passes(condition: str) -> None:
    assert violations("no-public-invoker", PROVIDER, provider(condition)) == []
    assert is_pinned(condition, MAPPING)


@pytest.mark.parametrize("condition", [None, "", *OPEN])
def test_a_pool_of_any_repository_is_refused(condition: str | None) -> None:
    (message,) = violations("no-public-invoker", PROVIDER, provider(condition))
    assert "attributeCondition" in message
    assert "assertion.repository_id == '123456789'" in message


def test_a_condition_that_a_preview_cannot_know_is_refused() -> None:
    (message,) = violations("no-public-invoker", PROVIDER, provider(UNKNOWN))
    assert "attributeCondition = (not known before the deploy)" in message


def test_a_condition_in_snake_case_is_the_same() -> None:
    spelt = {"oidc": {"issuer_uri": "https://gitlab.com"}, "attribute_condition": PINNED[0]}
    assert violations("no-public-invoker", PROVIDER, spelt) == []
    assert violations("no-public-invoker", PROVIDER, {**spelt, "attribute_condition": "true"})


@pytest.mark.parametrize(
    "token",
    [
        "google-native:iam/v1:Provider",
        "google-native:iam/v1beta:WorkloadIdentityPoolProvider",
        "kubernetes:iam.cnrm.cloud.google.com/v1beta1:IAMWorkloadIdentityPoolProvider",
        RAW,
    ],
)
@pytest.mark.parametrize("below", [None, "spec"])
def test_a_provider_of_another_type_is_judged_as_well(token: str, below: str | None) -> None:
    for condition, count in ((None, 1), ("true", 1), (PINNED[0], 0)):
        inputs = provider(condition)
        assert len(violations("no-public-invoker", token, {below: inputs} if below else inputs)) == count


@pytest.mark.parametrize(
    "issuer",
    ["https://accounts.google.com", "https://login.microsoftonline.com/common/v2.0", "https://gitlab.com", UNKNOWN],
)
def test_a_workforce_pool_of_a_public_issuer_is_pinned(issuer: object) -> None:
    for condition, count in ((None, 1), ("true", 1), ("assertion.hd == 'example.com'", 0), (PINNED[0], 0)):
        inputs = provider(condition, oidc={"issuerUri": issuer, "clientId": "x"}, workforcePoolId="people")
        assert len(violations("no-public-invoker", WORKFORCE, inputs)) == count


@pytest.mark.parametrize(
    "issuer",
    ["https://acme.okta.com", "https://login.microsoftonline.com/0184990a-6c67-4c5b-b112-36a304b66dad/v2.0"],
)
def test_a_workforce_pool_of_an_issuer_of_ones_own_passes(issuer: str) -> None:
    inputs = provider(None, oidc={"issuerUri": issuer}, workforcePoolId="people")
    assert violations("no-public-invoker", WORKFORCE, inputs) == []


def test_an_identity_provider_of_another_cloud_is_no_pool() -> None:
    inputs = {"url": "https://token.actions.githubusercontent.com", "clientIdLists": ["x"]}
    assert violations("no-public-invoker", "aws:iam/openIdConnectProvider:OpenIdConnectProvider", inputs) == []


def test_the_provider_of_the_pipeline_itself_passes() -> None:
    settings = Settings.model_validate(
        {
            "region": "us-east4", "repository": "acme/shop", "repository_id": "123456789",
            "alert_email": "a@example.com", "billing_account": "012345-6789AB-CDEF01",
        }
    )  # fmt: skip
    inputs = provider(attribute_condition(settings), attributeMapping=attribute_mapping(settings))
    assert violations("no-public-invoker", PROVIDER, inputs) == []


def test_a_pool_of_an_account_of_ones_own_needs_no_repository() -> None:
    assert violations("no-public-invoker", PROVIDER, {"aws": {"accountId": "123456789012"}}) == []
    assert violations("no-public-invoker", PROVIDER, {"saml": {"idpMetadataXml": "<x/>"}}) == []
