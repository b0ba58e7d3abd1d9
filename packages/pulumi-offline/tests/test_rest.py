"""The provider's HTTP client: what it tries again, after which pauses, for how long. The clock is a list of pauses."""

import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bezel_pulumi_offline.google.errors import GoogleError, NoResponseError, ProviderError
from bezel_pulumi_offline.google.rest import PlainClock, Rest
from bezel_pulumi_offline.google.retries import (
    GRACE_SECONDS,
    POLICY_SECONDS,
    REQUEST_SECONDS,
    Answer,
    repeat,
)
from pulumi_offline_support.google import DROPPED, FakeGoogle

FAR = math.inf
FIRST_PAUSES = [0.5, 1.0, 1.5, 2.5, 4.0, 6.5, 10.5]
QUOTA = "Quota exceeded for quota metric 'Reads' and limit 'Reads per minute' of service 'compute.googleapis.com'"


class Clock:
    """A clock that passes only in its waits."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rest(clock: Clock) -> Rest:
    return Rest(lambda: "not-a-real-access-token", clock)


def get(rest: Rest, base: str, **more: float) -> object:
    return rest.call("GET", f"{base}/crm/v1/projects/bezel-local", until=FAR, **more)


def error_body(code: int, message: str = "later") -> dict[str, object]:
    return {"error": {"code": code, "message": message}}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "later"),
        (500, "later"),
        (502, "later"),
        (503, "later"),
        (403, QUOTA),
        (409, "operationInProgress"),
        (400, "resourceNotReady: subnetworks"),
    ],
)
def test_a_passing_trouble_is_tried_again_after_growing_pauses(
    status: int, message: str, google: FakeGoogle, rest: Rest, clock: Clock
) -> None:
    google.fail("GET .*", status, error_body(status, message), times=5)
    assert get(rest, google.base)
    assert clock.pauses == FIRST_PAUSES[:5]
    assert len(google.requests) == 6


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "resourceNotReady"),
        (401, "no"),
        (403, "Quota exceeded for quota metric 'Reads' and limit 'Reads per day' of service 'x'"),
        (404, "no"),
        (409, "no"),
        (412, "no"),
        (501, "no"),
        (504, "no"),
    ],
)
def test_a_refusal_is_not_tried_again(status: int, message: str, google: FakeGoogle, rest: Rest, clock: Clock) -> None:
    google.fail("GET .*", status, error_body(status, message), times=9)
    with pytest.raises(GoogleError, match=f"Error {status}: "):
        get(rest, google.base)
    assert clock.pauses == []


def test_a_lasting_trouble_is_reported_in_googles_words(google: FakeGoogle, rest: Rest, clock: Clock) -> None:
    """After five and a half minutes."""
    google.fail("GET .*", 503, error_body(503), times=999)
    with pytest.raises(GoogleError, match="Error 503: later"):
        get(rest, google.base)
    # Two rounds of the transport of two minutes, and a third that the end of the grace period cuts off.
    assert clock.time == pytest.approx(330)
    assert clock.pauses[:7] == FIRST_PAUSES


def test_a_policy_is_read_for_ten_minutes(google: FakeGoogle, rest: Rest, clock: Clock) -> None:
    google.fail("GET .*", 503, error_body(503), times=999)
    with pytest.raises(GoogleError):
        get(rest, google.base, limit=POLICY_SECONDS)
    assert POLICY_SECONDS <= clock.time <= POLICY_SECONDS + GRACE_SECONDS


def test_googles_own_client_gives_up_after_two_minutes(google: FakeGoogle, rest: Rest, clock: Clock) -> None:
    google.fail("GET .*", 503, error_body(503), times=999)
    with pytest.raises(GoogleError, match="Error 503"):
        rest.call("GET", f"{google.base}/storage/v1/b/x", query={"prettyPrint": "false"}, until=FAR)
    assert clock.time == pytest.approx(120)


def test_a_change_is_tried_until_the_resources_own_timeout(google: FakeGoogle, rest: Rest, clock: Clock) -> None:
    google.fail("POST .*", 503, error_body(503), times=9999)
    until = time.monotonic() + 1200
    with pytest.raises(GoogleError, match="Error 503"):
        rest.call("POST", f"{google.base}/secretmanager/v1/projects/p/secrets", body={}, until=until)
    assert 1190 < clock.time <= 1230


def test_a_timeout_before_the_transport_gives_up_is_told_in_the_sdks_words(
    google: FakeGoogle, rest: Rest, clock: Clock
) -> None:
    google.fail("POST .*", 503, error_body(503), times=99)
    with pytest.raises(ProviderError, match=r"waiting for state to become 'success' \(timeout: 8s\)"):
        rest.call("POST", f"{google.base}/x", body={}, until=FAR, limit=8.0)
    assert clock.time == pytest.approx(38, abs=0.1)


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_dropped_connection_fails_with_eof_and_is_not_tried_again(
    method: str, google: FakeGoogle, rest: Rest, clock: Clock
) -> None:
    google.fail(f"{method} .*", DROPPED, None)
    with pytest.raises(NoResponseError, match=rf'^{method.title()} "{google.base}/x\?alt=json": EOF$') as failed:
        rest.call(method, f"{google.base}/x", until=FAR)
    assert "make up" in failed.value.advice
    assert clock.pauses == []


@pytest.mark.parametrize(("method", "borne"), [("GET", True), ("PATCH", False)])
def test_only_a_read_is_repeated_where_a_used_connection_breaks(
    method: str, borne: bool, google: FakeGoogle, rest: Rest
) -> None:
    get(rest, google.base)
    google.fail(f"{method} .*", DROPPED, None)
    if borne:
        assert get(rest, google.base)
    else:
        with pytest.raises(NoResponseError, match="EOF"):
            rest.call(method, f"{google.base}/crm/v1/projects/bezel-local", body={}, until=FAR)


@pytest.fixture
def listening() -> Iterator[Callable[[Callable[[socket.socket], object]], str]]:
    """A server that takes requests and does with each connection what the test asks."""
    server = socket.create_server(("127.0.0.1", 0))

    def start(end: Callable[[socket.socket], object]) -> str:
        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.recv(4096)
                end(connection)
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield start
    server.close()


def test_a_reset_connection_is_tried_again(
    listening: Callable[[Callable[[socket.socket], object]], str], rest: Rest, clock: Clock
) -> None:
    # With no time to linger a close sends a reset instead of an end.
    base = listening(lambda it: it.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)))
    with pytest.raises(NoResponseError, match="connection reset by peer"):
        get(rest, base)
    assert clock.pauses[:7] == FIRST_PAUSES


def test_a_response_that_is_cut_off_is_not_tried_again(
    listening: Callable[[Callable[[socket.socket], object]], str], rest: Rest, clock: Clock
) -> None:
    base = listening(lambda it: it.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"))
    with pytest.raises(NoResponseError, match="unexpected EOF"):
        get(rest, base)
    assert clock.pauses == []


def test_nobody_there_is_told_in_gos_words_and_with_what_to_do(rest: Rest, clock: Clock) -> None:
    with pytest.raises(NoResponseError, match="connect: connection refused") as failed:
        get(rest, "http://127.0.0.1:9")
    assert "make up" in failed.value.advice
    assert clock.pauses == []


def test_pauses_are_as_short_as_the_platform_is_fast() -> None:
    waited: list[float] = []
    clock = PlainClock(waited.append, 60.0)
    began = clock.now()
    clock.wait(30)
    assert waited == [0.5]
    assert 30 <= clock.now() - began < 60


@pytest.mark.slow
def test_a_busy_machine_does_not_shorten_the_retries() -> None:
    clock = PlainClock(lambda _: None, 10_000.0)
    statuses = [429] * 5 + [200]

    def slowly() -> Answer:
        time.sleep(0.02)  # 200 seconds of the platform's
        return Answer(statuses.pop(0), "")

    answer = repeat(slowly, clock, REQUEST_SECONDS)
    assert answer is not None
    assert answer.status == 200


def test_the_waits_of_one_thread_are_not_those_of_another() -> None:
    clock = PlainClock(lambda _: None, 60.0)
    began = clock.now()
    thread = threading.Thread(target=clock.wait, args=(300,))
    thread.start()
    thread.join()
    assert clock.now() - began < 60


def test_an_answer_that_is_no_json_is_said(google: FakeGoogle, rest: Rest) -> None:
    google.fail("GET .*", 200, None)
    assert get(rest, google.base) is None
    with pytest.raises(ProviderError, match="not an address of localcloud"):
        get(rest, "https://127.0.0.1:1")
