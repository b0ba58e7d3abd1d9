"""Body of a request: passed on as it arrives, and kept up to a limit so that the request can be sent again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.types import Receive, Scope

KEPT: Final = 8 << 20
"""Longest body in bytes that is kept; a request with a longer one is sent once."""


class ClientGoneError(Exception):
    """The client closed its connection before its request was complete."""


class RequestBody:
    """Body of one request.

    Attributes:
        is_handed_over: Whether the latest sending passed all of it on, so that the service may have acted on it.
        is_kept: Whether it can be sent again.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        """Read nothing yet."""
        headers = dict(scope["headers"])
        self.is_empty = b"transfer-encoding" not in headers and headers.get(b"content-length", b"0") == b"0"
        """Whether the request has none, by its headers."""
        self.is_handed_over, self.is_kept = False, True
        self._receive = receive
        self._read: list[bytes] = []
        self._size = 0
        self._ended = asyncio.Event()
        if self.is_empty:
            self._ended.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body, from its beginning at each call.

        Raises:
            ClientGoneError: The client closed its connection.
        """
        self.is_handed_over = False
        read = list(self._read)
        for number, piece in enumerate(read, 1):
            # Set before the last piece: whether that arrived cannot be known after it was handed over.
            self.is_handed_over = self._ended.is_set() and number == len(read)
            yield piece
        while not self._ended.is_set():
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientGoneError
            if not message.get("more_body"):
                self._ended.set()
            if piece := message.get("body", b""):
                self._keep(piece)
                self.is_handed_over = self._ended.is_set()
                yield piece
        self.is_handed_over = True

    async def until_client_leaves(self) -> None:
        """Return when the client has closed its connection; it is watched once the whole body has been read."""
        await self._ended.wait()
        while (await self._receive())["type"] == "http.request":
            pass

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self.is_kept = self.is_kept and self._size <= KEPT
        if self.is_kept:
            self._read.append(bytes(piece))
        else:
            self._read.clear()
