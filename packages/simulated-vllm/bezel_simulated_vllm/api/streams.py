"""Server-sent events, written straight to the connection, and the cancellation when the client disconnects.

A stream is one handler that writes: one write for all pieces since the last write. Beside it one task waits for the
client to disconnect and then stops the requests. The status line and headers are sent at once, before the first token,
as by the real server. Leaves the content of the events to the subclasses.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel_simulated_vllm.api.errors import api_error, compact, json_response
from bezel_simulated_vllm.scheduling.engine import EngineDeadError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from bezel_simulated_vllm.api.errors import ApiError
    from bezel_simulated_vllm.api.generation import Call
    from bezel_simulated_vllm.scheduling.channel import Piece

_DONE = "data: [DONE]\n\n"
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]


class BrokenOffError(Exception):
    """A stream ends without its end, because the real server fails there."""


class EventStream(Response):
    """Writes the events of a call as its pieces come."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call

    def opening_events(self) -> str:
        """Return the events that do not wait for the first token."""
        return ""

    def first_events(self) -> str:
        """Return the events that are sent with the first token."""
        return ""

    def events(self, piece: Piece) -> str:
        """Return the events of a piece; none where it has no content for the client."""
        raise NotImplementedError

    def last_events(self) -> str:
        """Return the events after the last piece."""
        raise NotImplementedError

    def failure_event(self) -> str:
        """Return the error as an event, for an engine that dies after the status line was sent."""
        # The only place where the real server writes JSON with spaces.
        return f"data: {json.dumps(api_error('engine-dead').body)}\n\n{_DONE}"

    def refusal_event(self, error: ApiError) -> str | None:
        """Return the refusal of the engine as an event; None to break the connection off."""
        return f"data: {json.dumps(error.body)}\n\n{_DONE}"

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Write until every choice is finished or the client is gone."""

        async def write(text: str, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

        async with stopping_when_gone(self.call, receive):
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if opened := self.opening_events():
                await write(opened)
            if self.call.refusal is not None:
                await self._refuse(self.call.refusal, write)
                return
            unfinished, begun = len(self.call.choices), False
            while unfinished:
                pieces = await self.call.channel.get()
                written = [piece for piece in pieces if piece.finish != "error"]
                text = "".join(["" if begun or not written else self.first_events(), *map(self.events, written)])
                if len(written) < len(pieces):
                    await write(text + self.failure_event(), more=False)
                    return
                begun = True
                unfinished -= sum(piece.finish is not None for piece in pieces)
                if text and unfinished:
                    await write(text)
            await write(text + self.last_events(), more=False)

    async def _refuse(self, error: ApiError, write: Callable[..., Awaitable[None]]) -> None:
        text = self.refusal_event(error)
        if text is None:
            raise BrokenOffError
        await write(text, more=False)


class BlockStream(EventStream):
    """Base of the streams of typed events, whose pieces are parts of blocks that open and close one after another."""

    request_type = "chat_completions"

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.block: str | None = None
        self.index = -1
        self.last: Piece | None = None

    def open_block(self, block: str) -> str:
        """Return the events that open a block of that type."""
        raise NotImplementedError

    def close_block(self, block: str) -> str:
        """Return the events that close it."""
        raise NotImplementedError

    def deltas(self, piece: Piece) -> str:
        """Return the events of a piece, after `enter` for the type of each."""
        raise NotImplementedError

    def events(self, piece: Piece) -> str:
        """Return the deltas, with the events that open and close blocks around them."""
        self.last = piece
        self.call.count_parsed([piece], self.request_type, streaming=True)
        return self.deltas(piece)

    def enter(self, block: str) -> str:
        """Return the events that close the present block and open the next one; none where it is open."""
        if self.block == block:
            return ""
        closed = self.leave()
        self.block = block
        self.index += 1
        return closed + self.open_block(block)

    def leave(self) -> str:
        """Return the events that close the present block."""
        block, self.block = self.block, None
        return self.close_block(block) if block else ""


class OpenAiStream(EventStream):
    """Base of the streams of chat and completions: chunks with a head, one choice and usage, then `[DONE]`."""

    kind: str

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        options = call.body.stream_options
        self._head = {"id": call.id, "object": self.kind, "created": call.created, "model": call.model}
        self._open = f'data: {compact(self._head)[:-1]},"choices":['
        self._usage = bool(options and options.include_usage) or call.engine.settings.force_usage
        self._continuous = bool(self._usage and options and options.continuous_usage_stats)

    def running_usage(self, produced: int, _: int) -> dict[str, object]:
        """Return the `usage` of a chunk before the last, with continuous_usage_stats."""
        prompt = self.call.prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + produced, "completion_tokens": produced}

    def chunk(self, choice: str, produced: int, index: int, extra: dict[str, Any] | None = None) -> str:
        """Return one event.

        Args:
            choice: the choice as JSON.
            produced: tokens so far, for continuous usage.
            index: the number of the choice.
            extra: keys after the usage.
        """
        usage = f',"usage":{compact(self.running_usage(produced, index))}' if self._continuous else ""
        rest = "," + compact(extra)[1:-1] if extra else ""
        return f"{self._open}{choice}]{usage}{rest}}}\n\n"

    def finishing(self) -> dict[str, Any] | None:
        """Return the extra keys of the chunk that ends a choice; where there is a usage chunk, they are in it."""
        return None if self._usage else {"system_fingerprint": self.call.engine.settings.fingerprint}

    @property
    def chunk_ends(self) -> dict[str, Any]:
        """The last keys of a chunk with a piece: what no model here has."""
        return {"kv_transfer_params": None} if self.call.weight_versions else {}

    def last_events(self) -> str:
        """Return the usage, if requested, and the end mark."""
        if not self._usage:
            return _DONE
        usage = {"usage": self.call.usage(details=False), "system_fingerprint": self.call.engine.settings.fingerprint}
        return f"data: {compact({**self._head, 'choices': [], **usage})}\n\n{_DONE}"


async def respond(
    call: Call, receive: Receive, stream: EventStream | None, body: Callable[[list[Piece]], object]
) -> Response:
    """Return the stream, or the whole response once every choice is finished; nothing if the client disconnected."""
    if stream:
        return stream
    pieces = await _whole(call, receive)
    return Response() if pieces is None else json_response(body(pieces))


def typed_event(kind: str, content: dict[str, Any]) -> str:
    """Return an event that has its type before its data."""
    return f"event: {kind}\ndata: {compact(content)}\n\n"


async def _whole(call: Call, receive: Receive) -> list[Piece] | None:
    """Return all choices of a call that does not stream, in order; None if the client disconnected first.

    Raises:
        EngineDeadError: the engine died during the call.
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
    """Cancel the handler when the client disconnects; remove the requests from the engine however the block ends."""
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
    finally:
        watcher.cancel()
        call.abort()
