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
# No byte that stands for itself in a JSON string is changed by it, and every other one is.
_OTHERS_CHANGED: Final = bytes(byte if 32 <= byte < 127 and byte not in b'"\\' else byte ^ 1 for byte in range(256))
# A server may name a text twice: `reasoning` and `reasoning_content`, or `content` and `text`.
_MOST_TEXTS: Final = 2

# Size lines of frames by the size of the whole frame, of the usual sizes (RFC 9112, section 7.1).
_SIZE_LINES: Final = {len(line) + size + len(_CRLF): line for size in range(1, 2048) for line in (b"%x\r\n" % size,)}


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
        if event.startswith(self._before) and event.endswith(self._after):
            return self._texts(at, event[self._before_size : len(event) - len(self._after)])
        return False

    def frame(self, at: int, data: bytes) -> bool:
        """Count the arrived bytes if they are one frame of "chunked" with one matching event; return whether they were.

        Args:
            at: The instant (ns).
            data: All that arrived.
        """
        line = _SIZE_LINES.get(len(data))
        if line is not None and data.startswith(line + self._before) and data.endswith(self._frame_end):
            return self._texts(at, data[len(line) + self._before_size : len(data) - self._end_size])
        return False

    def _texts(self, at: int, texts: bytes) -> bool:
        if self._between:
            # It begins with a quote, so where a plain text precedes it the first text ends.
            first, _, texts = texts.partition(self._between)
            if not _is_plain(first):
                return False
        if _is_plain(texts):
            self._count(at)
            return True
        return False


def _is_plain(text: bytes) -> bool:
    return (text.translate(_OTHERS_CHANGED) == text or bool(_PLAIN(text))) and text != b""
