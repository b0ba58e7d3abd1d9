"""Keys of service accounts: a key that is made signs as its account until it is disabled or deleted."""

import base64
import json
from urllib.parse import urlencode

import pytest

from bezel_localcloud.access.credentials import keys
from localcloud_support.in_process import PARENT, Project

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EMAIL = "runner@bezel-local.iam.gserviceaccount.com"
KEYS = f"/iam/v1/{PARENT}/serviceAccounts/{EMAIL}/keys"


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    new_project.cloud.store.put("api", "iam.googleapis.com", {"state": "ENABLED"})
    new_project.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "runner"})
    yield new_project
    new_project.close()


def signs_in(project, content):
    """Whether an access token is given for what a key signs."""
    now = int(project.clock.now())
    claims = {"iss": EMAIL, "scope": "s", "aud": f"{project.cloud.base}/token", "iat": now, "exp": now + 600}
    assertion = keys.sign(claims, keys.load_private(content["private_key"]))
    form = urlencode({"grant_type": GRANT, "assertion": assertion}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return project.raw("POST", "/token", form, headers, token=False).is_success


@pytest.mark.slow
def test_a_key_signs_as_its_account_until_it_is_disabled_or_deleted(project):
    assert project.ok("GET", KEYS) == {}
    made = project.ok("POST", KEYS, {})
    content = json.loads(base64.b64decode(made["privateKeyData"]))
    assert content["client_email"] == EMAIL
    assert signs_in(project, content)
    (listed,) = project.ok("GET", KEYS, keyTypes="USER_MANAGED")["keys"]
    assert (listed["name"], listed["keyType"]) == (made["name"], "USER_MANAGED")
    assert "privateKeyData" not in listed
    assert project.ok("GET", KEYS, keyTypes="SYSTEM_MANAGED") == {}
    one = f"/iam/v1/{made['name']}"
    project.ok("POST", f"{one}:disable", {})
    assert (project.ok("GET", one)["disabled"], signs_in(project, content)) == (True, False)
    project.ok("POST", f"{one}:enable", {})
    assert signs_in(project, content)
    project.ok("DELETE", one)
    assert not signs_in(project, content)
    project.refusal(404, "GET", one)


@pytest.mark.slow
def test_the_keys_of_a_deleted_account_are_gone(project):
    content = json.loads(base64.b64decode(project.ok("POST", KEYS, {})["privateKeyData"]))
    project.ok("DELETE", KEYS.removesuffix("/keys"))
    project.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "runner"})
    assert project.ok("GET", KEYS) == {}
    assert not signs_in(project, content)


def test_a_key_of_another_type_and_one_too_many_are_refused(project):
    project.refusal(400, "POST", KEYS, {"privateKeyType": "TYPE_PKCS12_FILE"})
    row = {"publicKeyPem": "", "validAfterTime": "2026-01-01T00:00:00Z"}
    for number in range(10):
        project.cloud.store.put("key", f"{EMAIL}/{number}", row)
    project.refusal(400, "POST", KEYS, {})
