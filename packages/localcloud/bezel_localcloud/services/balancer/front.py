"""Application of one listener: a request goes to a region's Cloud Run service, its response back unbuffered.

The service's ingress is called within this process, so that a balancer costs a request no second connection. Owns the
way of one request: route, region, headers, retries by the URL map's policy. Leaves out sockets and TLS (balancers.py).
"""

from collections.abc import Iterable
from urllib.parse import urlunsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.balancer import pages
from bezel_localcloud.services.balancer.backends import Backends, service_name
from bezel_localcloud.services.balancer.targets import target
from bezel_localcloud.services.cloud_run.runtime.ingress import BALANCED
from bezel_localcloud.services.cloud_run.runtime.region_outages import RegionDownError
from bezel_localcloud.services.load_balancing.routes import Backend, Listener, Route

Headers = list[tuple[bytes, bytes]]

_REDIRECTS = {
    "MOVED_PERMANENTLY_DEFAULT": 301, "FOUND": 302, "SEE_OTHER": 303, "TEMPORARY_REDIRECT": 307,
    "PERMANENT_REDIRECT": 308,
}  # fmt: skip
_RETRIED = {"5xx": range(500, 600), "gateway-error": range(502, 505), "retriable-4xx": range(409, 410)}
_DOWN = 502
_LONGEST_KEPT = 32 << 20  # bytes of a body that may be sent again, as Cloud Run takes it


class Front:
    """One listener.

    Attributes:
        listener: What it serves; a new value applies from the next request on.
    """

    def __init__(self, cloud: Context, backends: Backends, listener: Listener) -> None:
        self._cloud, self._backends, self.listener = cloud, backends, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host, path = headers["host"].rpartition(":")[0] or headers["host"], scope["path"]
        route = self.listener.route(host.lower(), path, headers)
        if route.redirect:
            await _redirect(route.redirect, scope, host)(scope, receive, send)
            return
        backend = self._choose_backend(route)
        if backend is None:
            await pages.not_found()(scope, receive, send)
            return
        policy = route.action.get("retryPolicy") or {}
        tries = 1 + (int(policy.get("numRetries") or 1) if policy else 0)
        body = _KeptBody(receive) if tries > 1 else None
        for left in reversed(range(tries)):
            exchange = _Exchange(
                send, _retry_statuses(policy) if left else (), backend.row.get("customResponseHeaders", [])
            )
            refusal = await self._pass_on(backend, host, scope, body.replay() if body else receive, exchange)
            if refusal is None and not exchange.is_held:
                return
            if refusal and not (left and exchange.retries(refusal.status_code)):
                await refusal(scope, receive, exchange.send)
                return

    def _choose_backend(self, route: Route) -> Backend | None:
        """One of the backend services, by their weights."""
        total = sum(weight for _, weight in route.backends)
        point = self._backends.chance() * total
        for backend, weight in route.backends:
            point -= weight
            if point < 0:
                return backend
        return None

    async def _pass_on(
        self, backend: Backend, host: str, scope: Scope, receive: Receive, exchange: "_Exchange"
    ) -> Response | None:
        """Send a request to a region; return what is to be answered where that gives no answer."""
        state = self._backends.state(backend)
        region = state.choose(backend)
        if region is None:
            return pages.no_healthy_upstream()
        service, tag = target(region, host.lower(), scope["path"])
        application: ASGIApp | None = None
        if service:
            application = self._cloud.services.application(service_name(region.name, service), tag)
        if application is None:
            return pages.not_found()
        try:
            await application(self._scope_for_region(scope, backend), receive, exchange.send)
        except RegionDownError:
            state.report(backend, region.name, _DOWN)
            return pages.bad_gateway()
        except ConnectionError:
            state.report(backend, region.name, _DOWN)
            raise
        state.report(backend, region.name, exchange.status or _DOWN)
        return None

    def _scope_for_region(self, scope: Scope, backend: Backend) -> Scope:
        """A request as the balancer sends it: with its own address as the peer, and the client's in a header."""
        client = scope["client"][0].encode() if scope.get("client") else b""
        came_through = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        headers = [header for header in scope["headers"] if header[0] != b"x-forwarded-for"]
        headers += [(b"x-forwarded-for", b", ".join([*came_through, client])), pages.VIA]
        headers += _custom(backend.row.get("customRequestHeaders", []))
        peer = (self.listener.address, self.listener.port)
        return {**scope, "headers": headers, "client": peer, BALANCED: True}


class _Exchange:
    """Send of one try of a request.

    Attributes:
        status: Status of the response, 0 before it.
        is_held: Whether the response is not sent, since the request is to be tried again.
    """

    def __init__(self, send: Send, retried: Iterable[int], headers: Iterable[str]) -> None:
        self._send, self._retried, self._headers = send, frozenset(retried), _custom(headers)
        self.status, self.is_held = 0, False

    def retries(self, status: int) -> bool:
        """Whether a response of a status is to be tried again."""
        return status in self._retried

    async def send(self, message: Message) -> None:
        """Send a part of the response on at once, with the balancer's headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.is_held = self.retries(self.status)
            message = {**message, "headers": [*message.get("headers", ()), pages.VIA, *self._headers]}
        if not self.is_held:
            await self._send(message)


class _KeptBody:
    """A request's body, read once and given to each try."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []
        self._length = 0

    def replay(self) -> Receive:
        """A receive that begins with what was read already."""
        position = 0

        async def receive() -> Message:
            nonlocal position
            if position < len(self._messages):
                position += 1
                return self._messages[position - 1]
            message = await self._receive()
            self._length += len(message.get("body", b""))
            if message["type"] == "http.request" and self._length <= _LONGEST_KEPT:
                self._messages.append(message)
                position += 1
            return message

        return receive


def _retry_statuses(policy: Json) -> list[int]:
    """Statuses that a retry policy names; a connection that could not be made is a 502 here."""
    conditions = policy.get("retryConditions") or []
    statuses = [status for condition in conditions for status in _RETRIED.get(condition, ())]
    return statuses + ([_DOWN] if "connect-failure" in conditions else [])


def _custom(headers: Iterable[str]) -> Headers:
    """Headers of a backend service, `NAME:VALUE` each."""
    pairs = (text.partition(":") for text in headers)
    return [(name.strip().lower().encode(), value.strip().encode()) for name, _, value in pairs]


def _redirect(rule: Json, scope: Scope, host: str) -> Response:
    """The redirect of a rule, for a request."""
    scheme = "https" if rule.get("httpsRedirect") else scope["scheme"]
    path = scope["raw_path"].decode("latin-1").partition("?")[0]
    path = rule.get("pathRedirect") or path
    query = "" if rule.get("stripQuery") else scope["query_string"].decode("latin-1")
    location = urlunsplit((scheme, rule.get("hostRedirect") or host, path, query, ""))
    return pages.redirect(location, _REDIRECTS[rule.get("redirectResponseCode") or "MOVED_PERMANENTLY_DEFAULT"])
