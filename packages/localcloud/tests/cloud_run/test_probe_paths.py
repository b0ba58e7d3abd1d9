"""A probe's path on the wire: percent-encoded as an HTTP client sends it, so that any path can be probed."""

import asyncio

import pytest

from bezel_localcloud.services.cloud_run.runtime.upstream import passes
from bezel_localcloud.services.cloud_run.spec import ProbeSpec


async def _probe(path, address, status="200 OK"):
    """(whether the probe passes, the request target that the instance got)."""
    targets = []

    async def respond(reader, writer):
        targets.append((await reader.readline()).decode("ascii").split(" ", 1)[1].rpartition(" ")[0])
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(respond, address):
        passed = await passes(ProbeSpec(path, 0, 0.0, 1.0, 1.0, 1), address, 5.0)
    return passed, targets


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/health", "/health"),
        ("/v1/models?deep=1&x=a,b", "/v1/models?deep=1&x=a,b"),
        ("/is it well", "/is%20it%20well"),
        ("/gesund/ä", "/gesund/%C3%A4"),
        ("/a%20b", "/a%20b"),
        ("/100%", "/100%25"),
        ("/a#b", "/a"),
        ("/a\r\nX: y", "/a%0D%0AX:%20y"),
        ("/lone\ud800", "/lone%ED%A0%80"),
    ],
)
def test_any_path_reaches_the_instance_as_a_valid_request_target(path, target, tmp_path):
    assert asyncio.run(_probe(path, str(tmp_path / "socket"))) == (True, [target])


def test_a_path_that_the_instance_refuses_fails_the_probe(tmp_path):
    assert asyncio.run(_probe("/ä", str(tmp_path / "socket"), "404 Not Found")) == (False, ["/%C3%A4"])
