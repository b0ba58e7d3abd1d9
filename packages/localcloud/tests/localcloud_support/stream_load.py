"""Many streaming clients of an address at once: each has its first event, and then the rest or a broken connection."""

import asyncio


class StreamLoad:
    """Clients of one address.

    Attributes:
        head: What follows the target of each request.
    """

    def __init__(self, at, host, token):
        self.host, _, self.port = at.partition(":")
        self.head = f" HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n".encode()

    async def ask(self, path):
        """The whole answer to a request."""
        reader, writer = await self._send(path)
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return answer

    async def begin(self, path="/stream"):
        """A stream that has had its first event."""
        reader, writer = await self._send(path)
        await reader.readuntil(b"first\n\n")
        return reader, writer

    async def begin_all(self, count, path="/stream"):
        return await asyncio.gather(*(self.begin(path) for _ in range(count)))

    @staticmethod
    async def read_event(streams, name):
        """Wait until each stream has had the event of a name."""
        await asyncio.gather(*(reader.readuntil(f"{name}\n\n".encode()) for reader, _ in streams))

    @staticmethod
    async def end(stream):
        """Whether a stream ends whole."""
        reader, writer = stream
        try:
            return b"second" in await reader.readuntil(b"\r\n0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        finally:
            writer.close()

    async def end_all(self, streams):
        """Number of the streams that end whole."""
        return sum(await asyncio.gather(*map(self.end, streams)))

    async def _send(self, path):
        reader, writer = await asyncio.open_connection(self.host, int(self.port))
        writer.write(b"GET " + path.encode() + self.head)
        return reader, writer
