"""Response of the server on its way to the caller: whole answers as they come, streams event by event.

Owns the headers, the pauses of a caller that reads slowly, and what is counted. Leaves out when it is counted.
"""

from collections.abc import Callable
from typing import Final

from bezel_door.calls.event_stream import EventStream
from bezel_door.calls.request_document import RequestDocument
from bezel_door.calls.routes import Api
from bezel_door.calls.token_use import StreamUse, Tokens, tokens_of_answer
from bezel_door.http1.client import ServerAnswer
from bezel_door.http1.heads import Headers, ResponseHead
from bezel_door.http1.server import Bodies, Call

_MOST_READ: Final = 16 * 1024 * 1024
"""Bytes of a whole answer whose tokens are read; those of a larger one are estimated."""
_DROPPED: Final = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate te trailer upgrade transfer-encoding content-length "
    b"server date alt-svc set-cookie via x-cloud-trace-context".split()
)


class Response:
    """One response.

    Attributes:
        status: Its HTTP status.
        has_failed: Whether an event of a stream had an error.
        is_stalled: Whether the caller does not take a stream, so that it is not read from the server.
    """

    def __init__(self, head: ResponseHead, api: Api, asked: RequestDocument | None, bodies: Bodies) -> None:
        self.status = head.status
        self._head, self._api, self._asked, self._bodies = head, api, asked, bodies
        self._kept: list[bytes] | None = [] if api != Api.FREE and head.status == 200 else None
        self._reserved = 0
        self._use: StreamUse | None = None
        self.events: EventStream | None = None
        self.is_stalled = False
        is_stream = head.header(b"content-type").startswith(b"text/event-stream")
        if asked is not None and is_stream and not head.header(b"content-encoding"):
            self._use, self._kept = StreamUse(api, asked), None
            self.events = EventStream(api, asked, self._use)

    @property
    def has_failed(self) -> bool:
        """Whether the response is an error, or an event of it is."""
        return self.status >= 400 or (self.events is not None and self.events.has_error)

    async def relay(self, call: Call, answer: ServerAnswer, counted: Callable[[Tokens], None]) -> None:
        """Pass the response on until its end.

        Args:
            call: The caller's request.
            answer: Answer of the server.
            counted: Receives the tokens so far, after each piece of a stream.

        Raises:
            BrokenError: The server's connection broke before.
        """
        headers: Headers = [header for header in self._head.headers if header[0] not in _DROPPED]
        call.when_full = lambda is_full: answer.pause(is_paused=is_full)
        if self.events is None or self._use is None:
            call.begin(self.status, headers, self._head.framing.length)
            await answer.relay(lambda piece: self._whole(call, piece))
        else:
            events, use = self.events, self._use

            def pause(is_full: bool) -> None:
                self.is_stalled = is_full
                answer.pause(is_paused=is_full)

            call.when_full = pause
            call.begin(self.status, headers, None)

            def take(piece: bytes) -> None:
                call.write(events.take(piece))
                counted(use.now())

            await answer.relay(take)
            call.write(events.rest())
        call.end()

    def tokens(self) -> Tokens | None:
        """Tokens of the response up to now; None where the server reported none."""
        if self._use is not None:
            return self._use.now()
        if self._api == Api.FREE or self.status != 200:
            return Tokens()
        return tokens_of_answer(b"".join(self._kept)) if self._kept is not None else None

    def close(self) -> None:
        """Free what is held of a whole answer."""
        self._bodies.give_back(self._reserved)
        self._kept, self._reserved = None, 0

    def _whole(self, call: Call, piece: bytes) -> None:
        call.write(piece)
        if self._kept is not None:
            if self._reserved + len(piece) > _MOST_READ or not self._bodies.take(len(piece)):
                self.close()
                return
            self._reserved += len(piece)
            self._kept.append(piece)
