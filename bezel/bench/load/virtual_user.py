"""One user of a closed loop: where in the own conversation, and when present. Pure."""

from collections.abc import Iterable
from typing import Final

from bezel.bench.load.patterns import Window

_SECOND: Final = 1_000_000_000


class User:
    """A user and the own place in the load.

    Attributes:
        number: Among all users of the load, from 0.
        conversation: The one that is asked now.
        turn: The next one of it.
    """

    __slots__ = ("_windows", "conversation", "number", "turn")

    def __init__(self, number: int, windows: Iterable[Window]) -> None:
        self.number, self.conversation, self.turn = number, 0, 0
        self._windows = [(round(begin * _SECOND), until * _SECOND) for begin, until in windows]

    def present(self, at: int) -> int | None:
        """When the user may begin a request that is ready at `at` (ns since the start), now or later; None is never."""
        while self._windows and at >= self._windows[0][1]:
            del self._windows[0]
        return max(at, self._windows[0][0]) if self._windows else None
