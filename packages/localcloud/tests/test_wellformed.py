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


@pytest.fixture(scope="module")
def served():
    port = ServedPort()
    yield port
    port.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_not_http_is_refused_and_seen_by_nobody(served, kind, caplog):
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(MALFORMED[kind], st.booleans())
    def refused(malformed, second):
        served.seen.clear()
        # As the first words of a connection it is HTTP/2, which is refused in its own words (test_http2_refused.py).
        before = [KEPT_OPEN] if second or kind == "another protocol" else []
        told = answer(served.port, *before, malformed)
        assert told.endswith(REFUSAL)
        assert told.count(OK) == len(served.seen) == len(before)

    refused()
    assert served.errors == []
    assert "Traceback" not in caplog.text


@pytest.mark.slow
@settings(max_examples=100)
@given(WELL_FORMED)
def test_what_is_http_gets_through_however_odd_it_looks(served, odd):
    served.seen.clear()
    assert answer(served.port, odd).startswith(OK)
    assert len(served.seen) == 1


@pytest.mark.parametrize(
    ("target", "host", "path", "query"),
    [
        (b"http://localhost:80/v1/a%20b?x=http://b/", "localhost:80", b"/v1/a%20b", b"x=http://b/"),
        (b"HTTPS://[::1]", "[::1]", b"/", b""),
        (b"http://localhost?x", "localhost", b"/", b"x"),
    ],
)
def test_a_whole_url_is_the_path_that_it_names_at_its_own_host(served, target, host, path, query):
    served.seen.clear()
    assert answer(served.port, request(b"GET " + target + b" HTTP/1.1")).startswith(OK)
    ((_, *seen, plain, _),) = served.seen
    assert seen == [host, path, query]
    assert plain == path.decode().replace("%20", " ")


@pytest.mark.slow
def test_a_whole_url_gets_nobody_past_the_door(served):
    served.seen.clear()
    assert b" 403 " in answer(served.port, request(b"GET http://page.example/v1/models HTTP/1.1")).split(b"\r\n")[0]
    assert served.seen == []


@pytest.mark.slow
def test_who_still_sends_hears_the_refusal_all_the_same(served):
    assert answer(served.port, request(b"POST v1 HTTP/1.1", b"Content-Length: 900000\r\n", b"x" * 900_000)) == REFUSAL


@pytest.mark.slow
def test_an_answer_that_has_begun_is_cut_off_where_the_rest_of_its_request_is_not_http():
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
        told = b""
        while b"begun" not in told:
            told += connection.recv(65536)
        connection.sendall(b"zz\r\n")
        while piece := connection.recv(65536):
            told += piece
    port.close()
    assert told.endswith(b"5\r\nbegun\r\n")
    assert port.errors == []
