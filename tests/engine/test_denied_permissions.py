"""Errors of a run: each once, causes only, and a denied permission with the role that holds it."""

import json

import pytest

from bezel.engine.events.denied_permissions import account_of, missing_roles
from bezel.engine.run.texts import plain_errors

PREVIEW = "pipeline-preview@acme.iam.gserviceaccount.com"
DEPLOY = "pipeline-deploy@acme.iam.gserviceaccount.com"
NOT_REACHED = "expected resource operations for urn:pulumi:dev::p::T::n but none were seen"


def test_a_failure_is_named_once_and_what_it_kept_from_happening_is_not():
    bare = "Error creating Network: googleapi: Error 403: no\nmore"
    logged = f"sdk-v2/provider2.go:571: sdk.helper_schema: {bare}: provider=google-beta@10.2.0"
    listed = f"1 error occurred:\n\t* {bare}"
    assert plain_errors([logged, listed, NOT_REACHED, "another"]) == [bare, "another"]


def test_an_error_without_another_cause_is_kept():
    assert plain_errors([NOT_REACHED]) == [NOT_REACHED]
    two = "2 errors occurred:\n\t* one\n\t* two"
    assert plain_errors([two]) == [two]


STORAGE = (
    f"{DEPLOY} does not have storage.buckets.getIamPolicy access to the Google Cloud Storage bucket. Permission "
    "'storage.buckets.getIamPolicy' denied on resource (or it may not exist)."
)


@pytest.mark.parametrize(
    ("message", "name", "place", "role"),
    [
        (
            "Permission 'run.services.get' denied on resource 'projects/p/x' (or it may not exist).",
            *("run.services.get", "projects/p/x", "bezelDeploy"),
        ),
        (
            "Permission 'iam.serviceaccounts.actAs' denied on service account a@b (or it may not exist).",
            *("iam.serviceaccounts.actAs", "service account a@b", "bezelDeploy"),
        ),
        (
            "Error 403: Required 'compute.networks.create' permission for 'projects/p/global/networks/n', forbidden",
            *("compute.networks.create", "projects/p/global/networks/n", "bezelDeployLeases"),
        ),
        (STORAGE, "storage.buckets.getIamPolicy", "the Google Cloud Storage bucket", "bezelDeployWeights"),
        (
            "Permission 'secretmanager.secrets.setIamPolicy' denied for resource 'projects/p/secrets/s' (or it may no",
            *("secretmanager.secrets.setIamPolicy", "projects/p/secrets/s", "bezelDeploySecrets"),
        ),
        (
            "Permission 'secretmanager.versions.add' denied for resource 'projects/p/secrets/bezel-stack-a-collector'",
            *("secretmanager.versions.add", "projects/p/secrets/bezel-stack-a-collector", "bezelDeployStackSecrets"),
        ),
    ],
)
def test_a_denied_permission_is_named_with_the_role_that_holds_it(message, name, place, role):
    (text,) = missing_roles([message, message], DEPLOY)
    assert text.startswith(f"{name}\n   {DEPLOY} lacks it on {place}, so")
    assert f"the role {role} holds it" in text


def test_the_role_is_one_of_the_account_that_lacks_it():
    message = "Permission 'storage.objects.list' denied on resource 'projects/_/buckets/b' (or it may not exist)."
    (text,) = missing_roles([message], PREVIEW)
    assert (
        "the role bezelPreviewWeights holds it, for what `bezel init` names: run it again with --weights-buck" in text
    )
    (unknown,) = missing_roles([message], "")
    assert "bezelPreviewWeights or bezelDeployWeights" in unknown


@pytest.mark.parametrize(
    ("name", "account", "role"),
    [
        ("compute.globalForwardingRules.create", DEPLOY, "bezelDeployAddresses"),
        ("dns.resourceRecordSets.create", DEPLOY, "bezelDeployRecords"),
        ("certificatemanager.certs.get", PREVIEW, "bezelPreviewAddresses"),
    ],
)
def test_what_an_address_lacks_is_repaired_by_its_domain(name, account, role):
    (text,) = missing_roles([f"Error 403: Permission '{name}' denied on resource 'projects/p/x' (or it may"], account)
    assert f"the role {role} holds it, for what `bezel init` names: run it again with --domain NAME." in text


def test_a_role_with_a_condition_is_granted_by_the_set_up_only():
    message = (
        "Permission 'resourcemanager.projects.setIamPolicy' denied on resource 'projects/p' (or it may not exist)."
    )
    (text,) = missing_roles([message], DEPLOY)
    assert "the role bezelDeployProjectGrants holds it, limited by a condition: run `bezel init` again" in text
    assert "add-iam-policy-binding" not in text


def test_a_permission_of_no_role_is_the_stack_s_own():
    """A permission of no role is said to be the stack's own and other texts name none."""
    (text,) = missing_roles(["Permission 'pubsub.topics.create' denied on resource 'projects/p'"], DEPLOY)
    assert "no role of `bezel init` holds it" in text
    assert missing_roles(["403 Forbidden", "Permission denied on resource project p."], DEPLOY) == []


def test_the_account_is_the_one_that_the_credentials_are_of(tmp_path):
    file = tmp_path / "credentials.json"
    address = f"http://127.0.0.1:1/v1/projects/-/serviceAccounts/{PREVIEW}:generateAccessToken"
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
    file.write_text(json.dumps({"service_account_impersonation_url": address}))
    assert account_of(environ) == PREVIEW
    assert account_of(environ | {"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": DEPLOY}) == DEPLOY
    file.write_text(json.dumps({"client_email": DEPLOY}))
    assert account_of(environ) == DEPLOY
    for content in ("[]", "no JSON", "{}"):
        file.write_text(content)
        assert account_of(environ) == ""
    assert account_of({}) == ""
