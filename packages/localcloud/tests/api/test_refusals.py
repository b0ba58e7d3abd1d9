"""Refusals of single methods that no other test meets: what is wrong, the status, and a word of the text."""

import base64

import pytest

from bezel_localcloud.access.credentials import keys
from localcloud_support.client import PARENT, REGION, REPOSITORY, RUNTIME, SERVICES, plain

ACCOUNTS = f"/iam/v1/{PARENT}/serviceAccounts"
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
USAGE = f"/serviceusage/v1/{PARENT}/services"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"
SHELF = "/storage/v1/b/kept"
UPLOAD = f"/upload{SHELF}/o"


@pytest.fixture
def filled_cloud(cloud):
    """The client, with a bucket of one object and a secret of one version."""
    cloud.post("/storage/v1/b", {"name": "kept"}, project="bezel-local")
    cloud.http.post(UPLOAD, params={"uploadType": "media", "name": "a"}, content=b"0123")
    cloud.post(SECRETS, {"replication": {"automatic": {}}}, secretId="kept")
    cloud.post(f"{SECRETS}/kept:addVersion", {"payload": {"data": "YQ=="}})
    yield cloud
    cloud.delete(f"{SECRETS}/kept")
    for item in cloud.get(f"{SHELF}/o").json().get("items", []):
        cloud.delete(f"{SHELF}/o/{item['name']}")
    cloud.delete(SHELF)


def message_of(answer):
    return answer.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "path", "query", "body", "status", "word"),
    [
        ("GET", SECRETS, {"pageSize": -1}, None, 400, "page_size -1 is negative"),
        ("GET", SECRETS, {"pageSize": "-1.0"}, None, 400, "page_size -1 is negative"),
        ("GET", SECRETS, {"fields": "a(b"}, None, 400, "Invalid field selection"),
        ("GET", SECRETS, {"alt": "proto"}, None, 400, "responds in JSON only"),
        ("POST", SECRETS, {"secretId": "x"}, {}, 400, "replication is required"),
        ("POST", f"{SECRETS}/kept:addVersion", {}, {"payload": {}}, 400, "between 1 and 65536 bytes"),
        ("POST", f"{SECRETS}/kept:addVersion", {}, {"payload": {"data": "A" * 87_384}}, 400, "between 1 and 65536"),
        (
            "PATCH",
            f"{SECRETS}/kept",
            {"updateMask": "versionAliases"},
            {"versionAliases": {"new": "9"}},
            400,
            "alias 'new'",
        ),
        (
            "PATCH",
            f"{SECRETS}/kept",
            {"updateMask": "versionAliases"},
            {"versionAliases": {"7": "1"}},
            400,
            "alias '7'",
        ),
        ("POST", f"{SECRETS}/kept/versions/latest:disable", {}, {}, 400, "must be a number"),
        ("PATCH", f"{SECRETS}/kept", {"updateMask": "labels"}, {"topics": [{"name": "t"}]}, 400, "topics"),
        ("PATCH", f"{ACCOUNTS}/{RUNTIME}", {}, {"serviceAccount": {}}, 400, "Update mask must be provided"),
        ("POST", f"{USAGE}:batchEnable", {}, {"serviceIds": []}, 400, "Between 1 and 20"),
        ("POST", f"{USAGE}:batchEnable", {}, {"serviceIds": ["run.googleapis.com"] * 21}, 400, "Between 1 and 20"),
        ("POST", f"{USAGE}/run.example.com:enable", {}, {}, 403, "permission denied for service"),
        ("POST", "/storage/v1/b", {"project": "another"}, {"name": "another"}, 400, "Unknown project id"),
        ("PATCH", SHELF, {}, {"storageClass": "WARM"}, 400, "Invalid storage class"),
        ("PATCH", SHELF, {}, {"storageclass": "STANDARD"}, 400, 'Unknown name "storageclass"'),
        ("GET", SHELF, {"ifMetagenerationMatch": "x"}, None, 400, "TYPE_INT64"),
        ("GET", SHELF, {"ifMetagenerationMatch": 9}, None, 412, "pre-conditions"),
        ("PATCH", SHELF, {"ifMetagenerationNotMatch": 1}, {}, 412, "pre-conditions"),
        ("PUT", UPLOAD, {"upload_id": "none"}, None, 404, "No such upload session"),
        ("POST", UPLOAD, {"uploadType": "media"}, {}, 400, "Required parameter: name"),
        ("POST", UPLOAD, {"uploadType": "multipart", "name": "x"}, {}, 400, "two parts"),
        ("POST", UPLOAD, {"uploadType": "resumable"}, {"nme": "x"}, 400, 'Unknown name "nme"'),
        ("PATCH", f"{SERVICES}/absent", {"allowMissing": "true"}, {"template": {}}, 400, "at least one container"),
        ("PATCH", f"/artifactregistry/v1/{REPOSITORY}", {"updateMask": "remoteRepositoryConfig"}, {}, 400, "keeps its"),
        ("POST", REPOSITORIES, {"repositoryId": "x"}, {}, 400, "format is required"),
        ("DELETE", "/localcloud/hold", {"drop": "x"}, None, 400, "TYPE_INT32"),
    ],
)
def test_what_a_method_cannot_do_is_refused_with_the_reason(filled_cloud, verb, path, query, body, status, word):
    answer = filled_cloud.http.request(verb, path, params=query, json=body)
    assert (answer.status_code, word in message_of(answer)) == (status, True), answer.text


@pytest.mark.slow
def test_what_has_not_changed_is_not_sent_again(filled_cloud):
    for path in (SHELF, f"{SHELF}/o/a"):
        current = filled_cloud.get(path).json()["metageneration"]
        answer = filled_cloud.get(path, ifMetagenerationNotMatch=current)
        assert (answer.status_code, answer.content) == (304, b"")
        assert filled_cloud.get(path, ifMetagenerationMatch=current).status_code == 200


@pytest.mark.parametrize("header", ["bytes 0-3", "bytes x-y/4", "bytes 0-5/4", "bytes */x"])
def test_a_range_that_the_whole_does_not_hold_is_refused(filled_cloud, header):
    session = filled_cloud.http.post(UPLOAD, params={"uploadType": "resumable", "name": "b"}).headers["location"]
    assert filled_cloud.http.put(session, content=b"0123", headers={"Content-Range": header}).status_code == 400
    assert filled_cloud.http.put(session, content=b"0123", headers={"Content-Range": "bytes 0-3/4"}).status_code == 200


def test_a_session_keeps_its_condition_until_its_end(filled_cloud):
    opened = filled_cloud.http.post(UPLOAD, params={"uploadType": "resumable", "name": "b", "ifGenerationMatch": 0})
    filled_cloud.http.post(UPLOAD, params={"uploadType": "media", "name": "b"}, content=b"faster")
    late = filled_cloud.http.put(opened.headers["location"], content=b"late")
    assert late.status_code == 412
    assert filled_cloud.get(f"{SHELF}/o/b", alt="media").content == b"faster"


def test_an_alias_names_a_version(filled_cloud):
    body = {"versionAliases": {"stable": "1"}}
    assert filled_cloud.patch(f"{SECRETS}/kept", body, updateMask="versionAliases").json()["versionAliases"] == {
        "stable": "1"
    }
    version = filled_cloud.get(f"{SECRETS}/kept/versions/stable:access").json()
    assert base64.b64decode(version["payload"]["data"]) == b"a"


def test_secrets_and_versions_are_listed_newest_first_by_pages(filled_cloud):
    filled_cloud.post(f"{SECRETS}/kept:addVersion", {"payload": {"data": "YQ=="}})
    first = filled_cloud.get(f"{SECRETS}/kept/versions", pageSize=1).json()
    second = filled_cloud.get(f"{SECRETS}/kept/versions", pageSize=1, pageToken=first["nextPageToken"]).json()
    names = [page["versions"][0]["name"].rpartition("/")[2] for page in (first, second)]
    assert (names, first["totalSize"], "nextPageToken" in second) == (["2", "1"], 2, False)


def test_null_removes_wherever_it_stands(filled_cloud):
    cors = [{"maxAgeSeconds": 5, "method": None, "origin": ["*", None]}, None]
    changed = filled_cloud.patch(SHELF, {"cors": cors, "labels": {"a": "b"}}).json()
    assert (changed["cors"], changed["labels"]) == ([{"maxAgeSeconds": 5, "origin": ["*"]}], {"a": "b"})
    assert filled_cloud.patch(SHELF, {"cors": None, "labels": {"a": None}}).json().keys() & {"cors", "labels"} == {
        "labels"
    }


def test_a_bucket_keeps_what_is_the_platforms_to_set(filled_cloud):
    before = filled_cloud.get(SHELF).json()
    theirs = {"id": "x", "timeCreated": "2020-01-01T00:00:00Z", "metageneration": "77", "location": "EU", "name": "y"}
    after = filled_cloud.patch(SHELF, theirs).json()
    assert {key: after[key] for key in theirs} == {key: before[key] for key in theirs} | {"metageneration": "2"}


@pytest.mark.slow
def test_validate_only_changes_nothing_and_shows_what_would_be(cloud):
    body = {"template": cloud.template()}
    answer = cloud.post(SERVICES, body, serviceId="dry", validateOnly="true").json()
    assert answer["done"]
    assert answer["response"]["name"] == f"{PARENT}/locations/{REGION}/services/dry"
    assert cloud.get(f"{SERVICES}/dry").status_code == 404
    cloud.create("dry", cloud.template())
    cloud.patch(f"{SERVICES}/dry", body | {"description": "new"}, validateOnly="true")
    assert cloud.http.delete(f"{SERVICES}/dry", params={"validateOnly": "true"}).status_code == 200
    assert "description" not in cloud.service("dry")
    cloud.remove("dry")


@pytest.mark.slow
def test_allow_missing_creates_for_who_may_create(cloud):
    body = {"template": cloud.template()}
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/born", body, allowMissing="true"))
    assert cloud.service("born")["generation"] == "1"
    cloud.remove("born")
    # Who may update what there is, and create nothing.
    policy = cloud.post(f"/crm/v1/{PARENT}:getIamPolicy").json()
    condition = {"title": "t", "expression": f'resource.name.startsWith("{SERVICES.removeprefix("/run/v2/")}")'}
    updater = {"role": "roles/run.developer", "members": [f"serviceAccount:{RUNTIME}"], "condition": condition}
    wanted = policy | {"version": 3, "bindings": [*policy["bindings"], updater]}
    assert cloud.post(f"/crm/v1/{PARENT}:setIamPolicy", {"policy": wanted}).status_code == 200
    refused = cloud.as_account(RUNTIME).patch(f"{SERVICES}/born", body, allowMissing="true")
    assert (refused.status_code, "run.services.create" in message_of(refused)) == (403, True)
    cloud.post(f"/crm/v1/{PARENT}:setIamPolicy", {"policy": {"bindings": policy["bindings"]}})


@pytest.mark.slow
def test_a_revisions_name_is_given_once(cloud):
    cloud.create("named", cloud.template(revision="named-blue"))
    again = cloud.patch(f"{SERVICES}/named", {"template": cloud.template("--b", revision="named-blue")})
    assert (again.status_code, "already exists" in message_of(again)) == (409, True)
    cloud.remove("named")


@pytest.mark.slow
def test_a_token_of_another_issuer_or_kind_is_no_token(cloud):
    foreign = keys.sign({"aud": "localcloud:access", "email": RUNTIME, "exp": 4e9}, keys.new_key())
    identity = cloud.identity("localcloud:access")
    for token in (foreign, identity, "nonsense"):
        answer = plain.get(f"{cloud.endpoint.base}/crm/v1/{PARENT}", headers={"Authorization": f"Bearer {token}"})
        reason = answer.json()["error"]["details"][0]["reason"]
        assert (answer.status_code, reason) == (401, "ACCESS_TOKEN_TYPE_UNSUPPORTED")
    bare = plain.get(f"{cloud.endpoint.base}/crm/v1/{PARENT}")
    assert bare.json()["error"]["details"][0]["reason"] == "CREDENTIALS_MISSING"
