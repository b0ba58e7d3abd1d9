"""Events of a stream that differ in their text alone: what stands before and after it is learnt from one of them.

Those that have both around a text that is surely JSON need no parser of JSON, and where one frame holds one of them,
none of HTTP. Exact: whatever is not surely another such event is left to the parsers. Pure; leaves
out what an event means (`bezel.bench.client.stream`) and what was received (`bezel.bench.client.connection`).
"""

import re
from collections.abc import Callable
from typing import Final, Self

_TEXT: Final = re.compile(rb'"(?:content|text|reasoning|reasoning_content)":"([^"\\]+)"')
# ASCII of a JSON string that is not empty, its escapes but those by number among it.
_PLAIN: Final = re.compile(rb'(?:[ !#-\[\]-~]|\\["\\/bfnrt])[ !#-\[\]-~]*(?:\\["\\/bfnrt][ !#-\[\]-~]*)*').fullmatch
_CRLF: Final = b"\r\n"

# Of frames of the usual sizes: what they begin with, and its length (RFC 9112, section 7.1).
_SIZE_LINES: Final = {
    len(line) + size + len(_CRLF): (line, len(line)) for size in range(1, 2048) for line in (b"%x\r\n" % size,)
}


class Alike:
    """The events of one answer that are like one of it."""

    __slots__ = ("_after", "_before", "_before_size", "_count", "_end_size", "_frame_end")

    def __init__(self, before: bytes, after: bytes, count: Callable[[int], None]) -> None:
        """Args: before: the text of an event; after: it, line ends included; count: is called with each's instant."""
        self._before, self._after, self._count = before, after, count
        self._frame_end = after + _CRLF
        self._before_size, self._end_size = len(before), len(self._frame_end)

    @classmethod
    def learn(cls, data: bytes, count: Callable[[int], None]) -> Self | None:
        """What is like the event with these data; None where they do not hold one text.

        Args:
            data: What follows ``data:``, without line ends.
            count: Is called with the instant of each.
        """
        texts = [*_TEXT.finditer(data)]
        if len(texts) != 1:
            return None
        return cls(b"data:" + data[: texts[0].start(1)], data[texts[0].end(1) :] + b"\n\n", count)

    def event(self, at: int, event: bytes) -> bool:
        """Count what arrived at an instant if it is one event like it, line ends included; whether it was."""
        before, after = self._before, self._after
        if event.startswith(before) and event.endswith(after) and _PLAIN(event, len(before), len(event) - len(after)):
            self._count(at)
            return True
        return False

    def frame(self, at: int, data: bytearray, size: int) -> bool:
        """Count what arrived at an instant if it is one frame of "chunked" with one event like it; whether it was.

        Args:
            at: The instant (ns).
            data: Begins with what arrived.
            size: Of what arrived.
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
