"""Check of a door: it passes only where callers without a key and with a wrong one are refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from bezel_smoke.base import SmokeError
from bezel_smoke.door import DoorCheckProvider
from tests.support.rest.fake_google import Answer, Call, Server, serving
from tests.support.smoke.fake_service import SERVICE

PROGRESS: Any = lambda _line: None  # noqa: E731


@pytest.fixture(scope="module")
def door() -> Iterator[Server]:
    with serving() as server:
        yield server


def check(door: Server, *statuses: int) -> list[str]:
    """Run the check on a door with these answers, the last one for all further requests; returns the sent headers."""
    answers = iter(statuses)
    sent: list[str] = []

    def respond(call: Call) -> Answer:
        sent.append(call.headers.get("authorization", "-"))
        return Answer(next(answers, statuses[-1]), json={"error": {"message": "no"}})

    door.routes[:] = [respond]
    props = {"service": SERVICE, "url": door.url, "revision": "a", "deadline_seconds": 60}
    verdict = DoorCheckProvider().run(props, PROGRESS)["verdict"]
    assert verdict == {"ok": True, "detail": "a caller without a key and one with a wrong key are refused"}
    return sent


def test_door_that_refuses_callers_without_a_key_passes(door: Server) -> None:
    first, second = check(door, 401)
    assert first == "-"
    assert second.startswith("Bearer bezel-")


@pytest.mark.parametrize("statuses", [(200,), (401, 200), (204,)])
def test_door_that_admits_a_caller_without_a_key_fails(door: Server, statuses: tuple[int, ...]) -> None:
    with pytest.raises(SmokeError, match=r"(?s)door llm.*anyone can use the server.*bezel:access.keys"):
        check(door, *statuses)
