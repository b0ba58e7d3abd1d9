"""The door itself: each request is judged by its path, its key and its document, sent to the server, and counted.

Order: path and method, key, media type, body, models, limits; then the identity and the server. What is judged before
the body is judged without it.
"""

from datetime import UTC, datetime
from typing import Final

from bezel_door.accounts.bucket_sync import BucketSync, KeysUnavailableError
from bezel_door.accounts.guesses import WrongKeys
from bezel_door.accounts.ledger import LimitPassed
from bezel_door.calls import refusals
from bezel_door.calls.caller_key import TwoKeysError, caller_key
from bezel_door.calls.request_document import DocumentError, RequestDocument, read_request
from bezel_door.calls.routes import PROBE_PATH, ROUTES, Route, is_anthropic, path_of
from bezel_door.exchange import Exchange, Parts
from bezel_door.http1.server import Call, ClientGoneError, RefusedError
from bezel_door.key_file import Key, KeyRefusal, judge_key

MOST_BODY: Final = 32 * 1024 * 1024
"""Bytes of a request's body: Cloud Run's own bound for HTTP/1.1."""


class DoorApp:
    """The application in front of one server."""

    def __init__(self, sync: BucketSync, parts: Parts) -> None:
        """Serve the keys of one bucket.

        Args:
            sync: The keys.
            parts: What the requests share.
        """
        self._sync, self._parts = sync, parts
        self._wrong_keys = WrongKeys()
        self.is_stopping = False

    async def __call__(self, call: Call) -> None:
        """Serve one request."""
        path = path_of(call.head.target)
        route = ROUTES.get(path)
        try:
            if path == PROBE_PATH:
                await self._probe(call)
                return
            await self._serve(call, route)
        except RefusedError as refused:
            refusal = refused.refusal
            self._parts.log.refusal(route.path if route else "(other)", refusal.status, refusal.code, refused.key_id)
            call.refuse(refusal, for_anthropic=is_anthropic(path))
        except ClientGoneError:
            pass
        except Exception as error:  # noqa: BLE001 - one request's failure must not end the others
            self._parts.log.event("ERROR", f"a request failed within the door: {type(error).__name__}: {error}")
            if call.is_begun:
                call.cut()
            else:
                call.refuse(refusals.internal(), for_anthropic=is_anthropic(path))

    async def _probe(self, call: Call) -> None:
        try:
            await self._sync.refresh()
        except KeysUnavailableError:
            raise RefusedError(refusals.no_keys()) from None
        await self._sync.settle()  # a command that shows the use of keys asks for it
        call.respond(200, [(b"content-type", b"text/plain")], b"ready\n")

    async def _serve(self, call: Call, route: Route | None) -> None:
        if self.is_stopping:
            raise RefusedError(refusals.stopping())
        if route is None:
            raise RefusedError(refusals.not_served())
        if call.head.method.decode() != route.method:
            raise RefusedError(refusals.wrong_method(route.method))
        key_id, key = await self._admit(call)
        asked = await self._document(call, route, key_id)
        name = asked.model if asked else None
        if key.models and asked is not None and name not in key.models:
            self._parts.ledger.refuse(key_id, self._parts.clock())
            raise RefusedError(refusals.model_not_allowed(key.models), key_id)
        charge = self._parts.ledger.begin(key_id, key, asked.reserved_tokens if asked else 0, self._parts.clock())
        if isinstance(charge, LimitPassed):
            raise RefusedError(refusals.limit_passed(charge.limit, charge.most, charge.retry_after), key_id)
        await Exchange(self._parts, call, route, asked, charge, key.team).run()

    async def _admit(self, call: Call) -> tuple[str, Key]:
        try:
            await self._sync.refresh()
        except KeysUnavailableError:
            raise RefusedError(refusals.no_keys()) from None
        try:
            text = caller_key(call.head.headers)
        except TwoKeysError:
            raise RefusedError(refusals.two_keys()) from None
        now = self._parts.clock()
        judged = judge_key(self._sync.keys, text, datetime.fromtimestamp(now, UTC))
        if isinstance(judged, KeyRefusal):
            wait = self._wrong_keys.count(_address(call), now) if judged is KeyRefusal.WRONG else 0
            raise RefusedError(refusals.many_wrong_keys(wait) if wait else refusals.wrong_key(judged))
        return judged

    async def _document(self, call: Call, route: Route, key_id: str) -> RequestDocument | None:
        if route.method != "POST":
            if not call.head.framing.is_empty:
                raise RefusedError(refusals.malformed_request("A GET has no body here."))
            return None
        media_type = (call.head.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if media_type != b"application/json":
            raise RefusedError(refusals.wrong_media_type())
        try:
            return read_request(await call.read_body(MOST_BODY, key_id), route.api)
        except DocumentError as error:
            raise RefusedError(refusals.unreadable_body(str(error))) from None


def _address(call: Call) -> str:
    """Address of the sender: the last one that Google's front end has added, or else the connection's."""
    forwarded = [value for name, value in call.head.headers if name == b"x-forwarded-for"]
    return forwarded[-1].rpartition(b",")[2].strip().decode("latin-1")[:64] if forwarded else call.peer
