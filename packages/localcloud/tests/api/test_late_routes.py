"""A route that compiles its pattern late is Starlette's own route otherwise."""

import pytest
from starlette.routing import Match, Route

import bezel_localcloud.routing.router  # noqa: F401 - registers the kind "id"
from bezel_localcloud.routing.raw_routes import LateRoute

PATHS = [
    "/tokens",
    "/run/v2/projects/{project:id}/locations/{location}/services",
    "/run/v2/{name:path}:cancel",
    "/v1.beta/items/{item:int}/{rest:path}",
]


async def respond(request):
    raise NotImplementedError(request.url.path)


def scope(path):
    return {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}


@pytest.mark.parametrize("path", PATHS)
def test_late_route_has_the_attributes_of_starlettes(path):
    late, plain = LateRoute(path, respond, "GET"), Route(path, respond, methods=["GET"])
    assert late.path_regex.pattern == plain.path_regex.pattern
    for name in ("path", "path_format", "param_convertors", "methods", "name", "endpoint"):
        assert getattr(late, name) == getattr(plain, name)


def test_late_route_matches_with_its_parameters():
    match, inner = LateRoute("/v1/{project:id}/x/{number:int}", respond, "GET").matches(scope("/v1/p/x/7"))
    assert match is Match.FULL
    assert inner["path_params"] == {"project": "p", "number": 7}


@pytest.mark.parametrize("path", ["/v1/p/x/seven", "/v1/p/x", "/v1/p/x/7/8", "/v2/p/x/7"])
def test_late_route_leaves_other_paths_alone(path):
    assert LateRoute("/v1/{project:id}/x/{number:int}", respond, "GET").matches(scope(path))[0] is Match.NONE
