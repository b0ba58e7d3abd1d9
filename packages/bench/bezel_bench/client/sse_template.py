"""Template of a stream's events that differ in their text alone, learnt from one of them.

Events that match the template around a text that is surely JSON need no JSON parser, and where one frame holds one such
event, no HTTP parser either. Exact: anything else is left to the parsers. Pure; leaves out the meaning of an event
(`bezel_bench.client.stream`) and receiving it (`bezel_bench.client.connection`).
"""

import re
from collections.abc import Callable
from typing import Final, Self

_TEXT: Final = re.compile(rb'"(?:content|text|reasoning|reasoning_content)":"([^"\\]+)"')
# A non-empty JSON string of ASCII, with its escapes except the numeric ones.
_PLAIN: Final = re.compile(rb'(?:[ !#-\[\]-~]|\\["\\/bfnrt])[ !#-\[\]-~]*(?:\\["\\/bfnrt][ !#-\[\]-~]*)*').fullmatch
_CRLF: Final = b"\r\n"
# A server may name a text twice: `reasoning` and `reasoning_content`, or `content` and `text`.
_MOST_TEXTS: Final = 2

# Size lines of frames of the usual sizes, with their length (RFC 9112, section 7.1).
_SIZE_LINES: Final = {
    len(line) + size + len(_CRLF): (line, len(line)) for size in range(1, 2048) for line in (b"%x\r\n" % size,)
}


class Alike:
    """Template of the events of one response."""

    __slots__ = ("_after", "_before", "_before_size", "_between", "_count", "_end_size", "_frame_end")

    def __init__(self, before: bytes, between: bytes, after: bytes, count: Callable[[int], None]) -> None:
        """Create a template of one or two texts.

        Args:
            before: Precedes the first text.
            between: Stands between the two, from quote to quote; b"" where there is one.
            after: Follows the last, with line ends.
            count: Called with each instant.
        """
        self._before, self._between, self._after, self._count = before, between, after, count
        self._frame_end = after + _CRLF
        self._before_size, self._end_size = len(before), len(self._frame_end)

    @classmethod
    def learn(cls, data: bytes, count: Callable[[int], None]) -> Self | None:
        """Return the template of the event with these data; None where they do not hold one text, or two.

        Args:
            data: The event's data after `data:`, without line ends.
            count: Called with the instant of each event.
        """
        spans = [text.span(1) for text in _TEXT.finditer(data)]
        if not 1 <= len(spans) <= _MOST_TEXTS:
            return None
        (begin, _), (_, end) = spans[0], spans[-1]
        between = b"" if len(spans) == 1 else data[spans[0][1] : spans[1][0]]
        return cls(b"data:" + data[:begin], between, data[end:] + b"\n\n", count)

    def event(self, at: int, event: bytes) -> bool:
        """Count the arrived bytes if they are one matching event, line ends included; return whether they were."""
        size = len(event)
        if event.startswith(self._before) and event.endswith(self._after):
            return self._texts(at, event, self._before_size, size - len(self._after))
        return False

    def frame(self, at: int, data: bytearray, size: int) -> bool:
        """Count the arrived bytes if they are one frame of "chunked" with one matching event; return whether they were.

        Args:
            at: The instant (ns).
            data: Buffer that begins with the arrived bytes.
            size: The number of arrived bytes.
        """
        usual = _SIZE_LINES.get(size)
        if usual is None:
            return False
        line, begin = usual
        if data.startswith(line) and data.startswith(self._before, begin) and data.endswith(self._frame_end, 0, size):
            return self._texts(at, data, begin + self._before_size, size - self._end_size)
        return False

    def _texts(self, at: int, data: bytes | bytearray, begin: int, end: int) -> bool:
        if self._between:
            # It begins with a quote, so where a plain text precedes it the first text ends. (None does at -1.)
            first_end = data.find(self._between, begin, end)
            if not _PLAIN(data, begin, first_end):
                return False
            begin = first_end + len(self._between)
        if _PLAIN(data, begin, end):
            self._count(at)
            return True
        return False
