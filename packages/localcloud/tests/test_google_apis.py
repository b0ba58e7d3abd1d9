"""The Google APIs beside Cloud Run: resources, policies, refusals in Google's shape."""

import base64

import pytest

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.files.checksums import crc32c
from bezel_localcloud.http.messages import checked_message
from localcloud_support.client import APIS, PARENT, RUNTIME, plain

ACCOUNTS = f"/iam/v1/{PARENT}/serviceAccounts"
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/us-east4/repositories"
USAGE = f"/serviceusage/v1/{PARENT}/services"


def refusal(answer):
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    return answer.status_code, error["status"]


def test_an_api_is_refused_until_it_is_enabled_and_after_it_is_disabled(cloud):
    cloud.finish("serviceusage/v1", cloud.post(f"{USAGE}/secretmanager.googleapis.com:disable"))
    answer = cloud.get(SECRETS)
    assert refusal(answer) == (403, "PERMISSION_DENIED")
    detail = answer.json()["error"]["details"][0]
    assert detail["reason"] == "SERVICE_DISABLED"
    assert detail["metadata"]["service"] == "secretmanager.googleapis.com"
    operation = cloud.finish("serviceusage/v1", cloud.post(f"{USAGE}/secretmanager.googleapis.com:enable"))
    assert operation["response"]["service"]["state"] == "ENABLED"
    assert cloud.get(SECRETS).status_code == 200


def test_enabled_services_are_listed_by_pages(cloud):
    names, token = [], ""
    while True:
        page = cloud.get(USAGE, filter="state:ENABLED", pageSize=3, pageToken=token).json()
        names += [service["config"]["name"] for service in page["services"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert names == sorted(set(names))
    assert {f"{name}.googleapis.com" for name in APIS} < set(names)
    # Another test on this cloud may have enabled it.
    tpu = cloud.get(f"{USAGE}/tpu.googleapis.com").json()
    assert (tpu["config"]["name"] in names) == (tpu["state"] == "ENABLED")


def test_only_the_fields_that_are_asked_for_are_answered(cloud):
    page = cloud.get(USAGE, fields="services/name,nextPageToken", pageSize=1).json()
    assert (set(page), [set(service) for service in page["services"]]) == ({"services", "nextPageToken"}, [{"name"}])


def test_an_account_is_made_once_changed_by_mask_and_gone_when_deleted(cloud):
    email = cloud.account("short-lived")
    again = cloud.post(ACCOUNTS, {"accountId": "short-lived"})
    assert refusal(again) == (409, "ALREADY_EXISTS")
    body = {
        "serviceAccount": {"displayName": "new", "description": "not named by the mask"},
        "updateMask": "display_name",
    }
    assert cloud.patch(f"{ACCOUNTS}/{email}", body).json()["displayName"] == "new"
    shown = cloud.get(f"{ACCOUNTS}/{email}").json()
    assert "description" not in shown
    assert shown["name"] == f"{PARENT}/serviceAccounts/{email}"
    assert cloud.delete(f"{ACCOUNTS}/{email}").json() == {}
    assert refusal(cloud.get(f"{ACCOUNTS}/{email}")) == (404, "NOT_FOUND")


@pytest.mark.parametrize("name", ["short", "Has-Capitals", "ends-with-", "x" * 31])
def test_an_account_id_has_its_form(cloud, name):
    assert refusal(cloud.post(ACCOUNTS, {"accountId": name})) == (400, "INVALID_ARGUMENT")


def test_a_policy_written_with_a_stale_etag_is_refused(cloud):
    path = f"/crm/v1/{PARENT}"
    policy = cloud.post(f"{path}:getIamPolicy").json()
    role = {"role": "roles/logging.logWriter", "members": [f"serviceAccount:{RUNTIME}"]}
    wanted = {"policy": policy | {"bindings": [*policy["bindings"], role]}}
    written = cloud.post(f"{path}:setIamPolicy", wanted)
    assert written.status_code == 200
    assert refusal(cloud.post(f"{path}:setIamPolicy", wanted)) == (409, "ABORTED")
    back = {"policy": policy | {"etag": written.json()["etag"]}}
    assert cloud.post(f"{path}:setIamPolicy", back).json()["bindings"] == policy["bindings"]


@pytest.mark.parametrize(
    ("role", "member", "message"),
    [
        ("roles/run.invokr", f"serviceAccount:{RUNTIME}", "is not supported"),
        ("roles/run.invoker", "serviceAccount:nobody@bezel-local.iam.gserviceaccount.com", "does not exist"),
        ("roles/run.invoker", "somebody@example.com", "unknown type"),
    ],
)
def test_a_policy_with_an_unknown_role_or_member_is_refused(cloud, role, member, message):
    policy = cloud.post(f"/crm/v1/{PARENT}:getIamPolicy").json()
    bindings = [*policy["bindings"], {"role": role, "members": [member]}]
    answer = cloud.post(f"/crm/v1/{PARENT}:setIamPolicy", {"policy": policy | {"bindings": bindings}})
    assert refusal(answer) == (400, "INVALID_ARGUMENT")
    assert message in answer.json()["error"]["message"]


@pytest.mark.slow
def test_a_deleted_accounts_grants_do_not_pass_to_its_namesake(cloud):
    email = cloud.account("namesake")
    cloud.post(SECRETS, {"replication": {"automatic": {}}}, secretId="named")
    cloud.grant(f"{SECRETS}/named", "roles/secretmanager.viewer", f"serviceAccount:{email}")
    assert cloud.as_account(email).get(f"{SECRETS}/named").status_code == 200
    cloud.delete(f"{ACCOUNTS}/{email}")
    cloud.account("namesake")
    assert cloud.as_account(email).get(f"{SECRETS}/named").status_code == 403
    members = cloud.get(f"{SECRETS}/named:getIamPolicy").json()["bindings"][0]["members"]
    assert members[0].startswith(f"deleted:serviceAccount:{email}?uid=")
    # The policy can still be written: a deleted member is no obstacle.
    cloud.grant(f"{SECRETS}/named", "roles/secretmanager.viewer", f"serviceAccount:{RUNTIME}")
    cloud.delete(f"{SECRETS}/named")
    cloud.delete(f"{ACCOUNTS}/{email}")


@pytest.mark.slow
def test_a_secrets_versions_come_and_go_and_only_access_shows_the_payload(cloud):
    cloud.post(SECRETS, {"replication": {"automatic": {}}, "labels": {"a": "b"}}, secretId="versions")
    for text in (b"one", b"two"):
        body = {"payload": {"data": base64.b64encode(text).decode()}}
        assert cloud.post(f"{SECRETS}/versions:addVersion", body).json()["state"] == "ENABLED"
    latest = cloud.get(f"{SECRETS}/versions/versions/latest:access").json()
    assert latest["name"] == "projects/123456789012/secrets/versions/versions/2"
    assert base64.b64decode(latest["payload"]["data"]) == b"two"
    assert int(latest["payload"]["dataCrc32c"]) == crc32c(b"two")
    cloud.post(f"{SECRETS}/versions/versions/2:disable")
    assert refusal(cloud.get(f"{SECRETS}/versions/versions/latest:access")) == (400, "FAILED_PRECONDITION")
    cloud.post(f"{SECRETS}/versions/versions/2:destroy")
    assert refusal(cloud.post(f"{SECRETS}/versions/versions/2:enable")) == (400, "FAILED_PRECONDITION")
    assert "payload" not in str(cloud.get(f"{SECRETS}/versions/versions").json())
    changed = cloud.patch(f"{SECRETS}/versions", {"labels": {"c": "d"}}, updateMask="labels").json()
    assert changed["labels"] == {"c": "d"}
    cloud.delete(f"{SECRETS}/versions")
    assert refusal(cloud.get(f"{SECRETS}/versions/versions/1:access")) == (404, "NOT_FOUND")


def test_a_payload_that_does_not_match_its_checksum_is_refused(cloud):
    cloud.post(SECRETS, {"replication": {"automatic": {}}}, secretId="checked")
    data = base64.b64encode(b"payload").decode()
    wrong = cloud.post(f"{SECRETS}/checked:addVersion", {"payload": {"data": data, "dataCrc32c": "1"}})
    assert refusal(wrong) == (400, "INVALID_ARGUMENT")
    right = {"payload": {"data": data, "dataCrc32c": str(crc32c(b"payload"))}}
    assert cloud.post(f"{SECRETS}/checked:addVersion", right).json()["clientSpecifiedPayloadChecksum"] is True
    cloud.delete(f"{SECRETS}/checked")


def test_a_payload_of_the_wrong_type_is_refused_without_being_shown(cloud):
    for payload in ({"data": ["planted"]}, {"data": {"x": "planted"}}, "planted", {"planted": 1}):
        answer = cloud.post(f"{SECRETS}/any:addVersion", {"payload": payload})
        assert answer.status_code == 400
        assert payload == {"planted": 1} or "planted" not in answer.text


def test_crc32c_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_a_repository_is_changed_by_mask_and_its_mode_must_fit(cloud):
    body = {"format": "DOCKER", "description": "one"}
    operation = cloud.finish("artifactregistry/v1", cloud.post(REPOSITORIES, body, repositoryId="plain"))
    assert operation["response"]["registryUri"] == "us-east4-docker.pkg.dev/bezel-local/plain"
    assert refusal(cloud.post(REPOSITORIES, body, repositoryId="plain")) == (409, "ALREADY_EXISTS")
    changed = cloud.patch(
        f"{REPOSITORIES}/plain", {"description": "two", "labels": {"x": "y"}}, updateMask="description"
    )
    assert (changed.json()["description"], "labels" in changed.json()) == ("two", False)
    remote = body | {"mode": "REMOTE_REPOSITORY"}
    assert refusal(cloud.post(REPOSITORIES, remote, repositoryId="remote")) == (400, "INVALID_ARGUMENT")
    cloud.finish("artifactregistry/v1", cloud.delete(f"{REPOSITORIES}/plain"))
    assert refusal(cloud.get(f"{REPOSITORIES}/plain")) == (404, "NOT_FOUND")


def test_the_registry_serves_bytes_whose_hash_is_their_digest(cloud):
    import hashlib

    url = f"{cloud.endpoint.base}/v2/vllm/vllm-openai/manifests"
    answer = plain.get(f"{url}/v0.32.0?ns=docker.io")
    digest = "sha256:" + hashlib.sha256(answer.content).hexdigest()
    assert answer.headers["docker-content-digest"] == digest
    assert answer.headers["content-type"] == answer.json()["mediaType"]
    assert plain.get(f"{url}/{digest}?ns=docker.io").content == answer.content
    part = answer.json()["manifests"][0]["digest"]
    assert plain.head(f"{url}/{part}?ns=docker.io").headers["docker-content-digest"] == part
    for unknown in (f"{url}/v0.1.0", f"{url}/v0.32.0?ns=quay.io", url.replace("openai", "openal") + "/v0.32.0"):
        missing = plain.get(unknown)
        assert (missing.status_code, missing.json()["errors"][0]["code"]) == (404, "MANIFEST_UNKNOWN")


def test_artifact_registrys_images_need_a_token(cloud):
    url = f"{cloud.endpoint.base}/v2/bezel-local/hub/vllm/vllm-openai/manifests/v0.32.0"
    query = {"ns": "us-east4-docker.pkg.dev"}
    token = cloud.http.headers["Authorization"].partition(" ")[2]
    login = base64.b64encode(f"oauth2accesstoken:{token}".encode()).decode()
    for header, status in ((None, 401), ("Basic a", 401), ("Bearer a", 401), (f"Basic {login}", 200)):
        headers = {"Authorization": header} if header else {}
        assert plain.get(url, params=query, headers=headers).status_code == status
    assert cloud.get(url, **query).headers["docker-content-digest"] == cloud.digest()


def test_a_project_that_is_not_this_one_is_refused(cloud):
    assert cloud.get("/crm/v1/projects/bezel-local").json()["projectNumber"] == "123456789012"
    assert refusal(cloud.get("/crm/v1/projects/another")) == (403, "PERMISSION_DENIED")
    # Compute Engine says so in its older shape.
    another = cloud.get("/compute/v1/projects/another")
    assert (another.status_code, another.json()["error"]["errors"][0]["reason"]) == (403, "forbidden")
    assert cloud.get("/compute/beta/projects/123456789012").json()["name"] == "bezel-local"


def test_a_page_size_that_is_no_number_is_refused(cloud):
    assert refusal(cloud.get(USAGE, pageSize="many")) == (400, "INVALID_ARGUMENT")


def test_what_is_no_method_is_not_found_and_no_json_is_invalid(cloud):
    assert refusal(cloud.get("/run/v2/nothing")) == (404, "NOT_FOUND")
    broken = cloud.http.post(SECRETS, content=b"{", params={"secretId": "x"})
    assert refusal(broken) == (400, "INVALID_ARGUMENT")


def test_names_in_snake_case_are_taken_as_googles_and_null_is_absent():
    body = {"cleanup_policy_dry_run": True, "description": None, "format": "DOCKER"}
    assert checked_message(body, "artifactregistry.Repository", "repository") == {
        "cleanupPolicyDryRun": True,
        "format": "DOCKER",
    }
    with pytest.raises(ApiError, match="TYPE_BOOL"):
        checked_message({"cleanupPolicyDryRun": "yes"}, "artifactregistry.Repository", "repository")
