"""Every way in which a first connection fails: what it is, with a repair, from servers on loopback."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from bench_support.wire import certificate, send
from bezel_base.errors import UserError
from bezel_bench.commands.main import main
from bezel_bench.load.plan import Target
from bezel_bench.result.no_response import of_error
from bezel_bench.server.http_probe import asker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# What node 20.20's http2.createServer writes to a request of HTTP/1.1: SETTINGS, then GOAWAY.
NODE_H2C = bytes.fromhex("0000000400000000000000080700000000000000000000000002")
# RFC 8446, section 6: fatal alerts of no_application_protocol (node's http2.createSecureServer) and protocol_version.
NO_ALPN, OLD_TLS = bytes.fromhex("15030300020278"), bytes.fromhex("15030100020246")
MYSQL = b"J\x00\x00\x00\x0a8.0.36\x00\x0b\x00\x00\x00"
LOGIN = b"HTTP/1.1 302 Found\r\nLocation: https://accounts.example/signin\r\nContent-Length: 0\r\n\r\n"
TO_HTTPS = b"HTTP/1.1 301 Moved\r\nLocation: https://127.0.0.1/v1/models\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n<!doctype html><title>Sign in</title> ...."
GO_400 = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
NGINX_400 = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
    b"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>"
)
PROXY_407 = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
PROXY_502 = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 20\r\n\r\n<html>bad gateway..."


def answers(data: bytes, *, first: bool = False, stays: bool = False) -> Callable[[socket.socket], None]:
    """Write bytes, before a request or after it, and close or wait for the client to close."""

    def serve(made: socket.socket) -> None:
        if not first:
            made.recv(65536)
        made.sendall(data)
        while (stays or first) and made.recv(65536):
            pass

    return serve


def resets(made: socket.socket) -> None:
    """Break the connection off without a word."""
    made.recv(65536)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(made: socket.socket) -> None:
    while made.recv(65536):
        pass


def shake_hands(server: ssl.SSLSocket) -> None:
    """As real servers end a failed handshake: what the client still sends is read, or its alert would be lost."""
    try:
        server.do_handshake()
    except ssl.SSLError:
        server.shutdown(socket.SHUT_WR)
        server.settimeout(5)
        while server.recv(4096):
            pass
        raise


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server whose every connection is served by a function, one after the other; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ending = threading.Event()

        def run() -> None:
            while not ending.is_set():
                made, _ = server.accept()
                with contextlib.suppress(OSError), made:
                    if tls is None:
                        serve(made)
                    else:
                        with tls.wrap_socket(made, server_side=True, do_handshake_on_connect=False) as over_tls:
                            shake_hands(over_tls)
                            serve(over_tls)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        try:
            yield port
        finally:
            ending.set()
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
            thread.join(10)


def error_of(url: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["run", "--url", url, "--public", "--requests", "1", *more]) == 1
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "Repair: " in error
    return error


PLAIN = {
    "h2c": (answers(NODE_H2C), "speaks HTTP/2 only (without TLS: h2c)", "allow HTTP/1.1 on the server"),
    "SSH": (answers(b"SSH-2.0-Open\r\n", first=True), "is not HTTP: it begins with 'SSH-2.0-O", "correct the port"),
    "SMTP": (answers(b"220 mx.example ESMTP\r\n", first=True), "begins with '220 mx.example", "correct the port"),
    "MySQL": (answers(MYSQL, first=True), "is not HTTP: it begins with 'J....8.0.36", "correct the port"),
    "Redis": (answers(b"-ERR wrong number\r\n", stays=True), "begins with '-ERR wrong", "correct the port"),
    "TLS alert": (answers(bytes.fromhex("15030300020246")), "speaks TLS on this port", "write https://"),
    "TLS of Go": (answers(GO_400), "speaks TLS on this port", "write https://"),
    "TLS of nginx": (answers(NGINX_400), "speaks TLS on this port", "write https://"),
    "closed": (answers(b""), "closed the connection without a response", "look at its log"),
    "reset": (resets, "broke the connection off", "look at its log"),
    "login page": (answers(LOGIN), "redirects to https://accounts.example/signin", "if a sign-in page is there"),
    "to https": (answers(TO_HTTPS), "redirects to https://127.0.0.1/v1/models", "address of the server itself"),
    "page": (answers(PAGE), "a page for browsers came in place", "Identity-Aware Proxy"),
    "proxy 407": (answers(PROXY_407), "HTTP 407", "correct the address"),
    "proxy 502": (answers(PROXY_502), "HTTP 502", "correct the address"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_server_over_plain_text_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    serve, reason, repair = PLAIN[name]
    with listening(serve) as port:
        error = error_of(f"http://127.0.0.1:{port}", capsys)
    assert reason in error
    assert repair in error
    assert "no server responds" not in error


CERTIFICATES = {
    "untrusted": ({}, False, "the certificate is not trusted: self", "--ca-file"),
    "expired": ({"days": (-9, -2)}, True, "the certificate has expired", "renew it"),
    "not yet valid": ({"days": (2, 9)}, True, "the certificate is not valid yet", "clock"),
    "another address": ({"name": "127.0.0.2"}, True, "the certificate is of another address", "with a name of"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificate_that_is_not_accepted_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the probe, and by the load where the model is given and no probe needed."""
    names, trusted, reason, repair = CERTIFICATES[name]
    context, ca_file = certificate(tmp_path, **names)  # type: ignore[arg-type]
    more = ["--ca-file", ca_file] if trusted else []
    for model in ([], ["--model", "m"]):
        with listening(silent, context) as port:
            error = error_of(f"https://127.0.0.1:{port}", capsys, *more, *model)
        assert reason in error
        assert repair in error


def test_certificate_of_another_host_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context, ca_file = certificate(tmp_path)
    with listening(silent, context) as port:
        error = error_of(f"https://localhost:{port}", capsys, "--ca-file", ca_file)
    assert "the certificate is of another name" in error


TLS = {
    "plain HTTP": (answers(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "does not speak TLS on this port", "write http://"),
    "h2c": (answers(NODE_H2C), "does not speak TLS on this port", "write http://"),
    "HTTP/2 only": (answers(NO_ALPN), "speaks HTTP/2 only", "allow HTTP/1.1 on the server"),
    "older TLS": (answers(OLD_TLS), "no version of TLS that this client does", "allow TLS 1.2 or 1.3"),
    "reset": (resets, "broke the connection off", "look at its log"),
    "closed": (answers(b""), "the TLS handshake failed", "TLS settings"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TLS)
def test_server_that_fails_the_handshake_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    serve, reason, repair = TLS[name]
    with listening(serve) as port:
        error = error_of(f"https://127.0.0.1:{port}", capsys)
    assert reason in error
    assert repair in error


@pytest.mark.slow
def test_server_of_tls_is_named_to_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context, _ = certificate(tmp_path)
    with listening(silent, context) as port:
        assert "the server speaks TLS on this port" in error_of(f"http://127.0.0.1:{port}", capsys)


def test_server_that_demands_a_client_certificate_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context, ca_file = certificate(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(ca_file)
    with listening(silent, context) as port:
        error = error_of(f"https://127.0.0.1:{port}", capsys, "--ca-file", ca_file)
    assert "demands a certificate of the client" in error


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:3128"])
def test_refused_connection_names_the_proxy_that_is_not_used(
    proxy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if proxy:
        monkeypatch.setenv("http_proxy", proxy)
    error = error_of(f"http://127.0.0.1:{closed_port()}", capsys)
    assert "no server responds there: Connection refused" in error
    assert ("HTTP_PROXY is set, but this client connects directly" in error) == bool(proxy)


def test_unknown_name_is_told() -> None:
    no_response = of_error(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    assert no_response.reason == "the name cannot be resolved (Name or service not known)"
    assert not no_response.reached


def probe(url: str) -> str:
    return asker(Target(url, "m", public=True), dict, seconds=0.5)("/v1/models", None).text


@pytest.mark.slow
def test_server_that_takes_no_connection_in_time_is_named() -> None:
    """A full queue of connections drops the next one, as a firewall does."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        assert probe(f"http://127.0.0.1:{server.getsockname()[1]}") == "nothing took the connection in time"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "reason"),
    [("http", "the server sent no response within 0.5 s"), ("https", "did not begin TLS in time")],
)
def test_server_that_stays_silent_is_named(scheme: str, reason: str) -> None:
    with listening(silent) as port:
        assert reason in probe(f"{scheme}://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("data", "reason"), [(NODE_H2C, "speaks HTTP/2 only"), (b"SSH-2.0-x\r\n", "begins with 'SSH-2.0-x"), (GO_400, "")]
)
def test_load_names_what_is_not_http(data: bytes, reason: str) -> None:
    with listening(answers(data)) as port:
        (sample,) = send(f"http://127.0.0.1:{port}").samples
    assert reason in sample.detail
    assert sample.failure == ("bad_json" if reason else "http_4xx")


@pytest.mark.slow
def test_load_names_an_untrusted_certificate(tmp_path: Path) -> None:
    context, _ = certificate(tmp_path)
    with listening(silent, context) as port, pytest.raises(UserError, match=r"(?s)not trusted.*--ca-file"):
        send(f"https://127.0.0.1:{port}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_recorded_answer_of_node_is_what_node_says() -> None:
    program = (
        "const s=require('http2').createServer().on('sessionError',()=>{});"
        "s.listen(0,'127.0.0.1',()=>console.log(s.address().port));"
        "process.stdin.on('end',()=>process.exit()).resume();"
    )
    with subprocess.Popen(["node", "-e", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        port = int(node.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), 10) as made:
            made.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
            received = b""
            while data := made.recv(4096):
                received += data
        node.communicate()
    assert received == NODE_H2C
