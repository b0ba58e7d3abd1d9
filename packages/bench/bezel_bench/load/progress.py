"""Progress of a load: one line, and an estimate of the time left. Pure."""

import math

from bezel_bench.load.plan import Burst, Closed, Constant, Load, Poisson, Replay, Staged

# Silence before the progress line reports it.
_SILENT_SECONDS = 5.0


def progress_line(load: Load, seconds: float, *, begun: int, done: int, silent: float = 0.0) -> str:
    """Return the progress line of a running load.

    Args:
        load: The load.
        seconds: Time since its start.
        begun: Requests sent so far.
        done: Those of them that have succeeded or failed.
        silent: Seconds for which requests were awaited without any response.
    """
    total = load.stop.requests
    of = "" if total is None else f" of {total}"
    left = seconds_left(load, seconds, done)
    ahead = "" if left is None else f", about {left:.0f} s left"
    parts = f"{done}{of} requests answered, {begun - done} awaited, {seconds:.0f} s so far"
    if silent >= _SILENT_SECONDS:
        return f"{parts}; no answer for {silent:.0f} s, ends at {load.deadline_seconds:g} s of that (--deadline)"
    return f"{parts}{ahead}"


def seconds_left(load: Load, seconds: float, done: int) -> float | None:
    """Return the time until the last request is sent, by the plan, or completed, at the pace so far; None if unknown.

    It is unknown before the first response, and once all is sent by the plan and only responses are awaited.
    """
    end = planned_seconds(load)
    if load.stop.requests is not None and isinstance(load.pattern, Closed):
        if not done:
            return None
        end = min(end, seconds * load.stop.requests / done)
    return end - seconds if seconds < end < math.inf else None


def planned_seconds(load: Load) -> float:
    """Return when the last request begins, by the plan; infinite where it depends on responses."""
    count = math.inf if load.stop.requests is None else load.stop.requests
    match load.pattern:
        case Constant(rate) | Poisson(rate) | Burst(rate, _):
            end = count / rate
        case Staged(_, stages):
            end = sum(stage.seconds for stage in stages)
        case Replay(instants):
            end = instants[min(len(instants), load.stop.requests or len(instants)) - 1]
        case _:
            end = math.inf
    return end if load.stop.seconds is None else min(end, load.stop.seconds)
