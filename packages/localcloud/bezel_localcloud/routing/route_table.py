"""Table of all routes: the one that serves a request is found in one step, however many there are.

Routes whose paths begin with the same segment are alternatives of one regular expression a method, in their order: the
first that matches serves the request, as in Starlette's own router, which tries one after the other. Leaves out what a
route does, and requests that none serves (unknown_methods.py).
"""

import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from bezel_localcloud.http.api_request import ApiRequest
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.raw_routes import Form, LateRoute

_NAME = re.compile(r"\(\?P<\w+>")


class _Group(NamedTuple):
    """Routes of one method and first segment, by their positions in the whole order."""

    positions: tuple[int, ...]
    patterns: tuple[str, ...]


_Groups = dict[tuple[str, str], _Group]


class RouteTable:
    """ASGI application of a list of routes, of which each begins with a segment without parameters.

    Attributes:
        cloud: The project's state, which the endpoints of APIs find here: clouds of a process share them.
    """

    def __init__(
        self,
        cloud: Context,
        before: BaseRoute,
        routes: Sequence[Route],
        after: BaseRoute,
        missing: Callable[[Request], Response],
    ) -> None:
        """Make the table.

        Args:
            cloud: The project's state.
            before: A route that is tried before all others.
            routes: The routes in their order.
            after: A route that is tried where none of them matches.
            missing: Responds where no route matches.
        """
        self.cloud = cloud
        self._before, self._routes, self._after, self._missing = before, routes, after, missing
        self._decoded, self._raw = _groups(tuple(map(_form, routes)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the endpoint of its route."""
        if scope["type"] != "http":
            return
        scope["app"] = self
        route = self._at_edge(self._before, scope) or self.find(scope) or self._at_edge(self._after, scope)
        if isinstance(route, Route):
            response = await route.endpoint(ApiRequest(scope, receive, send))
        elif route is not None:
            await route.handle(scope, receive, send)
            return
        else:
            response = self._missing(ApiRequest(scope, receive, send))
        await response(scope, receive, send)

    @staticmethod
    def _at_edge(route: BaseRoute, scope: Scope) -> BaseRoute | None:
        match, inner = route.matches(scope)
        scope.update(inner)
        return route if match is Match.FULL else None

    def find(self, scope: Scope) -> Route | None:
        """Return the route of a request, with its parameters in the scope; None where none matches."""
        method, path = scope["method"], scope["path"]
        place = _position(self._decoded.get((method, _first_segment(path))), path)
        raw_path = scope["raw_path"].decode("latin-1")
        if (group := self._raw.get((method, _first_segment(raw_path)))) is not None:
            positions = [place, _position(group, raw_path)]
            place = min((position for position in positions if position is not None), default=None)
        if place is None:
            return None
        route = self._routes[place]
        scope.update(route.matches(scope)[1])
        return route


def _form(route: Route) -> Form:
    if isinstance(route, LateRoute):
        return route.form
    return Form(False, route.path, route.path_regex.pattern, frozenset(route.methods or ()))


@functools.cache
def _groups(forms: tuple[Form, ...]) -> tuple[_Groups, _Groups]:
    """The groups of decoded paths, and of paths as they were sent: the same for each cloud of a process."""
    by_kind: tuple[dict[tuple[str, str], list[int]], dict[tuple[str, str], list[int]]] = ({}, {})
    for position, (is_raw, path, _, methods) in enumerate(forms):
        for method in methods:
            by_kind[is_raw].setdefault((method, _first_segment(path)), []).append(position)

    def group(positions: list[int], end: str) -> _Group:
        return _Group(tuple(positions), tuple(forms[position].pattern + end for position in positions))

    decoded, raw = by_kind
    return {key: group(at, "") for key, at in decoded.items()}, {key: group(at, r"\Z") for key, at in raw.items()}


def _first_segment(path: str) -> str:
    return path.split("/", 2)[1] if path.startswith("/") else ""


def _position(group: _Group | None, path: str) -> int | None:
    """Position of the first route of a group that a path matches."""
    match = _alternatives(group.patterns).match(path) if group else None
    return group.positions[int(match.lastgroup[1:])] if group and match and match.lastgroup else None


@functools.cache
def _alternatives(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression of some patterns, whose group `r<n>` is the n-th; made when a request first needs it."""
    return re.compile("|".join(f"(?P<r{n}>{_NAME.sub('(?:', pattern)})" for n, pattern in enumerate(patterns)))
