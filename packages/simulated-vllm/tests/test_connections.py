"""Connections of a whole server: kept after an early refusal, closed by a half-closed client, never upgraded."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from simulated_vllm_support.process import NAME, simulated_vllm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The port of a server in a process of its own."""
    with simulated_vllm(tmp_path_factory.mktemp("models")) as url:
        yield urlsplit(url).port


@pytest.mark.parametrize(("path", "status"), [("/v1/nothing", 404), ("/v1/models", 405)])
def test_a_refusal_before_the_body_keeps_the_connection(port, path, status):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, b"x" * 100_000)
    response = connection.getresponse()
    assert (response.status, response.getheader("connection")) == (status, None)
    response.read()
    sock = connection.sock
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    assert connection.sock is sock


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/models"])
def test_no_path_becomes_a_websocket(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    connection.request("GET", path, headers=headers | {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
    response = connection.getresponse()
    assert (response.status, response.getheader("connection"), response.read()) == (403, "close", b"")


def test_a_half_closed_client_gets_no_answer(port):
    # The answer takes seconds: the end of what the client sends arrives before it, however busy the machine is.
    body = f'{{"model":"{NAME}","prompt":"a","max_tokens":1000,"ignore_eos":true}}'.encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(head.encode() + b"\r\n\r\n" + body)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1024) == b""
