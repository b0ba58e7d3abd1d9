"""Pages in a real browser: no request of theirs reaches a service through the proxy, or a port of localcloud."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, async_playwright

from bezel_base.loopback.listeners import listen_on_loopback
from bezel_localcloud.http.serving import HttpServer
from tests.support.proxy.running import Exchange, running_proxy

pytestmark = pytest.mark.slow
CHROMIUM = Path(sys.executable).parent / "chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
SECONDS = 60.0
HTML = b"content-type: text/html\r\n"

# Markup of each kind of request that a page can make; `@` is the address that the request goes to.
MARKUP = {
    "img": "<img src=@>",
    "img-srcset": "<img srcset='@ 1x'>",
    "img-crossorigin": "<img crossorigin src=@>",
    "img-no-referrer": "<img referrerpolicy=no-referrer src=@>",
    "picture": "<picture><source srcset=@><img></picture>",
    "svg-image": "<svg><image href=@ width=9 height=9 /></svg>",
    "input-image": "<input type=image src=@>",
    "poster": "<video poster=@></video>",
    "video": "<video preload=auto src=@></video>",
    "audio": "<audio preload=auto src=@></audio>",
    "object": "<object data=@></object>",
    "embed": "<embed src=@>",
    "iframe": "<iframe src=@></iframe>",
    "iframe-sandbox": "<iframe sandbox src=@></iframe>",
    "script": "<script src=@></script>",
    "script-module": "<script type=module src=@></script>",
    "stylesheet": "<link rel=stylesheet href=@>",
    "css-import": "<style>@import url(@);</style>",
    "css-image": "<div style='background: url(@)'>x</div>",
    "css-font": "<style>@font-face { font-family: f; src: url(@) } b { font-family: f }</style><b>x</b>",
    "prefetch": "<link rel=prefetch href=@>",
    "preload-image": "<link rel=preload as=image href=@>",
    "preload-fetch": "<link rel=preload as=fetch crossorigin href=@>",
    "modulepreload": "<link rel=modulepreload href=@>",
    "nested-refresh": "<iframe srcdoc='<meta http-equiv=refresh content=\"0; url=@\">'></iframe>",
    "nested-img": "<iframe sandbox srcdoc='<img src=@>'></iframe>",
    "redirect": "<img src='/to?@'>",
    "redirect-frame": "<iframe src='/to?@'></iframe>",
}
# The same for scripts.
SCRIPTS = {
    "fetch": "fetch('@')",
    "fetch-no-cors": "fetch('@', {mode: 'no-cors'})",
    "fetch-no-cors-post": "fetch('@', {mode: 'no-cors', method: 'POST', body: 'x'})",
    "fetch-keepalive": "fetch('@', {mode: 'no-cors', keepalive: true})",
    "fetch-preflight": "fetch('@', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'})",
    "fetch-head": "fetch('@', {mode: 'no-cors', method: 'HEAD'})",
    "xhr": "{ const x = new XMLHttpRequest(); x.open('GET', '@'); x.send() }",
    "beacon": "navigator.sendBeacon('@', 'x')",
    "event-source": "new EventSource('@')",
    "web-socket": "new WebSocket('@'.replace('http', 'ws'))",
    "import": "import('@')",
    "image-object": "new Image().src = '@'",
    "worker-import": "new Worker(URL.createObjectURL(new Blob([`importScripts('@')`])))",
    "worker-fetch": "new Worker(URL.createObjectURL(new Blob([`fetch('@', {mode: 'no-cors'})`])))",
    "form-get": "submit('GET', '@')",
    "form-post": "submit('POST', '@')",
    "ping": "add('a', {href: '#x', ping: '@'}).click()",
    "window-open": "window.open('@')",
    "location": "add('iframe', {}).contentWindow.location = '@'",
}
FUNCTIONS = """
function add(kind, values) {
  const made = Object.assign(document.createElement(kind), values);
  document.body.append(made);
  return made;
}
function submit(method, action) {
  add('iframe', {name: method});
  add('form', {method, action, target: method}).submit();
}
"""
KINDS = [*MARKUP, *SCRIPTS]
# Those carry the page's own address as `Origin`: localcloud serves pages of this machine.
WITH_ORIGIN = {
    *("img-crossorigin", "script-module", "css-font", "preload-fetch", "modulepreload", "fetch", "xhr", "event-source"),
    *("fetch-no-cors-post", "fetch-preflight", "beacon", "web-socket", "import", "form-post", "ping"),
}


def page(target: str) -> bytes:
    """A page that makes a request of every kind to `TARGET/v1/KIND`."""

    def to(text: str, kind: str) -> str:
        return re.sub(r"@(?!import|font-face)", f"{target}/v1/{kind}", text)

    markup = "\n".join(to(text, kind) for kind, text in MARKUP.items())
    scripts = "\n".join(f"<script>{to(text, kind)}</script>" for kind, text in SCRIPTS.items())
    return f"<!DOCTYPE html><body>{markup}<script>{FUNCTIONS}</script>{scripts}".encode()


@asynccontextmanager
async def pages(target: str) -> AsyncIterator[int]:
    """A port of this machine that serves the page for a target, and redirects from `/to?URL`."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
            body = page(target) if path == b"/" else b""
            status = b"302 Found\r\nlocation: " + path[4:] if path.startswith(b"/to?") else b"200 OK"
            length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
            writer.write(b"HTTP/1.1 " + status + b"\r\n" + HTML + length + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@asynccontextmanager
async def recording(port: int, arrived: set[str]) -> AsyncIterator[int]:
    """A port in front of another that notes the kind of each request on its way."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                arrived.update(match.decode() for match in re.findall(rb"[A-Z]+ /v1/([\w-]+)\S* HTTP/1.1\r\n", data))
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(reader, before), carry(behind, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The browser; the test is left out where there is none, except in CI."""
    command = [CHROMIUM, "--version"]
    answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode:
        assert not os.environ.get("CI"), answer.stderr
        pytest.skip(answer.stderr.strip() or f"{CHROMIUM} does not start")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


async def until(holds: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - nothing tells when a browser has sent a request
            await asyncio.sleep(0.05)


async def respond(exchange: Exchange) -> None:
    await exchange.body()
    await exchange.answer(200, b"<img src=/v1/own>", HTML)


def test_no_page_reaches_a_service_through_the_proxy() -> None:
    """Neither one of the same site (another port of 127.0.0.1) nor one of another (localhost)."""

    async def run() -> None:
        async with (
            running_proxy(respond) as proxy,
            chromium() as browser,
            pages(f"http://127.0.0.1:{proxy.port}") as port,
        ):

            def answers() -> dict[str, str]:
                matches = (re.match(r"\S+ /v1/(\S+) (\d+)", line) for line in proxy.lines)
                return {match[1]: match[2] for match in matches if match}

            for name in ("127.0.0.1", "localhost"):
                proxy.lines.clear()
                opened = await browser.new_page()
                await opened.goto(f"http://{name}:{port}/", wait_until="commit")
                await until(lambda: set(KINDS) <= answers().keys())
                # And with the page itself.
                await opened.evaluate(f"setTimeout(() => {{ location = 'http://127.0.0.1:{proxy.port}/v1/left' }})")
                await until(lambda: "left" in answers())
                assert set(answers().values()) == {"403"}
                await opened.close()
            assert proxy.received == []
            # What the user types is served, and what such a page asks for.
            await (await browser.new_page()).goto(f"http://127.0.0.1:{proxy.port}/v1/typed")
            await until(lambda: len(proxy.received) == 2)
            assert [one.line.split(" ")[1] for one in proxy.received] == ["/v1/typed", "/v1/own"]

    asyncio.run(run())


def test_no_page_reaches_localcloud_but_by_cors_of_this_machine() -> None:
    async def run() -> None:
        seen: dict[str, bytes | None] = {}

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen[scope["path"].removeprefix("/v1/")] = dict(scope["headers"]).get(b"origin")
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body"})

        listener = listen_on_loopback()
        server = HttpServer(app, listener, lambda path: len(path) << 20)
        await server.start()
        arrived: set[str] = set()
        async with (
            recording(listener.getsockname()[1], arrived) as here,
            chromium() as browser,
            pages(f"http://127.0.0.1:{here}") as port,
        ):
            await (await browser.new_page()).goto(f"http://localhost:{port}/", wait_until="commit")
            await until(lambda: set(KINDS) <= arrived and seen.keys() >= WITH_ORIGIN)
        await server.close()
        assert seen == dict.fromkeys(WITH_ORIGIN, f"http://localhost:{port}".encode())

    asyncio.run(run())
