"""Over every route: a malformed token is refused as no token, and never a server error."""

import base64

import pytest

from bezel_localcloud.http.methods import served_methods
from localcloud_support.in_process import PARENT, Project
from localcloud_support.registry_harness import APP, Registry

TOKENS = [
    "a",
    "a.b.c",
    "W10.W10.W10",
    "e30.e30.e30",
    "e30.e30.=",
    "eyJhIjoiXHVkODAwIn0.e30.e30",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjF9.e30",
    "eyJhbGciOiJub25lIn0.e30.",
    "a." * 1000,
    "9" * 5000,
    "\u00b2.\u00e9.\u00ff",
]
FORM = {"content-type": "application/x-www-form-urlencoded"}
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Registry(tmp_path_factory.mktemp("tokens") / "cloud")
    new_project.cloud.store.put("api", "sts.googleapis.com", {"state": "ENABLED"})
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield new_project
    new_project.close()


def bearer(token):
    return {"Authorization": b"Bearer " + token.encode("latin-1")}


ROUTES = sorted({(method.http, method.path) for method in served_methods().values()})
OTHERS = [
    ("GET", "/shelf"),
    ("PUT", "/shelf/a"),
    ("POST", "/shelf/a?uploads"),
    ("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a"),
    ("GET", "/download/storage/v1/b/shelf/o/a?alt=media"),
    ("GET", f"{APP}/tags/list"),
    ("POST", f"{APP}/blobs/uploads/"),
    ("GET", "/v2/token"),
    ("GET", "/v2/_catalog"),
    ("GET", "/localcloud/faults"),
]


@pytest.mark.slow
def test_a_malformed_token_is_refused_by_every_route(project):
    """A token of the project's own passes the same door on each, so that the refusal is the token's."""
    places = [(verb, path.replace("projects/{}", PARENT).replace("{}", "a")) for verb, path in ROUTES] + OTHERS
    wrong, refused, asked = [], 0, 0
    for number, (verb, path) in enumerate(places):
        for token in (TOKENS[number % len(TOKENS)], TOKENS[(number + 5) % len(TOKENS)]):
            asked += 1
            status = project.raw(verb, path, b"{}", bearer(token)).status_code
            refused += status == 401
            if status not in {400, 401, 404}:  # a path of no resource, or of another verb, has no door
                wrong.append((verb, path, token[:20], status))
        if project.raw(verb, path, b"{}").status_code == 401:
            wrong.append((verb, path, "own", 401))
    assert wrong == []
    assert refused > 0.95 * asked > 400


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(("verb", "path"), OTHERS)
def test_a_malformed_token_is_refused_beside_the_methods(project, verb, path, token):
    assert project.raw(verb, path, b"", bearer(token)).status_code == 401


@pytest.mark.parametrize("token", [*TOKENS, ""])
def test_a_malformed_assertion_is_no_server_error(project, token):
    for path, name in (("/token", "assertion"), ("/sts/v1/token", "subject_token")):
        form = f"grant_type={GRANT}&{name}={token}".encode("latin-1")
        assert project.raw("POST", path, form, FORM, token=False).status_code == 400


@pytest.mark.parametrize(
    "value",
    ["Basic", "Basic !", "Basic " + "A" * 5001, "basic " + base64.b64encode(b"_json_key:{").decode(), "Bearer", "x y z"]
    + ["Basic " + base64.b64encode(b"_json_key:" + text).decode() for text in (b"[]", b'{"private_key":1}', b"\xff")],
)
def test_malformed_credentials_of_a_registry_are_refused(project, value):
    assert project.send("GET", f"{APP}/tags/list", authorization=value).status_code == 401
    assert project.send("GET", f"{APP}/tags/list").status_code == 404


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("name", ["access_token", "oauth_token"])
def test_a_malformed_token_in_a_query_is_refused(project, name, token):
    path = f"/storage/v1/b/shelf?{name}={base64.urlsafe_b64encode(token.encode()).decode().rstrip('=')}"
    assert project.raw("GET", path, token=False).status_code == 401
    assert Project.raw(project, "GET", f"/storage/v1/b/shelf?{name}={project.token}", token=False).status_code == 200
