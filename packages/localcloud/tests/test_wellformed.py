"""Requests that are not HTTP/1.1: refused by localcloud's ports as by Google's front end, before any server behind."""

import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bezel_localcloud.http.serving import REFUSAL
from localcloud_support.malformed_requests import MALFORMED, TARGET, WELL_FORMED, answer, request
from localcloud_support.served_port import ServedPort

KEPT_OPEN = b"GET " + TARGET + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_not_http_is_refused_and_seen_by_nobody(served_port, kind, caplog):
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(MALFORMED[kind], st.booleans())
    def check_refusal(malformed, second):
        served_port.seen.clear()
        # As the first words of a connection it is HTTP/2, which is refused in its own words (test_http2_refused.py).
        before = [KEPT_OPEN] if second or kind == "another protocol" else []
        content = answer(served_port.port, *before, malformed)
        assert content.endswith(REFUSAL)
        assert content.count(OK) == len(served_port.seen) == len(before)

    check_refusal()
    assert served_port.errors == []
    assert "Traceback" not in caplog.text


@pytest.mark.slow
@settings(max_examples=100)
@given(WELL_FORMED)
def test_what_is_http_gets_through_however_odd_it_looks(served_port, odd):
    served_port.seen.clear()
    assert answer(served_port.port, odd).startswith(OK)
    assert len(served_port.seen) == 1


@pytest.mark.parametrize(
    ("target", "host", "path", "query"),
    [
        (b"http://localhost:80/v1/a%20b?x=http://b/", "localhost:80", b"/v1/a%20b", b"x=http://b/"),
        (b"HTTPS://[::1]", "[::1]", b"/", b""),
        (b"http://localhost?x", "localhost", b"/", b"x"),
    ],
)
def test_a_whole_url_is_the_path_that_it_names_at_its_own_host(served_port, target, host, path, query):
    served_port.seen.clear()
    assert answer(served_port.port, request(b"GET " + target + b" HTTP/1.1")).startswith(OK)
    ((_, *seen, plain, _),) = served_port.seen
    assert seen == [host, path, query]
    assert plain == path.decode().replace("%20", " ")


@pytest.mark.slow
def test_a_whole_url_gets_nobody_past_the_door(served_port):
    served_port.seen.clear()
    assert (
        b" 403 " in answer(served_port.port, request(b"GET http://page.example/v1/models HTTP/1.1")).split(b"\r\n")[0]
    )
    assert served_port.seen == []


@pytest.mark.slow
def test_who_still_sends_hears_the_refusal_all_the_same(served_port):
    assert (
        answer(served_port.port, request(b"POST v1 HTTP/1.1", b"Content-Length: 900000\r\n", b"x" * 900_000)) == REFUSAL
    )


@pytest.mark.slow
def test_an_answer_is_cut_off_where_its_request_is_not_http():
    """An answer that has begun is cut off where the rest of its request is not HTTP."""

    class Hasty(ServedPort):
        async def app(self, _, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            while (await receive())["type"] == "http.request":
                pass
            await send({"type": "http.response.body", "body": b"more"})

    port = Hasty()
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port.port), 20) as connection:
        connection.sendall(head)
        content = b""
        while b"begun" not in content:
            content += connection.recv(65536)
        connection.sendall(b"zz\r\n")
        while piece := connection.recv(65536):
            content += piece
    port.close()
    assert content.endswith(b"5\r\nbegun\r\n")
    assert port.errors == []
