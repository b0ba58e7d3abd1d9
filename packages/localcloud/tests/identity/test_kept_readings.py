"""Tokens and policies are read once and kept; what was withdrawn since is refused by the next request."""

import time

import pytest

from bezel_localcloud.access.credentials import keys
from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.core.paths import DEPLOYER
from localcloud_support.in_process import PARENT, SCOPE, Project

EMAIL = "runner@bezel-local.iam.gserviceaccount.com"
ACCOUNT = f"/iam/v1/{PARENT}/serviceAccounts/{EMAIL}"
BUCKET = "/storage/v1/b/kept-shelf"
VIEWER = "roles/storage.objectViewer"


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path / "cloud")
    new_project.cloud.store.put("api", "iam.googleapis.com", {"state": "ENABLED"})
    new_project.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "runner"})
    new_project.ok("POST", "/storage/v1/b", {"name": "kept-shelf"}, project="bezel-local")
    new_project.raw("POST", "/upload/storage/v1/b/kept-shelf/o?uploadType=media&name=a", b"a")
    new_project.runner = new_project.cloud.tokens.access_token(EMAIL, SCOPE, 3600.0)[0]
    yield new_project
    new_project.close()


def bind(project, *bindings):
    project.ok("PUT", f"{BUCKET}/iam", {"bindings": [{"role": role, "members": who} for role, who in bindings]})


def status(project, token=None):
    headers = {"Authorization": f"Bearer {token or project.runner}"}
    return project.raw("GET", f"{BUCKET}/o/a", headers=headers, token=False).status_code


def test_a_token_fails_while_its_account_is_disabled(project):
    bind(project, (VIEWER, [f"serviceAccount:{EMAIL}"]))
    assert status(project) == status(project) == 200
    project.ok("POST", f"{ACCOUNT}:disable", {})
    assert status(project) == 401
    project.ok("POST", f"{ACCOUNT}:enable", {})
    assert status(project) == 200


def test_a_token_of_a_deleted_account_is_refused(project):
    bind(project, (VIEWER, [f"serviceAccount:{EMAIL}"]))
    assert status(project) == 200
    project.ok("DELETE", ACCOUNT)
    assert status(project) == 401


def test_a_token_is_refused_once_its_time_is_over(project):
    bind(project, (VIEWER, [f"serviceAccount:{EMAIL}"]))
    assert status(project) == 200
    project.passes(3599)
    assert status(project) == 200
    project.passes(1)
    assert status(project) == 401


@pytest.mark.slow
def test_a_token_is_refused_once_its_key_is_gone(project):
    key, now = keys.new_key(), int(project.clock.now())
    row = f"{EMAIL}/{keys.key_id(key)}"
    project.cloud.store.put("key", row, {"publicKeyPem": keys.public_pem(key)})
    claims = {"iss": EMAIL, "sub": EMAIL, "aud": "https://storage.googleapis.com/", "iat": now, "exp": now + 600}
    token = keys.sign(claims, key)
    bind(project, (VIEWER, [f"serviceAccount:{EMAIL}"]))
    assert status(project, token) == status(project, token) == 200
    project.cloud.store.put("key", row, {"publicKeyPem": keys.public_pem(key), "disabled": True})
    assert status(project, token) == 401
    project.cloud.store.put("key", row, {"publicKeyPem": keys.public_pem(keys.new_key())})
    assert status(project, token) == 401
    project.cloud.store.put("key", row, {"publicKeyPem": keys.public_pem(key)})
    assert status(project, token) == 200


@pytest.mark.slow
def test_a_token_verified_with_one_key_is_refused_with_another():
    key, other, now = keys.new_key(), keys.new_key(), time.time()
    token = keys.sign({"exp": now + 60}, key)
    assert keys.verify(token, keys.public_pem(key), now=now) == {"exp": now + 60}
    with pytest.raises(TokenError, match="signature does not fit"):
        keys.verify(token, keys.public_pem(other), now=now)
    head, _, _ = token.rpartition(".")
    with pytest.raises(TokenError, match="signature does not fit"):
        keys.verify(f"{head}.{'A' * 342}", keys.public_pem(key), now=now)


def test_a_policy_that_was_replaced_grants_nothing_more(project):
    bind(project, (VIEWER, [f"serviceAccount:{EMAIL}"]))
    assert status(project) == status(project) == 200
    bind(project, (VIEWER, [f"serviceAccount:{DEPLOYER}"]))
    assert status(project) == 403
    bind(project, (VIEWER, [f"serviceAccount:{EMAIL}"]))
    assert status(project) == 200


def test_a_basic_member_ends_with_the_projects_policy(project):
    policy = f"/crm/v1/{PARENT}"
    before = project.ok("POST", f"{policy}:getIamPolicy", {})
    bind(project, ("roles/storage.objectAdmin", ["projectViewer:bezel-local"]))
    assert status(project) == 403
    bindings = [*before["bindings"], {"role": "roles/viewer", "members": [f"serviceAccount:{EMAIL}"]}]
    project.ok("POST", f"{policy}:setIamPolicy", {"policy": {"bindings": bindings}})
    assert status(project) == 200
    project.ok("POST", f"{policy}:setIamPolicy", {"policy": {"bindings": before["bindings"]}})
    assert status(project) == 403


def test_an_object_policy_ends_with_its_object(project):
    project.ok("PUT", f"{BUCKET}/o/a/iam", {"bindings": [{"role": VIEWER, "members": [f"serviceAccount:{EMAIL}"]}]})
    assert status(project) == 200
    project.raw("POST", "/upload/storage/v1/b/kept-shelf/o?uploadType=media&name=a", b"b")
    assert status(project) == 403
