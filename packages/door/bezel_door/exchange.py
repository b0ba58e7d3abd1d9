"""One admitted request: sent to the server, its answer passed on, counted and logged.

A request is sent again only where no connection was made, and once with a new identity after a 401. A caller that
hangs up ends its request at the server.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bezel_door.accounts.ledger import Charge, Ledger
from bezel_door.calls import refusals
from bezel_door.calls.refusals import Refusal
from bezel_door.calls.request_document import RequestDocument
from bezel_door.calls.response import Response
from bezel_door.calls.routes import Api, Route
from bezel_door.calls.token_use import Tokens, estimated_tokens, stalled_tokens
from bezel_door.google.identity import Identity
from bezel_door.google.metadata import GoogleError
from bezel_door.http1.client import BrokenError, ServerAnswer, ServerConnections, UnreachableError
from bezel_door.http1.heads import Headers, ResponseHead
from bezel_door.http1.server import Bodies, Call, RefusedError
from bezel_door.request_log import RequestLog

_CLIENT_CLOSED: Final = 499
_AFTER_A_RUN: Final = (502, 504)
"""Statuses of the platform's pages where the server may have computed: the others are those of its front end alone."""
_FORWARDED: Final = frozenset(
    b"accept user-agent x-request-id anthropic-version anthropic-beta traceparent tracestate".split()
)
"""Headers of the caller that the server gets; everything else, keys and identities among it, stays here."""


@dataclass(frozen=True)
class Parts:
    """What all requests share.

    Attributes:
        ledger: Counts of keys.
        keep_up: Exchanges counts with the other instances, if that is due.
        identity: The door's identity for the server; None for a server that asks for none.
        server: Connections to the server.
        bodies: Memory of bodies.
        log: The log.
        clock: Seconds since 1970.
    """

    ledger: Ledger
    keep_up: Callable[[], None]
    identity: Identity | None
    server: ServerConnections
    bodies: Bodies
    log: RequestLog
    clock: Callable[[], float] = time.time


class Exchange:
    """One admitted request: sent, answered, counted, logged."""

    def __init__(
        self, parts: Parts, call: Call, route: Route, asked: RequestDocument | None, charge: Charge, team: str
    ) -> None:
        self._parts, self._call, self._route, self._asked = parts, call, route, asked
        self._charge, self._team = charge, team
        self._answer: ServerAnswer | None = None
        self._response: Response | None = None
        self._began = time.monotonic()
        self._status = 0
        self._has_failed = True
        self._may_have_run = False

    async def run(self) -> None:
        """Send the request, and pass the answer on."""
        self._call.when_gone = self._abort
        try:
            await self._pass()
        except RefusedError as refused:
            self._status = refused.refusal.status
            if not self._call.is_gone:
                self._call.refuse(refused.refusal, for_anthropic=self._route.is_anthropic)
        except BrokenError:
            self._break_off()
        finally:
            self._count()

    async def _pass(self) -> None:
        head, answer = await self._answer_to_pass()
        self._status = head.status
        self._response = response = Response(head, self._route.api, self._asked, self._parts.bodies)
        await response.relay(self._call, answer, self._update)
        self._has_failed = response.has_failed

    async def _answer_to_pass(self) -> tuple[ResponseHead, ServerAnswer]:
        """The head of an answer to pass on."""
        parts = self._parts
        token = ""
        for attempt in range(2):
            try:
                if parts.identity is not None:
                    token = await (parts.identity.after_refusal(token) if attempt else parts.identity.current())
                connection = await parts.server.connection()
            except GoogleError as error:
                parts.log.event("ERROR", str(error))
                raise RefusedError(refusals.no_identity()) from None
            except UnreachableError as error:
                parts.log.event("WARNING", f"the server cannot be reached: {error}")
                raise RefusedError(refusals.unreachable()) from None
            if self._call.is_gone:
                connection.abort()
                raise BrokenError
            self._may_have_run = True
            answer = self._answer = connection.send(self._call.head.method, *self._message(token))
            head = await answer.head
            if head.status < 400 or head.header(b"content-type").startswith(b"application/json"):
                return head, answer
            # A page of the platform in front of the server: no error of vLLM's, which are JSON.
            self._may_have_run = head.status in _AFTER_A_RUN
            answer.abort()
            if head.status != 401 or parts.identity is None or attempt:
                raise RefusedError(self._refusal_of_page(head.status))
        raise RefusedError(refusals.not_admitted(401))

    def _message(self, token: str) -> tuple[bytes, Headers, bytes]:
        """Target, headers and body as the server gets them."""
        address = self._parts.server.address
        body = self._asked.body if self._asked else b""
        headers: Headers = [(b"host", address.authority), (b"accept-encoding", b"identity")]
        headers += [header for header in self._call.head.headers if header[0] in _FORWARDED]
        if token:
            headers.append((b"x-serverless-authorization", b"Bearer " + token.encode()))
        if self._asked is not None:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        return address.prefix + self._route.path.encode(), headers, body

    def _refusal_of_page(self, status: int) -> Refusal:
        self._parts.log.event("WARNING", f"the platform in front of the server answered HTTP {status}")
        if status in _AFTER_A_RUN:
            return refusals.broken_connection(is_stream=False)
        return refusals.no_instance() if status in (429, 500, 503) else refusals.not_admitted(status)

    def _update(self, tokens: Tokens) -> None:
        parts = self._parts
        parts.ledger.update(self._charge, tokens, parts.clock())
        parts.keep_up()

    def _abort(self) -> None:
        if self._answer is not None:
            self._answer.abort()

    def _break_off(self) -> None:
        """End a response whose source broke, or whose caller has gone."""
        if self._call.is_gone:
            self._status, self._has_failed = self._status or _CLIENT_CLOSED, False
            return
        is_stream = self._response is not None and self._response.events is not None
        refusal = refusals.broken_connection(is_stream=is_stream)
        if not self._call.is_begun:
            self._status = refusal.status
            self._call.refuse(refusal, for_anthropic=self._route.is_anthropic)
            return
        if is_stream:
            self._call.write(refusal.event(for_anthropic=self._route.is_anthropic))
        self._call.cut()

    def _count(self) -> None:
        parts, seconds = self._parts, time.monotonic() - self._began
        tokens = Tokens()
        if self._response is not None:
            reported = self._response.tokens()
            self._response.close()
            is_computed = self._route.api != Api.FREE and self._asked is not None
            tokens = reported or (estimated_tokens(self._asked, seconds) if self._asked and is_computed else Tokens())
            if self._response.is_stalled and self._call.is_gone and self._asked is not None:
                tokens = stalled_tokens(tokens, self._asked, seconds)
        elif self._may_have_run and self._asked is not None and self._route.api != Api.FREE:
            tokens = estimated_tokens(self._asked, seconds)
        parts.ledger.end(self._charge, tokens, parts.clock(), has_failed=self._has_failed)
        parts.keep_up()
        parts.log.request(self._route.path, self._status, seconds * 1000, self._charge.key_id, self._team, tokens)
