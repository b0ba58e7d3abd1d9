"""Server-sent events on their way: each whole event is read for its tokens, and passed on as the caller asked for it.

A stream of vLLM's chat and completions has the tokens so far in each event, because the door asks for them. Where the
caller did not ask, they are cut out; every other byte passes unchanged. Pure.
"""

import json
import re
from typing import Any, Final

from bezel_door.calls.request_document import RequestDocument
from bezel_door.calls.routes import Api
from bezel_door.calls.token_use import StreamUse

_LONGEST: Final = 1 << 20
"""Bytes of an event that wait for its rest at most."""
_END: Final = b"\n\n"
_USAGE = re.compile(rb',"usage":(?:null|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')
_DONE: Final = b"data: [DONE]"
_ERRORS: Final = (b"event: error", b'data: {"error"')


class EventStream:
    """The events of one stream.

    Attributes:
        is_done: Whether the last event of the interface has passed.
        has_error: Whether an event had an error.
    """

    def __init__(self, api: Api, asked: RequestDocument, use: StreamUse) -> None:
        self._api, self._use = api, use
        self._cuts = api in (Api.CHAT, Api.COMPLETIONS) and not asked.shows_usage_often
        self._keeps_last = asked.shows_usage
        self._rest = b""
        self.is_done = False
        self.has_error = False

    def take(self, piece: bytes) -> bytes:
        """Take a piece of the stream; what can be passed on now, b"" while only a part of an event has arrived."""
        data = self._rest + piece if self._rest else piece
        if b"\r" in data:
            data = self._without_returns(data)
        cut = data.rfind(_END)
        if cut < 0:
            self._rest = data
            if len(data) > _LONGEST:
                self._rest = b""
                return data
            return b""
        self._rest = data[cut + 2 :]
        events = data[: cut + 2]
        if events.count(_END) == 1:
            return self._event(events)
        return b"".join([self._event(event + _END) for event in events.split(_END)[:-1]])

    def rest(self) -> bytes:
        """What is left when the stream has ended."""
        rest, self._rest = self._rest, b""
        return self._event(rest) if rest else b""

    def _without_returns(self, data: bytes) -> bytes:
        """Lines that end with a carriage return too, as lines without: a line's end may be any of both."""
        tail = b"\r" if data.endswith(b"\r") else b""
        return data[: len(data) - len(tail)].replace(b"\r\n", b"\n") + tail

    def _event(self, event: bytes) -> bytes:
        if event.startswith(_DONE):
            self.is_done = True
            return event
        if b'"usage"' not in event:
            self._use.count_event(event)
            self.has_error = self.has_error or event.startswith(_ERRORS)
            return event
        document = _document(event)
        if document is None:
            return event
        self._use.read(document)
        if not self._cuts or "usage" not in document:
            return event
        if not document.get("choices"):
            return event if self._keeps_last else b""
        return _without_usage(event, document)


def _document(event: bytes) -> dict[str, Any] | None:
    data = event.partition(b"data: ")[2]
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _without_usage(event: bytes, document: dict[str, Any]) -> bytes:
    """The event without its tokens; byte for byte where there is one place that has the form of them."""
    cut, places = _USAGE.subn(b"", event)
    if places == 1:
        return cut
    begin = event.partition(b"data: ")[0]
    rest = {name: value for name, value in document.items() if name != "usage"}
    return begin + b"data: " + json.dumps(rest, separators=(",", ":"), ensure_ascii=False).encode() + _END
