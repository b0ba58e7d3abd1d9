"""The provider's HTTP client: what it tries again, after which pauses, and when it gives up. The clock is a list."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bezel.standin_providers.google.errors import GoogleError, ProviderError
from bezel.standin_providers.google.rest import PAUSES, Rest
from tests.support.standin_providers.google import FakeGoogle

FAR = time.monotonic() + 3600


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def rest(pauses: list[float]) -> Rest:
    return Rest(lambda: "not-a-real-access-token", pauses.append)


def get(rest: Rest, base: str, until: float = FAR) -> object:
    return rest.call("GET", f"{base}/crm/v1/projects/bezel-local", until=until)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_passing_trouble_is_tried_again_after_half_a_second_and_then_a_second(
    status: int, google: FakeGoogle, rest: Rest, pauses: list[float]
) -> None:
    google.fail("GET .*", status, {"error": {"code": status, "message": "later"}}, times=2)
    assert get(rest, google.base)
    assert pauses == [0.5, 1.0]
    assert len(google.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 501, 504])
def test_a_refusal_is_not_tried_again(status: int, google: FakeGoogle, rest: Rest, pauses: list[float]) -> None:
    google.fail("GET .*", status, {"error": {"code": status, "message": "no"}}, times=9)
    with pytest.raises(GoogleError, match=f"Error {status}: no"):
        get(rest, google.base)
    assert pauses == []


def test_a_lasting_trouble_is_reported_in_googles_words_in_the_end(
    google: FakeGoogle, rest: Rest, pauses: list[float]
) -> None:
    google.fail("GET .*", 503, {"error": {"code": 503, "message": "later"}}, times=99)
    with pytest.raises(GoogleError, match="Error 503: later"):
        get(rest, google.base)
    assert pauses == list(PAUSES)


def test_nothing_is_tried_again_that_could_not_end_in_time(google: FakeGoogle, rest: Rest, pauses: list[float]) -> None:
    google.fail("GET .*", 503, {"error": {"code": 503, "message": "later"}}, times=99)
    with pytest.raises(GoogleError):
        get(rest, google.base, until=time.monotonic() + 0.2)
    assert pauses == []


@pytest.fixture
def breaking() -> Iterator[str]:
    """A server that takes requests and closes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.recv(4096)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    server.close()


def test_a_connection_that_breaks_every_time_is_said_with_what_to_do(
    breaking: str, rest: Rest, pauses: list[float]
) -> None:
    with pytest.raises(ProviderError, match=r"does not answer \(the connection breaks\).*make up"):
        get(rest, breaking)
    assert pauses == list(PAUSES)


def test_an_answer_that_is_no_json_is_said(google: FakeGoogle, rest: Rest) -> None:
    google.fail("GET .*", 200, None)
    assert get(rest, google.base) is None
    with pytest.raises(ProviderError, match="not an address of localcloud"):
        get(rest, "https://127.0.0.1:1")
