"""Callers of the proxy: programs of its own user on this machine, and nothing else; no page of a browser."""

import asyncio
import errno
import json
import socket

import pytest

from bezel.proxy.server import listeners
from bezel_base.loopback.listeners import listen_error
from tests.support.other_user import sent_by_other_user
from tests.support.proxy.running import CHAT, Exchange, running_proxy

pytestmark = pytest.mark.slow


async def respond(exchange: Exchange) -> None:
    await exchange.body()
    await exchange.answer(200, b"{}")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example:8000"},
        {"Origin": "https://page.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
    ],
)
def test_a_page_of_a_browser_gets_nothing(headers):
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            answer = await proxy.post(headers=headers)
            preflight = await proxy.client.options(CHAT, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_caller")
        assert preflight.status_code == 403
        assert not [name for name in [*answer.headers, *preflight.headers] if name.startswith("access-control")]
        assert proxy.received == []

    asyncio.run(run())


def test_both_addresses_of_the_loopback_serve_and_no_other():
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            for host in ("127.0.0.1", "[::1]", "localhost"):
                assert (await proxy.client.post(f"http://{host}:{proxy.port}{CHAT}")).status_code == 200
            with socket.socket() as other:
                assert other.connect_ex(("127.0.0.2", proxy.port)) == errno.ECONNREFUSED

    asyncio.run(run())


def test_another_user_of_the_machine_gets_a_refusal():
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            request = f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\nConnection: close\r\n\r\n".encode()
            answer = await asyncio.to_thread(sent_by_other_user, f"127.0.0.1:{proxy.port}", request)
        head, _, body = answer.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 403")
        assert json.loads(body)["error"]["code"] == "foreign_caller"
        assert proxy.received == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "lines",
    [
        "Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n",
        "Host: 127.0.0.1\r\nHost: page.example\r\n",
        "Host: page.example\r\nHost: 127.0.0.1\r\n",
        "Host: user@127.0.0.1\r\n",
        "Host: 127.0.0.1\r\n page.example\r\n",
        "Host: page.example\r\n 127.0.0.1\r\n",
        "Host: page.example 127.0.0.1\r\n",
        "Host: 127.0.0.1/page.example\r\n",
        "Host:\r\n",
        "",
        "Host : 127.0.0.1\r\n",
        "Host: 127.0.0.1\r\nOrigin:\r\n",
        "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n",
        "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: 127.0.0.1\r\nsec-fetch-site:same-site\r\n",
        "Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: 127.0.0.1\r\nReferer: https://page.example/\r\n",
    ],
)
def test_a_request_of_a_page_or_to_another_name_reaches_no_server(lines):
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            for target in ("/v1/models", f"http://127.0.0.1:{proxy.port}/v1/models"):
                head = f"GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"
                assert (await proxy.raw(head.encode())).split(b" ")[1] in {b"400", b"403"}
        assert proxy.received == []

    asyncio.run(run())


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("http://169.254.169.254/computeMetadata/v1/", "GET /computeMetadata/v1/ HTTP/1.1"),
        ("/../../%2e%2e/v1/models", "GET /../../%2e%2e/v1/models HTTP/1.1"),
    ],
)
def test_no_target_leads_to_another_server(target, line):
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            assert (await proxy.raw(head.encode())).startswith(b"HTTP/1.1 200")
        assert proxy.received[0].line == line

    asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT other.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01 no HTTP at all\r\n\r\n",
    ],
)
def test_what_is_no_request_reaches_no_server(data):
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            assert (await asyncio.wait_for(proxy.raw(data), 60)).split(b" ")[1][:1] == b"4"
        assert proxy.received == []

    asyncio.run(run())


def test_a_port_that_another_program_has_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use") as raised:
            listeners(port)
    assert raised.value.errno == errno.EADDRINUSE
    assert "another process listens on it" in str(listen_error(raised.value, port))
