"""ASGI application of the proxy: passes a request to the service and the answer to the client, and reports every break.

Owns the checks of the caller, the ends of streams and the access line. Leaves attempts to `bezel.proxy.upstream`.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from starlette.types import Receive, Scope, Send

from bezel.proxy import refusals
from bezel.proxy.event_stream import EventStream
from bezel.proxy.request_body import ClientGoneError, RequestBody
from bezel.proxy.upstream import Answer, BrokenError, Exchange, RefusedError, Upstream
from bezel.rest import RestError
from bezel_base.errors import one_line
from bezel_base.loopback.web_pages import foreign

IS_OWN: Final = "proxy.is_own"
"""Key of a scope: whether the user of this process sent the request."""
HANG_UP: Final = "proxy.hang_up"
"""Key of a scope: function that closes the connection after what has been sent."""

_CLIENT_CLOSED: Final = 499
# Streams of these end with `data: [DONE]`: one that ends otherwise was cut off, however its framing ended.
_ENDING_WITH_DONE: Final = ("/chat/completions", "/completions")
_OTHER_USER = "The proxy serves only the user that started it: start one as this user."
_PAGE_OF_A_BROWSER = "The proxy serves programs, not web pages: a page would send requests at its visitor's cost."
log = logging.getLogger(__name__)


class ProxyApp:
    """The application in front of one service."""

    def __init__(self, upstream: Upstream, access: Callable[[str], None]) -> None:
        """Serve one service.

        Args:
            upstream: The service.
            access: Receives a line for each request.
        """
        self._upstream, self._access = upstream, access
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def stop(self) -> None:
        """Refuse new requests, and end the running ones with an error."""
        self._is_stopping = True
        for task in self._running:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = _Request(scope, receive, send)
        try:
            if refusal := self._refusal(scope):
                await request.refuse(refusal)
                return
            await self._serve(request)
        finally:
            self._access(request.line())

    def _refusal(self, scope: Scope) -> refusals.Refusal | None:
        if not scope[IS_OWN]:
            return refusals.foreign_caller(_OTHER_USER)
        # Only browsers send it. A page of this machine, too, would send requests at its visitor's cost.
        if any(name == b"origin" for name, _ in scope["headers"]):
            return refusals.foreign_caller(_PAGE_OF_A_BROWSER)
        if text := foreign(scope["headers"]):
            return refusals.foreign_caller(text)
        return refusals.stop_refusal() if self._is_stopping else None

    async def _serve(self, request: "_Request") -> None:
        forward = asyncio.create_task(self._forward(request))
        leave = asyncio.create_task(request.body.until_client_leaves())
        self._running.add(forward)
        try:
            await asyncio.wait((forward, leave), return_when=asyncio.FIRST_COMPLETED)
            if forward.done() and not forward.cancelled():
                forward.result()
            elif self._is_stopping:
                await request.break_off(refusals.stop_refusal())
            else:
                request.abandon()
        finally:
            self._running.discard(forward)
            for task in (forward, leave):
                task.cancel()
            await asyncio.gather(forward, leave, return_exceptions=True)

    async def _forward(self, request: "_Request") -> None:
        try:
            answer = await self._upstream.send(request.exchange)
            try:
                await request.relay(answer)
            finally:
                await answer.close()
        except RefusedError as refused:
            await request.refuse(refused.refusal)
        except BrokenError as error:
            await request.break_off(refusals.broken_stream(str(error)))
        except RestError as error:
            await request.refuse(refusals.not_authorized(one_line(error)))
        except ClientGoneError:
            request.abandon()
        except Exception:
            log.exception("a request failed within the proxy")
            await request.break_off(refusals.internal())


class _Request:
    """One request of a client, and the state of its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        self.body = RequestBody(scope, receive)
        self.exchange = Exchange(scope["method"].encode(), target, scope["headers"], self.body)
        self.status, self._note = 0, ""
        self._scope, self._receive, self._send = scope, receive, send
        self._began = time.monotonic()
        self._first = 0.0
        self._sent = 0
        self._events: EventStream | None = None
        self._is_begun = self._is_complete = False

    async def relay(self, answer: Answer) -> None:
        """Pass an answer on, piece by piece.

        Raises:
            BrokenError: It ended before it was complete.
        """
        self.status = answer.status
        if answer.header(b"content-type").startswith(b"text/event-stream"):
            self._events = events = EventStream()
            await self._begin(answer)
            async for piece in answer.pieces():
                if whole := events.take(piece):
                    await self._pass(whole)
            rest = events.rest()
            if not events.is_done and self._scope["path"].endswith(_ENDING_WITH_DONE):
                raise BrokenError("it ended without its last event")
            if rest:
                await self._pass(rest)
        else:
            # The head waits for the first piece: until then another response can be sent instead.
            async for piece in answer.pieces():
                await self._begin(answer)
                await self._pass(piece)
            await self._begin(answer)
        await self._send({"type": "http.response.body", "body": b""})
        self._is_complete = True

    async def refuse(self, refusal: refusals.Refusal) -> None:
        """Send an error as the whole response."""
        self._is_begun = True
        self.status, self._note = refusal.status, refusal.kind
        await refusal.send(self._send)
        self._is_complete = True

    async def break_off(self, refusal: refusals.Refusal) -> None:
        """End the response with an error: a whole one, an event of the stream, or else a cut connection."""
        if self._is_complete:
            return
        if not self._is_begun:
            await self.refuse(refusal)
            return
        self._note = refusal.kind
        if self._events is not None:
            await self._pass(refusal.event())
        # Without the end that the framing defines, no client can take the response for a complete one.
        self._scope[HANG_UP]()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def abandon(self) -> None:
        """Record that the client has gone."""
        self.status = self.status or _CLIENT_CLOSED
        self._note = self._note or "the client closed its connection"

    def line(self) -> str:
        """The access line: no header, no query and no content, which may hold secrets."""
        path = "".join(char if char.isprintable() else "?" for char in self._scope["path"])[:80]
        parts = [f"{self._scope['method']} {path} {self.status or '-'} {time.monotonic() - self._began:.2f} s"]
        if self._first:
            parts.append(f"first byte {self._first - self._began:.2f} s")
        parts.append(f"{self._sent} bytes")
        if self.exchange.repeated:
            parts.append(f"{self.exchange.repeated} repeated")
        return ", ".join([*parts, self._note] if self._note else parts)

    async def _begin(self, answer: Answer) -> None:
        if not self._is_begun:
            self._is_begun = True
            await self._send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})

    async def _pass(self, piece: bytes) -> None:
        self._first = self._first or time.monotonic()
        self._sent += len(piece)
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})
