"""Requests to the service: authorized, repeated where no server can have acted on them, and the answer piece by piece.

Owns the connections, and the rules for a repetition. A request is repeated while nothing of its answer was passed on:
where no connection was made, where it broke before the whole request was handed over, where the platform had no
instance for it, and once with a new token after a 401. Any other failure may come after the server acted: it is
reported.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from bezel.proxy import refusals
from bezel.proxy.identity import IdentityToken
from bezel.proxy.request_body import RequestBody
from bezel.rest.connect_to import ConnectTo
from bezel.rest.transport import certificates, http_proxy
from bezel_base.credentials.headers import is_credential_name

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-connection te trailer upgrade transfer-encoding expect".split()
)
# Compressed streams would be held back until a block is full.
_DROPPED: Final = _HOP_BY_HOP | {b"host", b"accept-encoding"}
_IDLE_SECONDS: Final = 15.0  # shorter than the server keeps an idle connection: one that it closes is not reused
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 3660.0
"""Longest wait for a piece of an answer: Cloud Run's own limit of a request is 3600 s."""
_TIMEOUTS: Final = {"connect": _CONNECT_SECONDS, "read": _ANSWER_SECONDS, "write": _ANSWER_SECONDS}


def _keep_alive() -> list[tuple[int, int, int]]:
    """Options of a socket: a peer that is gone, e.g. after this machine slept, is noticed within a minute."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    named = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
    return options + [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in named.items() if hasattr(socket, name)
    ]


class RefusedError(Exception):
    """The request gets an error response of the proxy."""

    def __init__(self, refusal: refusals.Refusal) -> None:
        super().__init__(refusal.kind)
        self.refusal = refusal


class BrokenError(Exception):
    """The answer broke before its end; the text is the reason."""


class Answer:
    """An answer whose head has arrived; its body is read once.

    Attributes:
        status: HTTP status.
        headers: Those for the client.
    """

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self.headers = [(name, value) for name, value in response.headers if name.lower() not in _HOP_BY_HOP]
        self._response = response

    def header(self, name: bytes) -> bytes:
        """Return the value of a header, b"" without it."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            BrokenError: It ends before it is complete.
        """
        try:
            async for piece in self._response.aiter_stream():
                yield piece
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise BrokenError(reason_of(error)) from None

    async def page(self) -> bytes:
        """Read the beginning of the body, as far as it arrives."""
        page = b""
        try:
            async for piece in self.pieces():
                page += piece
                if len(page) > refusals.PAGE:
                    break
        except BrokenError:
            pass
        finally:
            await self.close()
        return page

    async def close(self) -> None:
        """End the exchange; the connection is kept if the body was read to its end."""
        await self._response.aclose()


@dataclass
class Exchange:
    """One request, and the course of its attempts.

    Attributes:
        method: HTTP method.
        target: Path and query, as the client sent them.
        headers: The client's.
        body: The client's.
        repeated: Number of repetitions.
    """

    method: bytes
    target: bytes
    headers: Headers
    body: RequestBody
    repeated: int = 0


@dataclass(frozen=True)
class _Failure:
    """An attempt without an answer to pass on, with the status of the platform's page or 0."""

    status: int
    refusal: refusals.Refusal
    is_repeatable: bool


class Upstream:
    """Connections to one service.

    Attributes:
        url: Its URL, without a slash at the end.
    """

    def __init__(
        self,
        url: str,
        token: IdentityToken | None,
        *,
        wait_seconds: float,
        stack: str = "STACK",
        connect_to: ConnectTo | None = None,
        clock: Callable[[], float] = time.monotonic,
        environ_proxies: Callable[[], Mapping[str, str]] = getproxies,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: URL of the service; a path in it precedes that of each request.
            token: The identity token; None for a service that needs none.
            wait_seconds: Time for which a request is repeated where that is safe.
            stack: Name of the stack, for commands of error messages.
            connect_to: Where to connect, if not to what the name in the URL leads to.
            clock: Monotonic clock in seconds.
            environ_proxies: Proxies of the environment by scheme.

        Raises:
            UserError: The environment's proxy is not one by HTTP.
        """
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self._token, self._wait, self._stack, self._clock = token, wait_seconds, stack, clock
        self._scheme, self._prefix = parts.scheme.encode(), parts.path.rstrip("/").encode()
        self._host, self._port = (parts.hostname or "").encode("idna"), parts.port
        self._extensions: dict[str, str] = {}
        self._netloc = parts.netloc.rpartition("@")[2].encode("idna")
        if connect_to is None:
            context = certificates() if parts.scheme == "https" else None
            self._pool = _pool(context, _proxy(parts.scheme, parts.hostname or "", environ_proxies()))
        else:
            self._host, self._port = connect_to.host.encode(), connect_to.port
            self._extensions = {"sni_hostname": connect_to.domain}
            self._pool = _pool(connect_to.context(), None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def send(self, exchange: Exchange) -> Answer:
        """Send a request, again where that is safe, and return its answer.

        Raises:
            RefusedError: There is no answer of the server to pass on.
            ClientGoneError: The client closed its connection.
            RestError: No identity token can be obtained.
        """
        began, pause, is_renewed = self._clock(), _FIRST_PAUSE, False
        token = await self._token.current() if self._token else ""
        while True:
            outcome = await self._outcome(exchange, token, began)
            may_renew = self._token is not None and not is_renewed and exchange.body.is_kept
            if outcome.status == 401 and self._token is not None and may_renew:
                if isinstance(outcome, Answer):
                    await outcome.page()
                token, is_renewed = await self._token.after_refusal(token), True
            elif isinstance(outcome, Answer):
                return outcome
            elif not outcome.is_repeatable or not exchange.body.is_kept or self._clock() - began + pause > self._wait:
                raise RefusedError(outcome.refusal)
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            exchange.repeated += 1

    async def _outcome(self, exchange: Exchange, token: str, began: float) -> "Answer | _Failure":
        """Send the request once. The server's own answers, errors among them, are JSON or at least no error."""
        try:
            answer = await self._attempt(exchange, token)
            if answer.status < 400 or answer.header(b"content-type").startswith(b"application/json"):
                return answer
            page = await answer.page()
        except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ProxyError) as error:
            refusal = refusals.unreachable(self.url, reason_of(error), self._clock() - began)
            return _Failure(0, refusal, is_repeatable=True)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            refusal = refusals.broken_before_answer(self.url, reason_of(error))
            return _Failure(0, refusal, is_repeatable=not exchange.body.is_empty and not exchange.body.is_handed_over)
        is_html = answer.header(b"content-type").startswith(b"text/html")
        waited = self._clock() - began
        refusal = refusals.of_page(answer.status, self.url, page, waited, is_html=is_html, stack=self._stack)
        return _Failure(answer.status, refusal, is_repeatable=refusal.is_final)

    async def _attempt(self, exchange: Exchange, token: str) -> Answer:
        headers = [line for line in exchange.headers if line[0] not in _DROPPED and not _is_callers_own(line[0])]
        headers += [(b"host", self._netloc), (b"accept-encoding", b"identity")]
        if token:
            headers.append((b"authorization", b"Bearer " + token.encode()))
        content = None if exchange.body.is_empty else exchange.body.pieces()
        if content is not None and not any(name == b"content-length" for name, _ in headers):
            headers.append((b"transfer-encoding", b"chunked"))
        target = self._prefix + without_credentials(exchange.target)
        request = httpcore.Request(
            exchange.method,
            httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target),
            headers=headers,
            content=content,
            extensions={"timeout": _TIMEOUTS, **self._extensions},
        )
        return Answer(await self._pool.handle_async_request(request))


def _is_callers_own(name: bytes) -> bool:
    """Whether the caller authorizes itself by it, wherever that is meant for: it is never passed on."""
    return is_credential_name(name.decode("latin-1"))


def without_credentials(target: bytes) -> bytes:
    """Return a path with its query, without the parameters by which the caller authorizes itself."""
    path, mark, query = target.partition(b"?")
    kept = [part for part in query.split(b"&") if not _is_callers_own(unquote_to_bytes(part.partition(b"=")[0]))]
    return path + mark + b"&".join(kept) if kept or not query else path


def reason_of(error: Exception) -> str:
    """Return the reason of a failed exchange as a few words."""
    if isinstance(error, httpcore.TimeoutException):
        return "no response in time"
    text = str(error).strip() or str(error.__cause__ or "").strip()
    return " ".join(text.split())[:200] or type(error).__name__


def _proxy(scheme: str, host: str, proxies: Mapping[str, str]) -> httpcore.Proxy | None:
    variable = scheme if scheme in proxies else "all"
    proxy = proxies.get(variable, "")
    is_direct = not proxy or proxy_bypass(host) or host in {"localhost", "127.0.0.1", "::1"}
    return None if is_direct else httpcore.Proxy(http_proxy(variable, proxy))


def _pool(context: ssl.SSLContext | None, proxy: httpcore.Proxy | None) -> httpcore.AsyncConnectionPool:
    # As many as the client sends requests at once: a limit would make some wait here, where no metric shows it.
    return httpcore.AsyncConnectionPool(
        context,
        proxy,
        max_connections=None,
        max_keepalive_connections=64,
        keepalive_expiry=_IDLE_SECONDS,
        socket_options=_keep_alive(),
    )
