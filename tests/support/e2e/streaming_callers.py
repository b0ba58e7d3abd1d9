"""Callers of a load balancer's address who stream completions without a pause, and what came of each stream."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

from localcloud_support.client import until

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0
_TOKENS = 16
_LONG_PAUSE_SECONDS = 0.5  # 64 callers end some hundred streams in it
_MOST_STALLED_SECONDS = 5.0
_WHOLE = b"data: [DONE]\n\n"


class Stream(NamedTuple):
    """One stream, by the clock of its caller.

    Attributes:
        began: When it was sent.
        ended: When its last byte came, or it broke.
        failure: What came in place of a whole stream, "" for a whole one.
    """

    began: float
    ended: float
    failure: str


@dataclass
class StreamingCallers:
    """Callers of one address, each with one stream at a time, in a connection of its own; a context.

    Attributes:
        at: HOST:PORT where the balancer listens.
        domain: Name of the address.
        authority: File of the authority of its certificate.
        token: Identity token for the address.
        model: Name of the model.
        count: How many callers there are.
        streams: What came of each stream, in the order of their ends.
    """

    at: str
    domain: str
    authority: str
    token: str
    model: str
    count: int = 64
    streams: list[Stream] = field(default_factory=list)

    def __post_init__(self) -> None:
        body = json.dumps({"model": self.model, "prompt": "Hi", "max_tokens": _TOKENS, "stream": True}).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: {self.domain}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._request = head.encode() + body
        self._tls = ssl.create_default_context(cafile=self.authority)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._call_all()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(SECONDS)

    async def _call_all(self) -> None:
        await asyncio.gather(*(self._call() for _ in range(self.count)))

    async def _call(self) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            failure = await self._stream()
            self.streams.append(Stream(began, time.monotonic(), failure))

    async def _stream(self) -> str:
        host, _, port = self.at.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port), ssl=self._tls, server_hostname=self.domain)
        except OSError as error:
            return repr(error)
        try:
            writer.write(self._request)
            answer = await reader.read(-1)
        except OSError as error:
            return repr(error)
        finally:
            writer.close()
        if not answer.startswith(b"HTTP/1.1 200 "):
            return answer[:32].decode("latin-1")
        return "" if _WHOLE in answer else f"broken after {len(answer)} bytes"

    def failures(self) -> list[Stream]:
        """The streams that were not whole, in the order of their ends."""
        return [stream for stream in self.streams if stream.failure]

    def wait_for_whole_streams(self, since: float = 0.0) -> None:
        """Wait until each caller could have had a whole stream that began since then."""
        until(lambda: sum(not each.failure and each.began > since for each in self.streams) >= self.count, SECONDS)

    def stalled_seconds(self, since: float) -> float:
        """How long no stream ended since then, in pauses that only a machine without time for any of them makes.

        No longer than a machine stalls: callers that hang longer wait for what they call.
        """
        ends = [since, *sorted(stream.ended for stream in self.streams if stream.ended > since)]
        pauses = (later - earlier for earlier, later in pairwise(ends))
        return min(sum(pause for pause in pauses if pause > _LONG_PAUSE_SECONDS), _MOST_STALLED_SECONDS)

    def bursts(self, pause: float) -> list[list[Stream]]:
        """The failures, apart where none ended for so many seconds while whole streams did.

        A machine that is busy with others ends neither.
        """
        return list(_apart(self.streams, pause, self.count // 8))


def _apart(streams: list[Stream], pause: float, least: int) -> Iterator[list[Stream]]:
    burst: list[Stream] = []
    whole = 0
    for stream in streams:
        if not stream.failure:
            whole += 1
            continue
        if burst and whole >= least and stream.ended - burst[-1].ended > pause:
            yield burst
            burst = []
        burst.append(stream)
        whole = 0
    if burst:
        yield burst
