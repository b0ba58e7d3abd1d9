"""Whether a service answers now: asked at the wire, for a while, with the caller's token."""

from collections.abc import Callable

import pytest

from bezel.cli.in_service import why_not_serving
from bezel_base.front.refusals import refusal_named
from tests.support.rest.fake_google import Answer, Call, serving


def ask_service(*answers: Answer) -> tuple[str, list[Call], list[float]]:
    """What is said of a server that gives these answers, the last one for ever; its calls; and the pauses."""
    left, paused = list(answers), list[float]()

    def answer(_: Call) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    with serving() as server:
        server.routes[:] = [answer]
        reason = why_not_serving(server.url, lambda: "a-token", clock=_clock(paused), sleep=paused.append)
        return reason, list(server.calls), paused


def _clock(paused: list[float]) -> Callable[[], float]:
    return lambda: sum(paused)


def test_a_service_that_answers_is_asked_once_as_its_caller() -> None:
    reason, (call,), paused = ask_service(Answer(200))
    assert (reason, paused) == ("", [])
    assert (call.path, call.headers["authorization"]) == ("/health", "Bearer a-token")


def test_one_that_is_busy_for_a_moment_is_asked_again() -> None:
    reason, calls, paused = ask_service(Answer(503), Answer(reset=True), Answer(200))
    assert (reason, len(calls), len(paused)) == ("", 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(503, {"error": {"message": "no machine: 0 of 1 passed"}}), "HTTP 503: no machine: 0 of 1 passed"),
        (Answer(429, text="Rate exceeded."), f"HTTP 429: {refusal_named(429, 'Rate exceeded').cause}"),
        (Answer(500, ["a list"]), "HTTP 500"),
        (Answer(reset=True), "no response (RemoteProtocolError)"),
    ],
)
def test_what_came_instead_is_said_once_the_patience_is_over(answer: Answer, text: str) -> None:
    reason, _, paused = ask_service(answer)
    assert reason in {text, text.replace("RemoteProtocolError", "ReadError")}
    assert 15 <= sum(paused) < 20


def test_a_service_without_an_address_is_not_asked() -> None:
    assert why_not_serving("", lambda: "a-token") == "it has no address"
