"""The table of routes finds what a look through all routes finds, one after the other."""

from urllib.parse import unquote

import pytest
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from bezel_localcloud.routing import batch
from bezel_localcloud.routing.raw_routes import RawRoute
from bezel_localcloud.routing.route_table import RouteTable
from bezel_localcloud.services.artifact_registry import registry
from bezel_localcloud.services.cloud_run import api as run
from bezel_localcloud.services.compute import vpc_api
from bezel_localcloud.services.iam import api as iam
from bezel_localcloud.services.load_balancing import api as load_balancing
from bezel_localcloud.services.storage import service as storage
from bezel_localcloud.services.tpu import api as tpu
from localcloud_support.hostile_requests import hostile_requests
from localcloud_support.in_process import COMPUTE, Project


class Nowhere(BaseRoute):
    """A route that matches nothing."""

    def matches(self, _scope):
        return Match.NONE, {}


async def _respond(_request):
    return Response()


def scope_of(method, raw_path):
    return {"type": "http", "method": method, "path": unquote(raw_path), "raw_path": raw_path.encode(), "headers": []}


def table(*routes):
    return RouteTable(None, Nowhere(), routes, Nowhere(), lambda _: Response(status_code=404))


def looked_up(routes, scope):
    """(route, its parameters) by Starlette's rule: the first whose method and path match."""
    for route in routes:
        match, inner = route.matches(scope)
        if match is Match.FULL:
            return route, inner["path_params"]
    return None


ONE = Route("/a/v1/{name:id}", _respond, methods=["GET"])
LATER = Route("/a/v1/list", _respond, methods=["GET", "POST"])
REST = Route("/a/{rest:path}", _respond, methods=["DELETE"])
RAW = RawRoute("/a/b/{bucket:id}/o/{object:path}", _respond, "GET")
RAW_LIST = RawRoute("/a/b/{bucket:id}/o", _respond, "GET")


@pytest.mark.parametrize(
    ("method", "path", "route", "parameters"),
    [
        ("GET", "/a/v1/list", ONE, {"name": "list"}),
        ("HEAD", "/a/v1/list", ONE, {"name": "list"}),
        ("POST", "/a/v1/list", LATER, {}),
        ("GET", "/a/v1/x%20y", ONE, {"name": "x y"}),
        ("DELETE", "/a/v1/x/y", REST, {"rest": "v1/x/y"}),
        ("GET", "/a/b/s/o/x%2Facl", RAW, {"bucket": "s", "object": "x/acl"}),
        ("GET", "/a/b/s/o/%FF", RAW, {"bucket": "s", "object": "\udcff"}),
        ("GET", "/a/b/s/o", RAW_LIST, {"bucket": "s"}),
        ("PUT", "/a/v1/list", None, None),
        ("GET", "/a/b/s/o/x/acl", None, None),
        ("GET", "/a/v1/x:y", None, None),
        ("GET", "/b/v1/list", None, None),
        ("GET", "", None, None),
    ],
)
def test_the_first_route_that_matches_is_found(method, path, route, parameters):
    scope = scope_of(method, path)
    assert table(ONE, LATER, REST, RAW, RAW_LIST).find(scope) is route
    assert scope.get("path_params") == parameters


def test_the_order_of_routes_counts_between_both_kinds():
    wide = Route("/a/b/{bucket:id}/o/{object:id}", _respond, methods=["GET"])
    assert table(wide, RAW).find(scope_of("GET", "/a/b/s/o/x")) is wide
    assert table(RAW, wide).find(scope_of("GET", "/a/b/s/o/x")) is RAW


@pytest.mark.slow
def test_the_table_agrees_with_a_look_through_all_routes(tmp_path):
    project = Project(tmp_path / "cloud")
    routes = [*registry.routes(project.cloud), *batch.routes(lambda: project.application)]
    routes += [route for module in (run, storage, vpc_api, load_balancing, tpu, iam) for route in module.api.routes]
    made, matches = table(*routes), 0
    for request in hostile_requests(1000):
        scope = scope_of(request.verb, request.path.partition("?")[0])
        expected = looked_up(routes, scope)
        assert (made.find(dict(scope)), request.path) == (expected and expected[0], request.path)
        matches += expected is not None
    project.close()
    assert matches > 300


@pytest.mark.slow
def test_clouds_of_one_process_answer_each_of_its_own_state(tmp_path):
    projects = [Project(tmp_path / name) for name in ("one", "other")]
    projects[0].network("only-here")
    lists = [repr(project.ok("GET", f"{COMPUTE}/global/networks")) for project in projects]
    for project in projects:
        project.close()
    assert ["only-here" in each for each in lists] == [True, False]
