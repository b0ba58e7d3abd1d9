"""An event loop whose time jumps to the next timer: what waits for minutes is tested at once, and never flakes.

For code without sockets and processes: nothing from outside arrives while time stands still.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Jumping(selectors.SelectSelector):
    """Never waits: the time that it should have waited has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(0.0, timeout or 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(main: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns, with no second of this machine spent on its waits."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
