"""The proxy of the gateway at the wire: the very binary, command and configuration that are deployed."""

import json
from collections.abc import Iterator

import pytest

from bezel_components.config.gateway import PROBE_ATTEMPTS, NodeAddressError, gateway_configuration
from tests.support.localcloud.gateway_harness import Gateway, Node, missing_proxy, nodes, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing_proxy()), reason=missing_proxy())]
CLOSE = "Host: gateway\r\nConnection: close\r\n\r\n"


@pytest.fixture
def single() -> Iterator[tuple[Gateway, Node]]:
    (node,) = nodes(1)
    with Gateway([node]) as gateway:
        yield gateway, node
    node.close()


@pytest.fixture
def fleet() -> Iterator[tuple[Gateway, Node, Node]]:
    first, second = nodes(2)
    with Gateway([first, second]) as gateway:
        yield gateway, first, second
    first.close()
    second.close()


NOT_SERVED = r"""
        / /invocations /ping /load /detokenize /docs /openapi.json /v1 /v1/ /V1/models /v2/models /v1models /.
        /v1/../invocations /v1/models/../../invocations /v1/./models /v1/.. /v1/%2e%2e/invocations /v1/..%2finvocations
        /%76%31/models /v1%2Fmodels /v1/models%00 //v1/models /v1//models //invocations /v1/models/ /v1/models.
        /v1/models;/x /v1/..;/invocations /v1/a\..\b /health. /health/ /health/../invocations /metrics/x /metrics%20
        /healthz /gateway/ /gateway/../invocations http://gateway/v1/models http://gateway/invocations *
"""
Single = tuple[Gateway, Node]
Fleet = tuple[Gateway, Node, Node]

# What gets through


@pytest.mark.parametrize(
    "target",
    [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/responses/resp_1-2/cancel",
        "/v1/models/acme/gemma-4.12b",
        "/v1/completions?trace=/../x",
        "/tokenize",
        "/health",
        "/version",
        "/metrics",
    ],
)
def test_what_is_served_gets_through_as_it_was_asked(single: Single, target: str) -> None:
    gateway, node = single
    assert gateway.ask(target)[0] == 200
    assert [request.target for request in node.seen] == [target]


def test_nothing_else_gets_through(single: Single) -> None:
    gateway, node = single
    answers = {
        target: gateway.raw(f"GET {target} HTTP/1.1\r\n{CLOSE}").split(b"\r\n")[0] for target in NOT_SERVED.split()
    }
    assert {target: line for target, line in answers.items() if b" 404 " not in line and b" 400 " not in line} == {}
    assert node.seen == []
    assert gateway.ask("/invocations", "POST", b"{}")[1]["error"]["code"] == 404


@pytest.mark.parametrize(
    ("target", "lines", "status"),
    [
        ("/health", f"X-Long: {'x' * 60_000}\r\n", 200),
        ("/health", "".join(f"X-{number}: x\r\n" for number in range(2000)), 200),
        ("/health", "a: \r\n" * 13_000, 200),
        (f"/v1/{'x' * 60_000}!", "", 404),
        (f"/health?{'x' * 60_000}", "", 200),
        ("/invocations", f"X-Long: {'x' * 60_000}\r\n", 404),
    ],
)
def test_the_largest_head_that_google_takes_is_answered(single: Single, target: str, lines: str, status: int) -> None:
    """A head of the most that Google's front end takes is answered by the node or in JSON."""
    gateway, _ = single
    head, _, body = gateway.raw(f"GET {target} HTTP/1.1\r\n{lines}{CLOSE}").partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    answer = json.loads(body)
    assert status == 200 or answer["error"]["code"] == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_than_get_and_post_are_refused(single: Single, method: str) -> None:
    gateway, node = single
    answer = gateway.raw(f"{method} /v1/models HTTP/1.1\r\n{CLOSE}").lower()
    assert answer.startswith(b"http/1.1 405 ")
    assert b"\r\nallow: get, post\r\n" in answer
    assert node.seen == []


def test_a_body_of_the_most_that_cloud_run_takes_gets_through(single: Single) -> None:
    gateway, _ = single
    status, body = gateway.ask("/v1/chat/completions", "POST", b"x" * (32 << 20))
    assert (status, body["bytes"]) == (200, 32 << 20)


# What is passed on


def test_the_node_learns_nothing_of_who_called(single: Single) -> None:
    gateway, node = single
    secret = {
        "Authorization": "Bearer planted",
        "X-Serverless-Authorization": "Bearer planted",
        "Proxy-Authorization": "Basic planted",
        "X-Goog-Authenticated-User-Email": "planted@acme.example",
        "X-Goog-Iap-Jwt-Assertion": "planted",
        "Cookie": "GAESA=planted",
        "X-Api-Key": "planted",
        "X-Forwarded-For": "planted",
        "Forwarded": "for=planted",
        "TE": "trailers",
        "Keep-Alive": "timeout=planted",
    }
    kept = {"Content-Type": "application/json", "X-Request-Id": "r-1", "Traceparent": "00-ab-cd-01", "User-Agent": "u"}
    gateway.ask("/v1/chat/completions", "POST", b"{}", secret | kept)
    (request,) = node.seen
    assert "planted" not in repr(request)
    assert not {name.lower() for name in secret}.intersection(request.headers)
    assert {name: request.headers.get(name.lower()) for name in kept} == kept


def test_a_connection_never_leaves_http(single: Single) -> None:
    gateway, node = single
    wants = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nHost: gateway\r\n"
    with_close = f"GET /v1/models HTTP/1.1\r\n{wants}\r\nGET /v1/other HTTP/1.1\r\n{CLOSE}"
    assert gateway.raw(with_close).count(b"HTTP/1.1 200") == 2
    assert [request.target for request in node.seen] == ["/v1/models", "/v1/other"]
    for request in node.seen:
        assert not {"upgrade", "http2-settings"}.intersection(request.headers)
        assert request.headers["connection"] == "close"


# The way back


def test_a_stream_comes_piece_by_piece(single: Single) -> None:
    gateway, node = single
    connection = gateway.connect()
    connection.request("POST", "/v1/stream", b"{}")
    answer = connection.getresponse()
    assert answer.read(13) == b"data: first\n\n"
    assert not node.go.is_set()  # the second piece does not exist yet
    node.go.set()
    assert answer.read() == b"data: second\n\n"


def test_two_requests_come_over_one_connection_of_the_caller(single: Single) -> None:
    gateway, node = single
    connection = gateway.connect()
    for target in ("/v1/models", "/version"):
        connection.request("GET", target)
        assert json.loads(connection.getresponse().read())["node"] == node.address
    assert len(node.seen) == 2


def test_a_stream_that_nobody_takes_any_more_ends_at_the_node(single: Single) -> None:
    gateway, node = single
    connection = gateway.connect()
    connection.request("POST", "/v1/talk", b"{}")
    answer = connection.getresponse()
    assert answer.read(13) == b"data: first\n\n"
    assert node.left == 0
    answer.close()
    connection.close()
    until(lambda: node.left == 1, "the node is told")


def test_a_node_that_breaks_off_is_reported_and_not_asked_twice(fleet: Fleet) -> None:
    """A node that breaks off is reported of and the request is not sent twice."""
    gateway, first, second = fleet
    status, body = gateway.ask("/v1/break", "POST", b"{}")
    assert (status, body["error"]["code"]) == (502, 502)
    assert len(first.seen) + len(second.seen) == 1


# Several nodes


def test_a_request_goes_where_the_least_are_under_way(fleet: Fleet) -> None:
    gateway, first, second = fleet
    callers = [gateway.connect() for _ in range(5)]
    at_second = []
    for number, caller in enumerate(callers[:4]):
        before = second.waiting
        caller.request("POST", "/v1/hold", b"{}")
        until(lambda number=number: first.waiting + second.waiting == number + 1, "it is under way")
        at_second += [caller] if second.waiting > before else []
    assert (first.waiting, second.waiting) == (2, 2)
    second.go.set()
    for caller in at_second:  # with its answer the gateway counts it no more
        assert caller.getresponse().read()
    assert second.waiting == 0
    second.go.clear()
    callers[4].request("POST", "/v1/hold", b"{}")
    until(lambda: first.waiting + second.waiting == 3, "it is under way")
    assert (first.waiting, second.waiting) == (2, 1)
    for caller in callers:
        caller.close()


def test_a_node_that_cannot_be_reached_costs_no_request(fleet: Fleet) -> None:
    gateway, first, second = fleet
    first.close()
    answers = [gateway.ask("/v1/chat/completions", "POST", b"{}") for _ in range(6)]
    assert [(status, body["node"]) for status, body in answers] == [(200, second.address)] * 6


def test_a_sick_node_leaves_and_returns(fleet: Fleet) -> None:
    """A sick node leaves and returns and without any the caller gets an error."""
    gateway, first, second = fleet
    assert {gateway.ask("/version")[1]["node"] for _ in range(4)} == {first.address, second.address}
    first.well = False
    until(lambda: "nodes/node-0 is DOWN" in "".join(gateway.log), "the first is out", gateway.log)
    assert {gateway.ask("/version")[1]["node"] for _ in range(4)} == {second.address}
    second.well = False
    until(lambda: gateway.ask("/version")[0] == 503, "the second is out", gateway.log)
    connection = gateway.connect()
    connection.request("POST", "/v1/chat/completions", b"{}")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    assert answer.headers["Content-Type"] == "application/json"
    assert "0 of 2 passed" in json.loads(answer.read())["error"]["message"]
    # The metrics of a sick one are those that are wanted.
    assert gateway.ask("/metrics?node=1")[1]["node"] == second.address
    first.well = True
    until(lambda: gateway.ask("/version")[0] == 200, "the first is back", gateway.log)
    assert {gateway.ask("/version")[1]["node"] for _ in range(4)} == {first.address}


def test_metrics_of_a_fleet_are_those_of_the_node_that_is_named(fleet: Fleet) -> None:
    gateway, first, second = fleet
    assert [gateway.ask(f"/metrics?node={number}")[1]["node"] for number in (0, 1, 0)] == [
        first.address,
        second.address,
        first.address,
    ]
    for target in ("/metrics", "/metrics?node=2", "/metrics?node=00", "/metrics?node=", "/metrics?other=0"):
        status, body = gateway.ask(target)
        assert status == 400
        assert body["error"]["message"].endswith("/metrics?node=N, where N is 0 or 1.")


def test_a_node_that_is_not_there_keeps_its_number() -> None:
    (node,) = nodes(1)
    with Gateway([node], absent=1) as gateway:
        assert gateway.ask("/version")[1]["node"] == node.address
        assert gateway.ask("/metrics?node=1")[1]["node"] == node.address
        assert gateway.ask("/metrics?node=0")[0] == 400
    node.close()


def test_a_node_is_found_at_whichever_of_its_possible_addresses_it_is() -> None:
    places = nodes(4)
    for other in (places[0], places[1], places[3]):
        other.close()
    with Gateway(places, machines=1) as gateway:
        answers = [gateway.ask("/v1/chat/completions", "POST", b"{}") for _ in range(6)]
        assert [(status, body.get("node")) for status, body in answers] == [(200, places[2].address)] * 6
        # There is one at a time, so its metrics need no number.
        assert gateway.ask("/metrics")[0] == 200

        places[2].close()
        until(lambda: gateway.ask("/version")[0] == 503, "the node is out", gateway.log)
        assert gateway.ask("/version")[1]["error"]["message"].endswith(": it has 1 at a time, at 4 possible addresses.")
        places[0].listen()
        until(lambda: gateway.ask("/version")[0] == 200, "the next one is there", gateway.log)
        assert gateway.ask("/version")[1]["node"] == places[0].address
    places[0].close()


def test_metrics_of_machines_with_more_possible_addresses_name_the_address() -> None:
    places = nodes(4)
    for other in places[2:]:
        other.close()
    with Gateway(places, machines=2) as gateway:
        assert gateway.ask("/metrics?node=1")[1]["node"] == places[1].address
        assert gateway.ask("/metrics?node=3")[0] == 503
        message = gateway.ask("/metrics")[1]["error"]["message"]
        assert message.endswith("where N is 0 or 1 or 2 or 3; 2 of them have a node.")
    for one in places[:2]:
        one.close()


@pytest.mark.parametrize("places", [1, 2])
def test_without_any_node_the_caller_gets_an_error(places: int) -> None:
    with Gateway([], absent=places) as gateway:
        status, body = gateway.ask("/metrics")
        assert status == 503
        assert body["error"]["message"].endswith(f": 0 of {places} passed the last health checks.")


# The start


def test_the_startup_probe_passes_with_the_first_well_node(single: Single) -> None:
    gateway, node = single
    assert gateway.ask("/gateway")[0] == 200
    assert [request.target for request in node.seen] == ["/health"]


def test_the_startup_probe_waits_for_a_node_but_not_forever() -> None:
    (node,) = nodes(1)
    node.close()
    with Gateway([node]) as gateway:
        until(lambda: "is DOWN" in "".join(gateway.log), "the check has failed", gateway.log)
        answers = [gateway.ask("/gateway")[0] for _ in range(PROBE_ATTEMPTS + 2)]
        assert answers == [503] * PROBE_ATTEMPTS + [200, 200]
        assert gateway.ask("/v1/models")[0] == 503


@pytest.mark.parametrize(
    "addresses", [[], ["None"], ["10.0.0.1", "node"], ["10.0.0.1\n    server x 1.2.3.4"], ["10.0.0"]]
)
def test_what_is_no_address_gets_into_no_configuration(addresses: list[str]) -> None:
    with pytest.raises(NodeAddressError, match="without an IPv4 address"):
        gateway_configuration(addresses, 8000)
