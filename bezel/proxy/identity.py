"""Identity token of the proxy's upstream requests: held, renewed in the background before it ends, and after a 401.

Owns when a token is replaced. Leaves out its source (`bezel.rest.credentials`). Time is the wall clock's: after the
machine slept, or its clock was set, the next request compares the token's end with the present time.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from bezel.rest.token_end import end_of

_RENEWED_SECONDS = 300.0
"""Time before its end from which a token is renewed; requests still use it meanwhile."""
_USABLE_SECONDS = 15.0
"""Time before its end from which a token is used no more: it would end on its way."""
_RETRY_SECONDS = 20.0
_ASSUMED_LIFE_SECONDS = 1800.0  # of a token that does not state its end


class TokenSource(Protocol):
    """Source of identity tokens: `bezel.rest.Credentials`."""

    def identity_token(self, audience: str) -> str:
        """A token for this audience; may take seconds."""

    def forget(self, audience: str = "") -> None:
        """Drop the cached token of this audience."""


class IdentityToken:
    """The current token for one audience. All calls are made from one event loop; the source is called in threads."""

    def __init__(self, source: TokenSource, audience: str, *, clock: Callable[[], float] = time.time) -> None:
        """Hold no token yet.

        Args:
            source: The source of tokens.
            audience: URL of the service that checks the token.
            clock: Wall clock in seconds.
        """
        self._source, self._audience, self._clock = source, audience, clock
        self._token = ""
        self._ends = self._taken = self._tried = 0.0
        self._renewal: asyncio.Task[str] | None = None

    async def current(self) -> str:
        """Return a token that is valid now.

        Raises:
            CredentialsError: There is none, and no new one can be obtained.
        """
        now = self._clock()
        # A clock that was set back would make the token seem valid for longer than it is.
        if not self._token or not self._taken <= now < self._ends - _USABLE_SECONDS:
            return await self._renewed_token()
        if now >= self._ends - _RENEWED_SECONDS and not self._tried <= now < self._tried + _RETRY_SECONDS:
            self._start_renewal()
        return self._token

    async def after_refusal(self, refused: str) -> str:
        """Return another token than the one that the service refused, which all requests share.

        Raises:
            CredentialsError: No new one can be obtained.
        """
        if refused == self._token:
            self._token = ""
            self._source.forget(self._audience)
        return await self.current()

    async def _renewed_token(self) -> str:
        # Shielded: a request that is cancelled must not cancel the renewal that others wait for.
        return await asyncio.shield(self._renewal or self._start_renewal())

    def _start_renewal(self) -> asyncio.Task[str]:
        if self._renewal is None:
            self._tried = self._clock()
            self._renewal = asyncio.create_task(self._fetch())
            self._renewal.add_done_callback(self._end_renewal)
        return self._renewal

    async def _fetch(self) -> str:
        token = await asyncio.to_thread(self._source.identity_token, self._audience)
        now = self._clock()
        self._token, self._taken, self._ends = token, now, end_of(token) or now + _ASSUMED_LIFE_SECONDS
        return token

    def _end_renewal(self, renewal: asyncio.Task[str]) -> None:
        self._renewal = None
        if not renewal.cancelled():
            # Requests that wait for it get its error. Without any, it is tried again while the held token is valid.
            renewal.exception()
