"""Channel from the engine to the handler that writes a response: pieces of text, and a wake-up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel_simulated_vllm.scheduling.request import FinishReason


@dataclass(slots=True)
class Piece:
    """New text of a choice, with its tokens and, at the end, the finish reason.

    Attributes:
        index: number of the choice.
        text: the new text of the answer.
        thought: the new text of the thoughts before it.
        tokens: the new tokens.
        produced: tokens so far, these included.
    """

    index: int
    text: str
    thought: str
    tokens: Sequence[int]
    produced: int
    finish: FinishReason | None
    stop_reason: str | int | None


class Channel:
    """Queue of pieces for one handler; `ring` is called with the first unfetched piece and later calls `wake`."""

    def __init__(self, ring: Callable[[Channel], None]) -> None:
        self._ring = ring
        self._pieces: list[Piece] = []
        self._waiter: asyncio.Future[None] | None = None

    def push(self, piece: Piece) -> None:
        """Add a piece."""
        self._pieces.append(piece)
        if len(self._pieces) == 1:
            self._ring(self)

    def wake(self) -> None:
        """Wake the handler, so that it fetches the pieces."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> list[Piece]:
        """Return all pieces since the last call; waits for the first."""
        if not self._pieces:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        pieces, self._pieces = self._pieces, []
        return pieces
