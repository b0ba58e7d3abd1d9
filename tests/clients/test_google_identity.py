"""Google's own libraries with the credentials of a federated identity, unmodified."""

import json

import pytest

from bezel.gitops.login import credential_file
from bezel.gitops.login.job_identity import JobTokens
from bezel.gitops.login.settings import LoginSettings
from bezel_localcloud import control
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from localcloud_support.client import PARENT
from localcloud_support.issuer import Issuer
from tests.support.clients import environment, programs
from tests.support.record_results import check_results

pytestmark = [pytest.mark.slow, pytest.mark.clients]
POOLS = f"/iam/v1/{PARENT}/locations/global/workloadIdentityPools"
POOL = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/pipeline"
ACCOUNT = f"pipeline@{PROJECT}.iam.gserviceaccount.com"
BUCKET = "pipeline-states"


@pytest.fixture
def issuer():
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def settings(cloud, issuer):
    """A provider that trusts the issuer, and an account that may read a bucket and write below plans/."""
    cloud.enable("sts")
    cloud.finish("iam/v1", cloud.post(POOLS, {}, workloadIdentityPoolId="pipeline"))
    provider = {
        "attributeMapping": {"google.subject": "assertion.sub", "attribute.repository": "assertion.repository"},
        "attributeCondition": "assertion.repository_id == '12'",
        "oidc": {"issuerUri": issuer.url},
    }
    path = f"{POOLS}/pipeline/providers"
    cloud.finish("iam/v1", cloud.post(path, provider, workloadIdentityPoolProviderId="forge"))
    cloud.account("pipeline")
    member = f"principalSet://iam.googleapis.com/{POOL}/attribute.repository/example/bezel"
    policy = {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]}
    answer = cloud.post(f"/iam/v1/{PARENT}/serviceAccounts/{ACCOUNT}:setIamPolicy", {"policy": policy})
    assert answer.status_code == 200, answer.text
    bucket = {"name": BUCKET, "location": "US-EAST4"}
    assert cloud.post("/storage/v1/b", bucket, project=PROJECT).status_code == 200
    below = f'resource.name.startsWith("projects/_/buckets/{BUCKET}/objects/plans/")'
    us = [f"serviceAccount:{ACCOUNT}"]
    bindings = [
        {"role": "roles/storage.objectViewer", "members": us},
        {"role": "roles/storage.objectCreator", "members": us, "condition": {"title": "plans", "expression": below}},
    ]
    policy = cloud.get(f"/storage/v1/b/{BUCKET}/iam", optionsRequestedPolicyVersion=3).json()
    policy |= {"version": 3, "bindings": [*policy.get("bindings", []), *bindings]}
    assert cloud.put(f"/storage/v1/b/{BUCKET}/iam", policy).status_code == 200
    return LoginSettings(f"{POOL}/providers/forge", ACCOUNT, PROJECT)


def test_google_s_libraries_work_with_the_identity_of_a_job(settings, issuer, endpoint, variables, tmp_path):
    environ = {**control.environment(endpoint), **issuer.environment()}
    tokens = JobTokens.of(environ, settings.token_audience)
    written = credential_file.content(settings, tokens, environ)
    files = {"GOOGLE_APPLICATION_CREDENTIALS": written}
    for variable, changed in {"EXTERNAL_ACCOUNT_FILE": {}, "EXTERNAL_ACCOUNT_REFUSED": {"repository_id": "13"}}.items():
        token = tmp_path / f"{variable}.token"
        token.write_text(issuer.token(settings.token_audience, **changed))
        files[variable] = written | {"credential_source": {"file": str(token)}}
    for variable, content in files.items():
        (tmp_path / f"{variable}.json").write_text(json.dumps(content))
    paths = {variable: str(tmp_path / f"{variable}.json") for variable in files}
    address = {"API_ENDPOINT_OVERRIDE": endpoint.base}
    calls = programs.run(
        [environment.python("storage"), programs.PROGRAMS / "google_identity.py"], variables | address | paths
    )
    programs.assert_served(calls)
    table = programs.table(
        "Clients: federated identities",
        72,
        "google-auth's `identity_pool` credentials with the file of `bezel ci login`, and google-cloud-storage with "
        "them: tokens from an address with headers and from a file, renewed; a job that the condition refuses; "
        "objects inside and outside of what the account may do.",
        "tests/clients/test_google_identity.py",
        calls,
    )
    check_results("clients-identity", table)
