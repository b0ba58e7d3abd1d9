"""Rights to pull and push: the challenge, tokens by each kind of credentials, permissions of each repository."""

import base64

import pytest

from bezel_localcloud.access.permissions import roles
from localcloud_support.in_process import PARENT
from localcloud_support.registry_harness import APP, CONTENTS, HOST, REPOSITORY, basic, code

HUB = "/v2/docker.io/vllm/vllm-openai"
READ, WRITE, DELETE = (f"artifactregistry.repositories.{what}Artifacts" for what in ("download", "upload", "delete"))


def key_file(registry):
    return registry.cloud.layout.credentials.read_text()


def test_a_client_without_credentials_is_told_where_to_get_a_token(registry):
    ping = registry.send("GET", "/v2/", token="")
    assert code(ping) == (401, "UNAUTHORIZED")
    assert ping.headers["www-authenticate"] == 'Bearer realm="http://127.0.0.1:1/v2/token"'
    assert ping.headers["docker-distribution-api-version"] == "registry/2.0"
    name = APP.removeprefix("/v2/")
    for verb, path, actions in (("GET", "manifests/1", "pull"), ("POST", "blobs/uploads/", "push,pull")):
        answer = registry.send(verb, f"{APP}/{path}", token="")
        challenge = (
            f'Bearer realm="http://127.0.0.1:1/v2/token",service="127.0.0.1:1",scope="repository:{name}:{actions}"'
        )
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["token", "key", "key_base64"])
def test_credentials_are_exchanged_for_a_token_that_pulls(registry, kind):
    registry.image()
    user, password = {
        "token": ("oauth2accesstoken", registry.token),
        "key": ("_json_key", key_file(registry)),
        "key_base64": ("_json_key_base64", base64.b64encode(key_file(registry).encode()).decode()),
    }[kind]
    path = f"/v2/token?service=x&scope=repository:{APP}:pull"
    answer = registry.send("GET", path, authorization=basic(user, password)).json()
    assert answer["expires_in"] == 3600
    assert registry.send("GET", "/v2/", token=answer["token"]).status_code == 200
    assert registry.send("GET", f"{APP}/manifests/1", token=answer["token"]).status_code == 200
    assert registry.send("GET", f"{APP}/manifests/1", authorization=basic(user, password)).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        basic("oauth2accesstoken", "wrong"),
        basic("somebody", "wrong"),
        basic("_json_key", "{}"),
        basic("_json_key", "[]"),
        basic("_json_key", '{"client_email": "deployer@bezel-local.iam.gserviceaccount.com", "private_key": "x"}'),
        basic("_json_key_base64", "%"),
        "Basic \u00ff".encode("latin-1"),
        "Bearer wrong",
        "Other x",
    ],
)
def test_wrong_credentials_are_refused_everywhere(registry, value):
    registry.image()
    for path in ("/v2/token", "/v2/", f"{APP}/manifests/1", f"{HUB}/manifests/v0.32.0"):
        assert code(registry.send("GET", path, authorization=value)) == (401, "UNAUTHORIZED")


@pytest.mark.slow
def test_a_key_of_a_disabled_account_or_one_that_was_removed_gets_no_token(registry):
    value = basic("_json_key", key_file(registry))
    name, row = next(iter(registry.cloud.store.rows("key")))
    registry.cloud.store.delete("key", name)
    assert code(registry.send("GET", "/v2/token", authorization=value)) == (401, "UNAUTHORIZED")
    registry.cloud.store.put("key", name, row)
    assert registry.send("GET", "/v2/token", authorization=value).status_code == 200


def test_an_anonymous_token_pulls_public_images_only(registry):
    registry.image()
    token = registry.send("GET", "/v2/token", token="").json()["token"]
    assert registry.send("GET", "/v2/", token=token).status_code == 200
    assert registry.send("GET", f"{HUB}/manifests/v0.32.0", token=token).status_code == 200
    refused = registry.send("GET", f"{APP}/manifests/1", token=token)
    assert code(refused) == (403, "DENIED")
    assert "Unauthenticated requests do not have permission" in refused.text
    policy = {"bindings": [{"role": "roles/artifactregistry.reader", "members": ["allUsers"]}]}
    registry.ok("POST", f"{CONTENTS}:setIamPolicy", {"policy": policy})
    assert registry.send("GET", f"{APP}/manifests/1", token="").status_code == 200
    assert registry.send("POST", f"{APP}/blobs/uploads/", token=token).status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("reader", {"GET"}),
        ("writer", {"GET", "POST"}),
        ("repoAdmin", {"GET", "POST", "DELETE"}),
        ("admin", {"GET", "POST", "DELETE"}),
        ("none", set()),
    ],
)
def test_each_role_allows_what_its_permissions_say(registry, role, allowed):
    registry.image("1")
    token = registry.account("someone", *([f"artifactregistry.{role}"] if role != "none" else []))
    calls = {
        "GET": ("manifests/1", 200, READ),
        "POST": ("blobs/uploads/", 202, WRITE),
        "DELETE": ("manifests/1", 202, DELETE),
    }
    for verb, (path, status, permission) in calls.items():
        answer = registry.send(verb, f"{APP}/{path}", token=token)
        if verb in allowed:
            assert answer.status_code == status
        else:
            assert code(answer) == (403, "DENIED")
            text = f'Permission "{permission}" denied on resource "{REPOSITORY}" (or it may not exist)'
            assert answer.json()["errors"][0]["message"] == text


def test_a_role_on_one_repository_does_not_open_another(registry):
    registry.repository("other")
    path = f"/v2/{HOST}/bezel-local/other/app"
    registry.image("1", path=path)
    token = registry.account("someone", "artifactregistry.admin")
    registry.image("1")
    assert registry.send("GET", f"{APP}/manifests/1", token=token).status_code == 200
    assert code(registry.send("GET", f"{path}/manifests/1", token=token)) == (403, "DENIED")
    source, digest = path.removeprefix("/v2/"), registry.blob(b"secret", path)
    for query in (f"mount={digest}&from={source}", f"mount={digest}"):
        assert registry.send("POST", f"{APP}/blobs/uploads/?{query}", token=token).status_code == 202
    names = registry.send("GET", "/v2/_catalog", token=token).json()["repositories"]
    assert names == [APP.removeprefix("/v2/")]


def test_another_projects_repository_is_denied_not_missing(registry):
    path = f"/v2/{HOST}/another-project/tools/app"
    assert code(registry.send("GET", f"{path}/manifests/1")) == (403, "DENIED")
    assert code(registry.send("POST", f"{path}/blobs/uploads/")) == (403, "DENIED")


def test_nothing_is_pushed_to_a_public_registry(registry):
    assert code(registry.send("POST", f"{HUB}/blobs/uploads/")) == (403, "DENIED")
    assert code(registry.send("PUT", "/v2/library/haproxy/manifests/1", b"{}")) == (403, "DENIED")


def test_a_disabled_api_refuses_with_its_name(registry):
    registry.image()
    registry.ok("POST", f"/serviceusage/v1/{PARENT}/services/artifactregistry.googleapis.com:disable")
    answer = registry.send("GET", f"{APP}/manifests/1")
    assert code(answer) == (403, "DENIED")
    assert "Artifact Registry API has not been used in project bezel-local" in answer.text


def test_the_catalogue_lists_every_image_under_the_name_that_pulls_it(registry):
    registry.image("1")
    registry.image("1", path=f"/v2/{HOST}/bezel-local/tools/deep/er")
    assert registry.send("GET", "/v2/_catalog", token="").status_code == 401
    names = registry.send("GET", "/v2/_catalog").json()["repositories"]
    assert names == [f"{HOST}/bezel-local/tools/app", f"{HOST}/bezel-local/tools/deep/er"]
    page = registry.send("GET", "/v2/_catalog?n=1")
    assert page.json()["repositories"] == names[:1]
    link = page.headers["link"]
    assert registry.send("GET", link[1 : link.index(">")]).json()["repositories"] == names[1:]
    assert registry.send("GET", f"/v2/_catalog?ns={HOST}").json()["repositories"][0] == "bezel-local/tools/app"
    assert registry.send("GET", "/v2/_catalog?ns=us-docker.pkg.dev").json()["repositories"] == []


def test_a_mirrors_client_names_the_registry_in_the_query(registry):
    digest = registry.image("1")
    path = f"/v2/bezel-local/tools/app/manifests/1?ns={HOST}"
    assert registry.send("GET", path).headers["docker-content-digest"] == digest
    place = registry.send("POST", f"/v2/bezel-local/tools/app/blobs/uploads/?ns={HOST}").headers["location"]
    assert place.endswith(f"?ns={HOST}")
    assert registry.send("PATCH", place, b"x").status_code == 202


def test_artifact_registrys_roles_are_ordered_by_what_they_allow():
    permissions = [set(roles()[f"roles/artifactregistry.{role}"]) for role in ("reader", "writer", "repoAdmin")]
    assert permissions[0] < permissions[1] < permissions[2]
