"""Server-sent events written straight to the connection, and what happens when the client goes away.

A stream is one handler that writes; beside it one task waits for the client to disconnect and then stops the requests.
The status line and headers go out at once, before the first token, as the real server sends them.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel.localcloud.vllm.engine import DEAD, EngineDeadError
from bezel.localcloud.vllm.errors import ApiError, compact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.types import Receive, Scope, Send

    from bezel.localcloud.vllm.call import Call
    from bezel.localcloud.vllm.choices import Piece

_DONE = b"data: [DONE]\n\n"
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]


def event(content: object) -> bytes:
    """One event."""
    return f"data: {compact(content)}\n\n".encode()


class EventStream(Response):
    """Writes a call's pieces as they come; a subclass says what a chunk looks like."""

    kind: str

    def __init__(self, call: Call, fingerprint: str) -> None:
        super().__init__()
        options = call.body.stream_options
        self.call = call
        self._head = {"id": call.id, "object": self.kind, "created": call.created, "model": call.model}
        self._fingerprint = fingerprint
        self._usage = bool(options and options.include_usage) or call.engine.settings.force_usage
        self._continuous = bool(self._usage and options and options.continuous_usage_stats)
        self._unfinished = len(call.choices)
        self._begun = False

    def opening(self, index: int) -> dict[str, Any] | None:
        """What the chunk says that opens a choice; all choices are opened when the first has a token."""

    def choice(self, piece: Piece) -> dict[str, Any]:
        """The choice of the chunk with a piece's text."""
        raise NotImplementedError

    def running_usage(self, produced: int) -> dict[str, object]:
        """`usage` of a chunk on the way, with continuous_usage_stats."""
        prompt = self.call.prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + produced, "completion_tokens": produced}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until every choice is finished or the client is gone."""
        del scope
        async with stopping_when_gone(self.call, receive):
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            while self._unfinished:
                for piece in await self.call.channel.get():
                    if piece.finish == "error":
                        await self._broken(send)
                        return
                    for chunk in self._chunks(piece):
                        await send({"type": "http.response.body", "body": event(chunk), "more_body": True})
            if self._usage:
                usage = {"usage": self.call.usage(details=False), "system_fingerprint": self._fingerprint}
                last = event({**self._head, "choices": [], **usage})
                await send({"type": "http.response.body", "body": last, "more_body": True})
            await send({"type": "http.response.body", "body": _DONE, "more_body": False})

    async def _broken(self, send: Send) -> None:
        """The engine has died amid the answer: the status line is long sent, so an event tells it."""
        error = ApiError(DEAD, "InternalServerError", status=500).body
        await send({"type": "http.response.body", "body": f"data: {json.dumps(error)}\n\n".encode() + _DONE})

    def _chunks(self, piece: Piece) -> Iterator[dict[str, Any]]:
        if not self._begun:
            self._begun = True
            for index in range(len(self.call.choices)):
                first = self.opening(index)
                if first is not None:
                    yield self._chunk(first, 0) | {"prompt_token_ids": None, "prompt_text": None}
        self._unfinished -= piece.finish is not None
        chunk = self._chunk(self.choice(piece), piece.produced)
        if piece.finish and not self._usage:
            chunk["system_fingerprint"] = self._fingerprint
        yield chunk

    def _chunk(self, choice: dict[str, Any], produced: int) -> dict[str, Any]:
        chunk: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._continuous:
            chunk["usage"] = self.running_usage(produced)
        return chunk


async def whole(call: Call, receive: Receive) -> list[Piece] | None:
    """All choices of a call that does not stream, in order; None if the client went away first.

    Raises:
        EngineDeadError: the engine died amid the answer.
    """
    pieces: list[Piece] = []
    async with stopping_when_gone(call, receive):
        while len(pieces) < len(call.choices):
            pieces += await call.channel.get()
    if any(piece.finish == "error" for piece in pieces):
        raise EngineDeadError
    return sorted(pieces, key=lambda piece: piece.index) if len(pieces) == len(call.choices) else None


@asynccontextmanager
async def stopping_when_gone(call: Call, receive: Receive) -> AsyncIterator[None]:
    """Watch for the client's going while the body runs; whatever ends the body, nothing stays in the engine."""
    handler = asyncio.current_task()
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        if handler is not None:
            handler.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not gone:
            raise
        if handler is not None:
            handler.uncancel()
    finally:
        watcher.cancel()
        call.abort()
