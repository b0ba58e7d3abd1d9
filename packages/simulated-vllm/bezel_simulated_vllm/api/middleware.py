"""Middleware around the routes: API keys, headers on every response, counters.

`--api-key` guards /v1, /v2, /inference and /cohere only, as in the real server: /invocations needs no key.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel_simulated_vllm.api.errors import json_response
from bezel_simulated_vllm.release import answering_release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_GUARDED = ("/v1", "/v2", "/inference", "/cohere")
_UNCOUNTED = {"/health", "/load", "/ping", "/version", "/server_info"}


class RefuseUpgrades:
    """Refuses to become a websocket on every path, as a server without such a route does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection's request."""
        headers = dict(scope.get("headers") or [])
        if scope["type"] == "http" and headers.get(b"upgrade", b"").lower() == b"websocket":
            refusal = Response(status_code=403, headers={"connection": "close"}, media_type="text/plain")
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


class OfRelease:
    """Answers each request as a server of that release."""

    def __init__(self, app: ASGIApp, release: str) -> None:
        self._app = app
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection's request."""
        answering_release.set(self._release)
        await self._app(scope, receive, send)


class AddHeader:
    """Adds a header to every response."""

    def __init__(self, app: ASGIApp, header: Callable[[Scope], tuple[bytes, bytes]]) -> None:
        self._app = app
        self._header = header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection's request."""
        header = self._header(scope)

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], header]
            await send(message)

        await self._app(scope, receive, with_header)


def request_id(scope: Scope) -> tuple[bytes, bytes]:
    """Return the header of `--enable-request-id-headers`: the client's X-Request-Id, or a new one."""
    value = dict(scope.get("headers") or []).get(b"x-request-id")
    return b"x-request-id", value or secrets.token_hex(16).encode()


class RequireKey:
    """Requires a bearer key on the guarded paths."""

    def __init__(self, app: ASGIApp, keys: tuple[str, ...]) -> None:
        self._app = app
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection's request."""
        if scope["type"] == "http" and scope["method"] != "OPTIONS" and scope["path"].startswith(_GUARDED):
            credentials = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            scheme, _, key = credentials.partition(" ")
            digest = hashlib.sha256(key.encode()).digest()
            if scheme.lower() != "bearer" or not any(hmac.compare_digest(digest, expected) for expected in self._keys):
                await json_response({"error": "Unauthorized"}, 401)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Count:
    """Counts requests, their sizes and their durations by route, as vLLM's library does."""

    def __init__(self, app: ASGIApp, families: dict[str, Any], routes: Sequence[Route]) -> None:
        self._app = app
        self._exact = {(route.path, method) for route in routes for method in route.methods or ()}
        self._patterns = [route for route in routes if route.param_convertors]
        self._requests, self._received, self._sent, self._fine, self._coarse = families.values()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection's request."""
        if scope["type"] != "http" or scope["path"] in _UNCOUNTED or scope["path"].startswith("/metrics"):
            await self._app(scope, receive, send)
            return
        start, status, sent, counted = time.perf_counter(), 500, 0, False

        def count() -> None:
            nonlocal counted
            if counted:
                return
            counted = True
            handler = self._handler(scope["path"], scope["method"])
            seconds = time.perf_counter() - start
            self._requests.labels(handler, scope["method"], f"{status // 100}xx").inc()
            self._received.labels(handler).observe(int(dict(scope["headers"]).get(b"content-length", b"0") or 0))
            self._sent.labels(handler).observe(sent)
            self._fine.observe(seconds)
            self._coarse.labels(handler, scope["method"]).observe(seconds)

        async def watching(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = int(dict(message["headers"]).get(b"content-length", b"0"))
            elif not message.get("more_body"):
                count()  # before the client has the whole response, and can request the metrics
            await send(message)

        try:
            await self._app(scope, receive, watching)
        finally:
            count()

    def _handler(self, path: str, method: str) -> str:
        """Return the route of a request, also of one that is redirected to it; "none" where there is none."""
        other = path.rstrip("/") if path.endswith("/") else path + "/"
        if (path, method) in self._exact or (other, method) in self._exact:
            return path
        matching = (
            route for route in self._patterns if method in (route.methods or ()) and route.path_regex.match(path)
        )
        return next((route.path for route in matching), "none")
