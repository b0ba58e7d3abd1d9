"""The port for clients that send no credentials: their requests are the deployer's, no other's are; short paths."""

import asyncio
from urllib.parse import unquote

import httpx
import pytest

from bezel_localcloud.http.emulator import EmulatorMiddleware
from localcloud_support.in_process import Project, run


def authorizations_of(*requests, lifetime=3600.0):
    """The Authorization that an application gets with each of some requests, given by their headers and query."""
    made, got = [], []

    async def application(scope, _, __):
        got.append([value.decode() for name, value in scope["headers"] if name == b"authorization"])

    def token():
        made.append(None)
        return f"token-{len(made)}", 4_000_000_000.0 if lifetime else 0.0

    async def main():
        middleware = EmulatorMiddleware(application, token)
        for headers, query in requests:
            scope = {"type": "http", "headers": headers, "query_string": query, "path": "/x", "raw_path": b"/x"}
            await middleware(scope, None, None)

    asyncio.run(main())
    return got


def test_a_request_without_credentials_gets_a_token_which_is_made_once():
    assert authorizations_of(([], b""), ([(b"host", b"x")], b"alt=json")) == [["Bearer token-1"], ["Bearer token-1"]]


def test_an_expired_token_is_replaced():
    assert authorizations_of(([], b""), ([], b""), lifetime=0.0) == [["Bearer token-1"], ["Bearer token-2"]]


@pytest.mark.parametrize("query", [b"X-Goog-Algorithm=a&X-Goog-Signature=1", b"Signature=x", b"access_token=x"])
def test_a_request_with_credentials_in_its_url_is_left_alone(query):
    assert authorizations_of(([], query)) == [[]]


def test_a_request_with_a_token_keeps_it():
    assert authorizations_of(([(b"authorization", b"Bearer mine")], b"")) == [["Bearer mine"]]


def path_reached(raw):
    """(path, raw path) at which an application gets a request."""
    got = []

    async def application(scope, _, __):
        got.append((scope["path"], scope["raw_path"].decode()))

    middleware = EmulatorMiddleware(application, lambda: ("token", 4_000_000_000.0))
    scope = {"type": "http", "headers": [], "query_string": b"", "path": unquote(raw), "raw_path": raw.encode()}
    asyncio.run(middleware(scope, None, None))
    return got[0]


# Paths of the Node.js library, which takes the variable for the JSON API's address; and those it calls in full.
@pytest.mark.parametrize(
    "path",
    ["/b", "/b/shelf", "/b/shelf/o", "/b/shelf/o/a%2Fb", "/b/shelf/iam/testPermissions",
     "/b/shelf/o/x/rewriteTo/b/s/o/y", "/projects/p/serviceAccount",
     "/projects/p/hmacKeys", "/projects/p/hmacKeys/k", "/b/shelf/notificationConfigs"],
)  # fmt: skip
def test_a_short_path_is_one_of_the_json_api(path):
    assert path_reached(path) == (f"/storage/v1{unquote(path)}", f"/storage/v1{path}")


@pytest.mark.parametrize(
    "path",
    ["/upload/storage/v1/b/shelf/o", "/resumable/upload/storage/v1/b/shelf/o", "/download/storage/v1/b/shelf/o/x",
     "/storage/v1/b", "/bucket/x", "/bb", "/projects/serviceAccount", "/projects/a/b/serviceAccount",
     "/projects/p/other", "/batch/storage/v1", "/"],
)  # fmt: skip
def test_another_path_is_left_alone(path):
    assert path_reached(path) == (path, path)


def test_only_the_emulator_port_serves_short_paths(tmp_path):
    project = Project(tmp_path / "cloud")
    try:
        project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
        assert project.raw("GET", "/b/shelf").status_code in {400, 404}
        app = EmulatorMiddleware(project.cloud.application(), lambda: (project.token, 4_000_000_000.0))

        async def send(verb, path, content=b""):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=project.cloud.base) as client:
                return await client.request(verb, path, content=content)

        assert run(send("GET", "/b/shelf")).json()["name"] == "shelf"
        opened = run(send("POST", "/upload/storage/v1/b/shelf/o?uploadType=resumable&name=a/b", b"{}"))
        session = opened.headers["location"].removeprefix(project.cloud.base)
        assert run(send("PUT", session, b"content")).json()["size"] == "7"
        assert run(send("GET", "/b/shelf/o/a%2Fb?alt=media")).content == b"content"
        assert run(send("GET", "/shelf/a/b")).content == b"content"
        assert "storage.notifications.insert" in run(send("POST", "/b/shelf/notificationConfigs", b"{}")).text
    finally:
        project.close()
