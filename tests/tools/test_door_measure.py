"""The measurement of a door: a stream counts only with each of its events in order, and its end."""

import asyncio

import pytest

from tools.measure.requests.door import AnsweringServer, is_whole_stream

EVENTS = 3


class CuttingServer(AnsweringServer):
    """A server whose streams lack what they end with, or a piece before."""

    def __init__(self, left_out: bytes) -> None:
        super().__init__()
        self._left_out = left_out

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, without the pieces that hold those bytes."""
        write, left_out = writer.write, self._left_out

        def pass_on(piece: bytes) -> None:
            if left_out not in piece:
                write(piece)

        writer.write = pass_on  # type: ignore[method-assign, assignment]
        await reader.readuntil(b"\r\n\r\n")
        await self._stream(writer, {"events": EVENTS})
        writer.close()


async def _read(server: AnsweringServer) -> bool:
    served = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    async with served:
        return await is_whole_stream(served.sockets[0].getsockname()[1], "key", EVENTS)


@pytest.mark.parametrize(
    ("left_out", "is_whole"), [(b"no such piece", True), (b"[DONE]", False), (b"token2", False), (b"token3", False)]
)
def test_stream_is_whole_only_with_all_events_and_its_end(left_out: bytes, is_whole: bool) -> None:
    assert asyncio.run(_read(CuttingServer(left_out))) is is_whole
