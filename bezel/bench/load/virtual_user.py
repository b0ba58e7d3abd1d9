"""One user of a closed loop: position in its conversation, and times of presence. Pure."""

from collections.abc import Iterable
from typing import Final

from bezel.bench.load.patterns import Window

_SECOND: Final = 1_000_000_000


class User:
    """A user with its position in the load.

    Attributes:
        number: The user's number in the load, from 0.
        conversation: The current conversation.
        turn: Its next turn.
    """

    __slots__ = ("_windows", "conversation", "number", "turn")

    def __init__(self, number: int, windows: Iterable[Window]) -> None:
        self.number, self.conversation, self.turn = number, 0, 0
        self._windows = [(round(begin * _SECOND), until * _SECOND) for begin, until in windows]

    def present(self, at: int) -> int | None:
        """Return when the user may begin a request that is ready at `at` (ns since the start); None is never."""
        while self._windows and at >= self._windows[0][1]:
            del self._windows[0]
        return max(at, self._windows[0][0]) if self._windows else None
