"""Server-sent events on their way: whole events are passed on at once, the beginning of one waits for its rest.

No client can use a part of an event. A stream that breaks within one can so end with an event of the proxy's own, which
the client reads as an error instead of as a part of the broken event.
"""

import re
from typing import Final

_LONGEST: Final = 1 << 20
"""Bytes of an event that wait for its rest at most."""
_ENDS = re.compile(rb"\r\n\r\n|\n\n|\r\r")
DONE: Final = b"data: [DONE]"


class EventStream:
    """The events of one stream.

    Attributes:
        is_done: Whether OpenAI's last event has passed.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._rest = b""

    def take(self, piece: bytes) -> bytes:
        """Return what can be passed on now; b"" while only a part of an event has arrived."""
        data = self._rest + piece if self._rest else piece
        if data.endswith((b"\n\n", b"\r\n\r\n")):
            cut = len(data)
        else:
            cut = max((match.end() for match in _ENDS.finditer(data)), default=0)
        if len(data) - cut > _LONGEST:
            cut = len(data)
        self._rest = data[cut:]
        self.is_done = self.is_done or DONE in data[:cut]
        return data[:cut]

    def rest(self) -> bytes:
        """Return what is left when the stream has ended as its framing defines."""
        rest, self._rest = self._rest, b""
        self.is_done = self.is_done or DONE in rest
        return rest
