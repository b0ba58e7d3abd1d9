"""Methods, paths and bodies that no route takes: what a real vLLM answers to them, and how it counts them."""

from __future__ import annotations

import re

import pytest

SERVER = "parsers"
JSON = {"content-type": "application/json"}
NOT_ALLOWED = '{"detail":"Method Not Allowed"}'


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"])
def test_the_metrics_answer_every_method(servers, method, path):
    response = servers(SERVER).request(method, path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "content-length" not in response.headers
    assert ("vllm:num_requests_running" in response.text) == (method != "HEAD")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        *((method, "/ping", "GET") for method in ("HEAD", "PUT", "DELETE", "OPTIONS")),
        *((method, "/v1/models", "GET") for method in ("HEAD", "POST", "OPTIONS")),
        *((method, "/v1/chat/completions", "POST") for method in ("HEAD", "GET", "OPTIONS")),
    ],
)
def test_another_method_is_refused_with_the_allowed_one(servers, method, path, allowed):
    response = servers(SERVER).request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    assert response.text == ("" if method == "HEAD" else NOT_ALLOWED)


def test_pings_are_answered_by_both_methods(servers):
    assert [servers(SERVER).request(method, "/ping").status_code for method in ("GET", "POST")] == [200, 200]


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/nosuch"])
@pytest.mark.parametrize(
    ("method", "text"), [("POST", "Disallowed CORS origin"), ("FOO", "Disallowed CORS origin, method")]
)
def test_a_browser_is_told_that_its_origin_is_not_allowed(servers, path, method, text):
    asked = {"access-control-request-method": method, "access-control-request-headers": "authorization"}
    response = servers(SERVER).options(path, headers={"origin": "http://a.example", **asked})
    assert (response.status_code, response.text) == (400, text)
    assert response.headers["access-control-allow-headers"] == "authorization"
    assert "POST" in response.headers["access-control-allow-methods"]
    assert "access-control-allow-origin" not in response.headers
    assert "access-control-allow-origin" not in servers(SERVER).get("/version", headers={"origin": "http://a"}).headers


def test_a_path_with_a_slash_at_its_end_is_redirected(servers):
    response = servers(SERVER).get("/v1/models/", follow_redirects=False)
    assert (response.status_code, response.headers["location"].endswith("/v1/models")) == (307, True)


BODY = '{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,%s}'
FIELD = "  {'type': 'missing', 'loc': 'body', 'msg': 'Field required', 'input': 'None'}"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/chat/completions", "null", f"1 validation error:\n{FIELD}"),
        ("/v1/messages", "", f"1 validation error:\n{FIELD}"),
        ("/invocations", "", "JSON decode error: Expecting value: line 1 column 1 (char 0)"),
        ("/invocations", "null", "argument of type 'NoneType' is not iterable"),
        ("/invocations", "[]", "list indices must be integers or slices, not str"),
        (
            "/v1/chat/completions",
            BODY % '"temperature":NaN',
            "temperature must be a finite number, got nan. (parameter=temperature, value=nan)",
        ),
        (
            "/v1/chat/completions",
            BODY % '"top_p":NaN',
            "top_p must be in (0, 1], got nan. (parameter=top_p, value=nan)",
        ),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_its_reason(servers, path, body, message):
    response = servers(SERVER).post(path, content=body, headers=JSON)
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)


def test_a_body_that_is_no_text_is_refused_by_the_library_below(servers):
    response = servers(SERVER).post("/v1/chat/completions", content=b'\xff\xfe{"a":1}', headers=JSON)
    assert (response.status_code, response.text) == (400, '{"detail":"There was an error parsing the body"}')


@pytest.mark.slow
def test_requests_are_counted_by_the_route_that_answers_them(servers):
    client = servers(SERVER)

    def count(handler: str, method: str, status: str) -> float:
        label = f'http_requests_total{{handler="{handler}",method="{method}",status="{status}"}} '
        text = client.get("/metrics").text
        return next((float(line.removeprefix(label)) for line in text.splitlines() if line.startswith(label)), 0.0)

    rows = [
        ("/v1/models", "GET", "2xx"),
        ("/v1/models/", "GET", "3xx"),
        ("none", "POST", "4xx"),
        ("none", "PUT", "3xx"),
    ]
    before = [count(*row) for row in rows]
    client.get("/v1/models")
    client.get("/v1/models/", follow_redirects=False)
    client.post("/nosuch")
    client.put("/v1/models/", follow_redirects=False)
    client.options("/v1/models", headers={"origin": "http://a", "access-control-request-method": "POST"})
    assert [count(*row) - old for row, old in zip(rows, before, strict=True)] == [1, 1, 1, 1]
    assert not re.search(r'handler="/(metrics|ping|health)', client.get("/metrics").text)
