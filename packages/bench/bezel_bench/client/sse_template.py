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

# Size lines of frames of the usual sizes, with their length (RFC 9112, section 7.1).
_SIZE_LINES: Final = {
    len(line) + size + len(_CRLF): (line, len(line)) for size in range(1, 2048) for line in (b"%x\r\n" % size,)
}


class Alike:
    """Template of the events of one response."""

    __slots__ = ("_after", "_before", "_before_size", "_count", "_end_size", "_frame_end")

    def __init__(self, before: bytes, after: bytes, count: Callable[[int], None]) -> None:
        """Args: before: precedes the text; after: follows it, with line ends; count: called with each instant."""
        self._before, self._after, self._count = before, after, count
        self._frame_end = after + _CRLF
        self._before_size, self._end_size = len(before), len(self._frame_end)

    @classmethod
    def learn(cls, data: bytes, count: Callable[[int], None]) -> Self | None:
        """Return the template of the event with these data; None where they do not hold one text.

        Args:
            data: The event's data after `data:`, without line ends.
            count: Called with the instant of each event.
        """
        texts = [*_TEXT.finditer(data)]
        if len(texts) != 1:
            return None
        return cls(b"data:" + data[: texts[0].start(1)], data[texts[0].end(1) :] + b"\n\n", count)

    def event(self, at: int, event: bytes) -> bool:
        """Count the arrived bytes if they are one matching event, line ends included; return whether they were."""
        before, after = self._before, self._after
        if event.startswith(before) and event.endswith(after) and _PLAIN(event, len(before), len(event) - len(after)):
            self._count(at)
            return True
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
        if (
            data.startswith(line)
            and data.startswith(self._before, begin)
            and data.endswith(self._frame_end, 0, size)
            and _PLAIN(data, begin + self._before_size, size - self._end_size)
        ):
            self._count(at)
            return True
        return False
