"""One attempt of a health probe against an instance."""

import asyncio
import contextlib

from bezel.localcloud.services.cloud_run.spec import ProbeSpec

_HEADERS = "Host: 127.0.0.1\r\nUser-Agent: GoogleHC/1.0\r\nConnection: close\r\n"


async def passes(probe: ProbeSpec, address: str, timeout: float) -> bool:  # noqa: ASYNC109 - the probe's own limit
    """Whether an instance responds on its socket: to HTTP with a status from 200 to 399, to TCP with a connection."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_unix_connection(address)
            try:
                if probe.path is None:
                    return True
                writer.write(f"GET {probe.path} HTTP/1.1\r\n{_HEADERS}\r\n".encode())
                await writer.drain()
                status = (await reader.readline()).split(b" ")
                return len(status) > 1 and status[1][:1] in {b"2", b"3"}
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
