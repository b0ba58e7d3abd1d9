"""Ingress of one service: caller authorization, choice of an instance, and unbuffered responses.

Requests are read whole (the platform bounds them at 32 MiB), responses are passed on chunk by chunk as they arrive.
"""

import asyncio
import contextlib
import html
import logging
import re
import socket
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from starlette.requests import ClientDisconnect, Request, empty_receive, empty_send
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.core.logbook import LogSource
from bezel_localcloud.faults.wire import FaultMiddleware
from bezel_localcloud.http.serving import HttpServer, hang_up
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_run.runtime.autoscaler import (
    NO_INSTANCE,
    NoInstanceError,
    RevisionRoute,
)
from bezel_localcloud.services.cloud_run.runtime.instance import Instance
from bezel_localcloud.services.cloud_run.runtime.region_outages import RegionDownError, RegionOutages
from bezel_localcloud.services.cloud_run.runtime.upstream import NotListeningError, Upstream, UpstreamError
from bezel_localcloud.services.cloud_run.spec import limits

Headers = list[tuple[bytes, bytes]]

log = logging.getLogger(__name__)
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade "
    b"transfer-encoding".split()
)
# Headers that the ingress sets itself, in place of the client's.
_OURS = frozenset((b"x-forwarded-for", b"x-forwarded-proto", b"x-cloud-trace-context", b"traceparent"))
_CLIENT_CLOSED = 499
_TRACES = {
    "traceparent": re.compile(r"00-([0-9a-f]{32})-"),
    "x-cloud-trace-context": re.compile(r"([0-9a-f]{32})\b"),
}
_ANY_LENGTH = 1 << 62
# Seconds that an instance whose connection broke may take to be seen as ended.
_ENDING_SECONDS = 0.25
_PUBLIC = "INGRESS_TRAFFIC_ALL"
_BALANCED = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
BALANCED = "localcloud.balanced"
"""Key of a request's scope that is true for one that a load balancer sent."""
_NOT_FOUND = (404, "Page not found", "The requested URL was not found on this server.")
# Messages of the request log where Cloud Run itself responds.
_BROKEN = (
    "The request failed because either the HTTP response was malformed or connection to the instance had an error. "
    "Additional troubleshooting documentation can be found at: "
    "https://cloud.google.com/run/docs/troubleshooting#malformed-response-or-connection-error"
)
_TOO_LATE = (
    "The request has been terminated because it has reached the maximum request timeout. To change this limit, see "
    "https://cloud.google.com/run/docs/configuring/request-timeout"
)
_ABORTED = {429: NO_INSTANCE, 500: NO_INSTANCE, 504: _TOO_LATE}
"""Messages of requests that the platform answers by itself; any other status is a broken connection's."""


class _RefusedError(Exception):
    def __init__(self, status: int, title: str, text: str, *, challenge: bool = False, logged: str = "") -> None:
        super().__init__(title)
        self.status, self.title, self.text, self.challenge = status, title, text, challenge
        self.logged = logged or title


class Ingress(HttpServer):
    """A listening port for the address of a service, or of one of its tags.

    Attributes:
        application: What it serves, for requests that a load balancer passes on within this process.
    """

    def __init__(
        self,
        cloud: Context,
        outages: RegionOutages,
        route: Callable[[str, str], RevisionRoute | None],
        name: str,
        tag: str,
        listener: socket.socket,
    ) -> None:
        # The ingress itself refuses a body that is too long, in Cloud Run's own words.
        self.application: ASGIApp = FaultMiddleware(self._app, cloud.faults, "service", self._log_refusal)
        super().__init__(self.application, listener, lambda _: _ANY_LENGTH)
        self._cloud = cloud
        self._outages, self._region = outages, name.split("/")[3]
        self._route = partial(route, name, tag)
        self._name = name
        self.port = int(listener.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self.port}"

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = _Request(scope, receive, send)
        message, routed = "", None
        try:
            await request.read_body()
            if self._outages.is_down(self._region):
                raise RegionDownError(self._region)  # noqa: TRY301
            headers = self._authorize(request)
            routed = self._route()
            if routed is None:
                raise _RefusedError(*_NOT_FOUND)  # noqa: TRY301
            await self._serve(request, headers, routed)
        except _RefusedError as refused:
            message = refused.logged
            await request.refuse(refused)
        except RegionDownError:
            if request.is_balanced:
                raise
            await hang_up(scope, receive)
        finally:
            self._log_request(request, routed, message)

    def _authorize(self, request: "_Request") -> Headers:
        service = self._cloud.store.get("service", self._name) or {}
        admits = service.get("ingress", _PUBLIC)
        is_hidden = service.get("defaultUriDisabled") and not request.is_balanced
        if (admits != _PUBLIC and not (request.is_balanced and admits == _BALANCED)) or is_hidden:
            raise _RefusedError(*_NOT_FOUND)
        resource, allows = self._name, self._cloud.access.allows
        if service.get("invokerIamDisabled") or allows(None, "run.routes.invoke", resource):
            return request.headers.raw
        name, token = request.identity_token()
        path = html.escape(request.url.path)
        text = f"Your client does not have permission to get URL <code>{path}</code> from this server."
        forbidden = _RefusedError(403, "Forbidden", text)
        if not token:
            raise forbidden
        try:
            # A tag's own address is no audience: tokens for it have the service's address.
            audiences = {service["uri"], f"{service['uri']}/", *service.get("customAudiences", [])}
            caller = self._cloud.tokens.identity(token, audiences)
        except TokenError as error:
            log.info("%s refused a token: %s", self._name, error)
            text = f"Your client does not have permission to the requested URL <code>{path}</code>."
            raise _RefusedError(401, "Unauthorized", text, challenge=True) from None
        if not allows(caller, "run.routes.invoke", resource):
            raise forbidden
        # The container sees the caller's claims, but gets no token that it could use elsewhere.
        unsigned = f"Bearer {token.rpartition('.')[0]}.SIGNATURE_REMOVED_BY_GOOGLE".encode()
        return [*((key, value) for key, value in request.headers.raw if key != name), (name, unsigned)]

    async def _serve(self, request: "_Request", headers: Headers, routed: RevisionRoute) -> None:
        serving = asyncio.ensure_future(self._forward(request, headers, routed))
        closed = asyncio.ensure_future(request.wait_for_disconnect())
        try:
            ends = {serving, closed, self._outages.outage(self._region)}
            await asyncio.wait(ends, timeout=routed.spec.timeout, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            elif self._outages.is_down(self._region) and not request.started:
                raise RegionDownError(self._region)
            elif self._outages.is_down(self._region):
                request.cut_off()
            elif closed.done():
                request.status = request.status or _CLIENT_CLOSED
            elif not request.started:
                raise _RefusedError(504, "Gateway Timeout", "upstream request timeout", logged=_TOO_LATE)
            else:
                request.cut_off()
        finally:
            for task in (serving, closed):
                task.cancel()
            await asyncio.gather(serving, closed, return_exceptions=True)

    async def _forward(self, request: "_Request", headers: Headers, routed: RevisionRoute) -> None:
        while True:
            try:
                instance = await routed.pool.acquire()
            except NoInstanceError as error:
                title = "Rate exceeded." if error.status == 429 else "Service Unavailable"
                raise _RefusedError(error.status, title, error.message, logged=error.message) from None
            try:
                await self._exchange(request, headers, instance)
            except NotListeningError:
                routed.pool.discard(instance)
                continue
            except UpstreamError as error:
                log.info("%s: connection to an instance broke: %s", self._name, error)
                if request.started:
                    request.cut_off()
                # A process that ends breaks its connections first: no other request should be sent to it meanwhile.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(instance.exited.wait(), _ENDING_SECONDS)
                text = "upstream connect error or disconnect/reset before headers"
                raise _RefusedError(503, "Service Unavailable", text, logged=_BROKEN) from None
            finally:
                routed.pool.release(instance)
            return

    async def _exchange(self, request: "_Request", headers: Headers, instance: Instance) -> None:
        request.instance = instance.source
        sent = [(key, value) for key, value in headers if key not in _HOP_BY_HOP | _OURS]
        came_through = [value for key, value in headers if key == b"x-forwarded-for"]
        sent += [
            (b"x-forwarded-for", b", ".join([*came_through, request.peer.encode()])),
            (b"x-forwarded-proto", request.scope["scheme"].encode()),
            (b"x-cloud-trace-context", f"{request.trace}/{int(request.span, 16)};o=1".encode()),
            (b"traceparent", f"00-{request.trace}-{request.span}-01".encode()),
        ]
        async with Upstream(instance.address) as upstream:
            status, received = await upstream.send(request.method, request.target, sent, request.content)
            dropped = _HOP_BY_HOP | {b"server", b"date"}
            returned = [(key, value) for key, value in received if key not in dropped]
            await request.begin(status, [*returned, (b"server", b"Google Frontend")])
            async for piece in upstream.pieces():
                await request.chunk(piece)
            await request.end()

    def _log_refusal(self, scope: Scope, status: int, length: int) -> None:
        """Log a request that an injected fault refused, as one that the platform refused without an instance."""
        request = _Request(scope)
        request.status, request.sent = status, length
        self._log_request(request, self._route(), _ABORTED.get(status, _BROKEN))

    def _log_request(self, request: "_Request", routed: RevisionRoute | None, message: str) -> None:
        location, service = self._name.split("/")[3], self._name.rpartition("/")[2]
        source = request.instance or (routed.source if routed else LogSource(location, service, ""))
        entry = {
            "requestMethod": request.method,
            "requestUrl": f"{self.uri}{request.target}",
            # Of a body that was refused, or broken off by its client, only a part was read.
            "requestSize": request.headers.get("content-length") or str(len(request.content)),
            "status": request.status or _CLIENT_CLOSED,
            "responseSize": str(request.sent),
            "userAgent": request.headers.get("user-agent", ""),
            "remoteIp": request.peer,
            "serverIp": "127.0.0.1",
            "latency": f"{time.monotonic() - request.began:.6f}s",
            "protocol": "HTTP/1.1",
        }
        self._cloud.logbook.request(source, entry, message, trace=(request.trace, request.span))
        if request.instance and request.status:
            revision = f"{self._name}/revisions/{request.instance.revision}"
            self._cloud.service_use.add_request(revision, request.status)


class _Request(Request):
    """One request and the part of its response that has been sent."""

    def __init__(self, scope: Scope, receive: Receive = empty_receive, send: Send = empty_send) -> None:
        super().__init__(scope, receive, send)
        query = scope["query_string"].decode("latin-1")
        self.target = scope["raw_path"].decode("latin-1").partition("?")[0] + (f"?{query}" if query else "")
        self.peer = self.client.host if self.client else ""
        self.is_balanced = bool(scope.get(BALANCED))
        self.content = b""
        self.began = time.monotonic()
        self.status, self.sent, self.started = 0, 0, False
        self.trace, self.span = self._trace_ids()
        self.instance: LogSource | None = None

    def _trace_ids(self) -> tuple[str, str]:
        """(trace, span) in hex digits; the trace of a client that already traces is continued."""
        for name, pattern in _TRACES.items():
            if match := pattern.match(self.headers.get(name, "")):
                return match[1], uuid.uuid4().hex[:16]
        return uuid.uuid4().hex, uuid.uuid4().hex[:16]

    def identity_token(self) -> tuple[bytes, str]:
        """(header, token); Cloud Run's own header takes precedence, so that Authorization stays free for the app."""
        for name in (b"x-serverless-authorization", b"authorization"):
            scheme, _, token = self.headers.get(name.decode(), "").partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return name, token.strip()
        return b"authorization", ""

    async def read_body(self) -> None:
        content, longest = bytearray(), limits()["requests"]["max_body_bytes"]
        try:
            async for chunk in self.stream():
                content += chunk
                if len(content) > longest:
                    raise _RefusedError(413, "Request Entity Too Large", "The request was larger than 32 MiB.")
        except ClientDisconnect:
            raise _RefusedError(_CLIENT_CLOSED, "Client Closed Request", "") from None
        finally:
            self.content = bytes(content)

    async def wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def begin(self, status: int, headers: Headers) -> None:
        self.status, self.started = status, True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def chunk(self, data: bytes) -> None:
        self.sent += len(data)
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    def cut_off(self) -> NoReturn:
        """Break the connection within the response, so that the client cannot take it for a complete one."""
        raise ConnectionAbortedError("the response was cut off")

    async def refuse(self, refused: _RefusedError) -> None:
        page = (
            '<html><head>\n<meta http-equiv="content-type" content="text/html;charset=utf-8">\n'
            f"<title>{refused.status} {refused.title}</title>\n</head>\n<body text=#000000 bgcolor=#ffffff>\n"
            f"<h1>Error: {refused.title}</h1>\n<h2>{refused.text}</h2>\n<h2></h2>\n</body></html>\n"
        )
        headers = {"content-type": "text/html; charset=UTF-8", "server": "Google Frontend"}
        if refused.challenge:
            text = 'Bearer error="invalid_token" error_description="The access token could not be verified"'
            headers["www-authenticate"] = text
        response = Response(page, refused.status, headers)
        await self.begin(refused.status, response.raw_headers)
        await self.chunk(bytes(response.body))
        await self.end()
