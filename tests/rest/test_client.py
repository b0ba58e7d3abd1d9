"""The client against real sockets: what is repeated, what is not, and what an error says."""

import threading
from pathlib import Path

import pytest

from bezel.rest import ApiError, Credentials, GoogleClient, UnreachableError
from tests.support.clock import Clock
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, Server, key_file, token_route


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(server: Server, tmp_path: Path, clock: Clock) -> GoogleClient:
    server.routes.append(token_route())
    credentials = Credentials(environ={"GOOGLE_APPLICATION_CREDENTIALS": str(key_file(tmp_path, server))})
    return GoogleClient(
        credentials, clock=clock, sleep=clock.sleep, dice=lambda: 1.0, timeout_seconds=60, deadline_seconds=10
    )


def answers(server: Server, *prepared: Answer) -> list[Call]:
    """Lets /x answer these in turn, the last one for ever; returns the list that its calls are put in."""
    seen: list[Call] = []

    def route(call: Call) -> Answer | None:
        if call.path != "/x":
            return None
        seen.append(call)
        return prepared[min(len(seen), len(prepared)) - 1]

    server.routes.append(route)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Answer(429), Answer(500), Answer(502), Answer(503), Answer(504), Answer(reset=True)])
def test_a_get_outlives_a_fault_of_the_server(
    server: Server, client: GoogleClient, clock: Clock, fault: Answer
) -> None:
    seen = answers(server, fault, fault, Answer(json={"ok": True}))
    assert client.get(f"{server.url}/x") == {"ok": True}
    assert len(seen) == 3
    assert clock.slept == [0.5, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 403, 404, 409, 501])
def test_a_refusal_is_final(server: Server, client: GoogleClient, clock: Clock, status: int) -> None:
    error = {"error": {"code": status, "message": "because", "status": "SO_IT_IS"}}
    seen = answers(server, Answer(status, error))
    with pytest.raises(ApiError) as caught:
        client.get(f"{server.url}/x")
    assert (caught.value.status, caught.value.reason, caught.value.message) == (status, "SO_IT_IS", "because")
    assert len(seen) == 1
    assert clock.slept == []


@pytest.mark.parametrize("fault", [Answer(500), Answer(503), Answer(reset=True)])
def test_a_post_is_never_sent_twice_when_the_first_may_have_worked(
    server: Server, client: GoogleClient, fault: Answer
) -> None:
    seen = answers(server, fault, Answer(json={}))
    with pytest.raises((ApiError, UnreachableError)):
        client.post(f"{server.url}/x", json={})
    assert len(seen) == 1


def test_a_post_is_repeated_when_turned_away_or_declared_repeatable(server: Server, client: GoogleClient) -> None:
    """A post is sent again when it was turned away or declared repeatable."""
    seen = answers(server, Answer(429), Answer(json={"ok": 1}), Answer(503), Answer(json={"ok": 2}))
    assert client.post(f"{server.url}/x", json={}) == {"ok": 1}
    assert client.post(f"{server.url}/x", json={}, idempotent=True) == {"ok": 2}
    assert len(seen) == 4


def test_the_deadline_ends_the_repeats_with_the_last_failure(
    server: Server, client: GoogleClient, clock: Clock
) -> None:
    answers(server, Answer(503, {"error": {"message": "still down", "status": "UNAVAILABLE"}}))
    with pytest.raises(ApiError, match="still down"):
        client.get(f"{server.url}/x")
    assert clock.now < 10


@pytest.mark.slow
@pytest.mark.parametrize(("least", "answered"), [(60.0, True), (0.1, False)])
def test_an_attempt_has_its_least_time_whatever_the_deadline_leaves(
    server: Server, least: float, answered: bool
) -> None:
    """An attempt has its least time however little of the deadline is left."""
    given_up = threading.Event()

    def route(_: Call) -> Answer:
        if not answered:
            given_up.wait(60)
        return Answer(chunks=[0.1, b"{}"])  # longer than the deadline

    server.routes.append(route)
    credentials = Credentials(environ={"GOOGLE_OAUTH_ACCESS_TOKEN": "t"})
    with GoogleClient(credentials, deadline_seconds=0.001, min_timeout_seconds=least) as client:
        if answered:
            assert client.get(f"{server.url}/x") == {}
        else:
            with pytest.raises(UnreachableError, match="ReadTimeout"):
                client.get(f"{server.url}/x")
    given_up.set()


def test_the_server_may_ask_for_a_longer_wait(server: Server, client: GoogleClient, clock: Clock) -> None:
    answers(server, Answer(429, headers={"retry-after": "7"}), Answer(json={}))
    client.get(f"{server.url}/x")
    assert clock.slept == [7.0]


@pytest.mark.parametrize("address", ["127.0.0.1:9", "localhost:9", "nobody.invalid"])
def test_first_request_to_no_server_is_sent_once(client: GoogleClient, clock: Clock, address: str) -> None:
    with pytest.raises(UnreachableError, match=rf"GET http://{address}/x: no response \(ConnectError"):
        client.get(f"http://{address}/x?secret=1")
    assert clock.slept == []


def test_server_that_has_answered_before_is_asked_again(server: Server, client: GoogleClient, clock: Clock) -> None:
    answers(server, Answer(json={}))
    client.get(f"{server.url}/x")
    with pytest.raises(UnreachableError, match="ConnectError"):
        client.get("http://127.0.0.1:9/x")
    assert sum(clock.slept) > 1


def test_a_refused_token_is_renewed_once(server: Server, client: GoogleClient, clock: Clock) -> None:
    seen = answers(server, Answer(401), Answer(json={"ok": True}), Answer(401))
    assert client.get(f"{server.url}/x") == {"ok": True}
    with pytest.raises(ApiError, match="401"):
        client.get(f"{server.url}/x")
    assert len(seen) == 4
    assert server.paths().count("POST /token") == 3
    assert clock.slept == []


def test_each_request_carries_the_token_and_no_error_does(server: Server, client: GoogleClient) -> None:
    seen = answers(
        server, Answer(403, {"error": {"message": f"{ACCESS_TOKEN} may not", "status": "PERMISSION_DENIED"}})
    )
    with pytest.raises(ApiError) as caught:
        client.get(f"{server.url}/x", params={"token": "planted-query"})
    assert seen[0].headers["authorization"] == f"Bearer {ACCESS_TOKEN}"
    assert "planted" not in str(caught.value) + repr(caught.value) + repr(client.credentials)


def test_pages_are_joined_in_order(server: Server, client: GoogleClient) -> None:
    seen = answers(
        server, Answer(json={"things": [{"n": 1}, {"n": 2}], "nextPageToken": "t"}), Answer(json={"things": [{"n": 3}]})
    )
    assert [thing["n"] for thing in client.pages(f"{server.url}/x", "things", params={"pageSize": 2})] == [1, 2, 3]
    assert [call.query for call in seen] == [{"pageSize": "2"}, {"pageSize": "2", "pageToken": "t"}]


def test_a_list_without_entries_is_empty(server: Server, client: GoogleClient) -> None:
    answers(server, Answer(json={}))
    assert list(client.pages(f"{server.url}/x", "things")) == []
