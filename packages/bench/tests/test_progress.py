"""Progress of a load, and the time that it may still take, by its plan and by its pace."""

from typing import Any

import pytest

from bezel_bench.load.plan import Closed, Constant, Load, PromptPlan, Replay, Stage, Staged, Stop, Target
from bezel_bench.load.progress import planned_seconds, progress_line, seconds_left

INFINITE = float("inf")


def load(pattern: Any, **stop: Any) -> Load:
    return Load(Target("http://127.0.0.1:1", "m"), pattern, Stop(**stop), PromptPlan())


@pytest.mark.parametrize(
    ("pattern", "stop", "seconds"),
    [
        (Closed(4), {"requests": 8}, INFINITE),
        (Closed(4), {"requests": 8, "seconds": 30.0}, 30.0),
        (Constant(2.0), {"requests": 8}, 4.0),
        (Constant(2.0), {"requests": 80, "seconds": 3.0}, 3.0),
        (Staged("users", (Stage(1, 2.0), Stage(2, 3.0))), {}, 5.0),
        (Staged("rate", (Stage(1, 2.0), Stage(2, 3.0))), {"seconds": 4.0}, 4.0),
        (Replay((0.0, 1.0, 7.0)), {}, 7.0),
        (Replay((0.0, 1.0, 7.0)), {"requests": 2}, 1.0),
    ],
)
def test_the_plan_says_when_the_last_request_begins(pattern: Any, stop: dict[str, Any], seconds: float) -> None:
    assert planned_seconds(load(pattern, **stop)) == seconds


def test_a_silent_server_is_shown_with_when_the_load_ends_for_it() -> None:
    line = progress_line(load(Closed(4), requests=40), 65.0, begun=14, done=10, silent=42.4)
    assert line.endswith("4 awaited, 65 s so far; no answer for 42 s, ends at 300 s of that (--deadline)")
    assert "no answer" not in progress_line(load(Closed(4), requests=40), 65.0, begun=14, done=10, silent=4.9)


def test_closed_loop_is_estimated_by_its_pace_from_the_first_answer_on() -> None:
    """Before the first answer no time is estimated."""
    closed = load(Closed(4), requests=40)
    assert seconds_left(closed, 5.0, 0) is None
    assert seconds_left(load(Closed(4), requests=40, seconds=300.0), 5.0, 0) is None
    assert seconds_left(load(Closed(4), seconds=30.0), 5.0, 0) == 25.0
    assert seconds_left(closed, 5.0, 10) == 15.0
    assert seconds_left(load(Closed(4), requests=40, seconds=8.0), 5.0, 10) == 3.0
    assert seconds_left(load(Constant(2.0), requests=40), 15.0, 10) == 5.0
    assert seconds_left(load(Constant(2.0), requests=40), 90.0, 10) is None, "all is sent: answers come when they come"


def test_the_line_says_what_is_known_and_no_more() -> None:
    assert progress_line(load(Closed(4), requests=40), 5.0, begun=14, done=10) == (
        "10 of 40 requests answered, 4 awaited, 5 s so far, about 15 s left"
    )
    assert progress_line(load(Closed(4), requests=40), 5.0, begun=4, done=0) == (
        "0 of 40 requests answered, 4 awaited, 5 s so far"
    )
