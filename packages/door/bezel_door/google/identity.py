"""Identity token of the door for the server behind it: kept, and renewed beside requests before it ends."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

_RENEWED_SECONDS: Final = 300.0
"""Time before its end from which a token is renewed; requests still use it meanwhile."""
_USABLE_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 20.0


class Identity:
    """The token for one audience; all calls come from one event loop, and its source is called in threads."""

    def __init__(
        self, audience: str, source: Callable[[str, float], tuple[str, float]], clock: Callable[[], float] = time.time
    ) -> None:
        """Hold no token yet.

        Args:
            audience: URL for which the server's platform expects the token.
            source: Returns a token and the seconds for which it is valid.
            clock: Seconds since 1970.
        """
        self._audience, self._source, self._clock = audience, source, clock
        self._token = ""
        self._ends = self._taken = self._tried = 0.0
        self._renewal: asyncio.Task[str] | None = None

    async def current(self) -> str:
        """A token that is valid now.

        Raises:
            GoogleError: There is none.
        """
        now = self._clock()
        if not self._token or not self._taken <= now < self._ends - _USABLE_SECONDS:
            return await asyncio.shield(self._renewal or self._renew())
        if now >= self._ends - _RENEWED_SECONDS and now >= self._tried + _RETRY_SECONDS and self._renewal is None:
            self._renew()
        return self._token

    async def after_refusal(self, refused: str) -> str:
        """Another token than the one that was refused.

        Raises:
            GoogleError: There is none.
        """
        if refused == self._token:
            self._token = ""
        return await self.current()

    def _renew(self) -> asyncio.Task[str]:
        self._tried = self._clock()
        self._renewal = renewal = asyncio.create_task(self._fetch())
        renewal.add_done_callback(self._end)
        return renewal

    async def _fetch(self) -> str:
        now = self._clock()
        token, valid = await asyncio.to_thread(self._source, self._audience, now)
        self._token, self._taken, self._ends = token, now, now + valid
        return token

    def _end(self, renewal: asyncio.Task[str]) -> None:
        self._renewal = None
        if not renewal.cancelled():
            renewal.exception()  # requests that wait have it; without any, it is tried again while the token is valid
