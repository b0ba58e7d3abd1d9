"""Drain of a server between loads: wait until it is idle, then read its counters.

Owns that wait: requests still running from the last load would slow the next and be counted as its own. Time is passed
in. Leaves the meaning of the counters to bezel_bench.server.counters.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bezel_bench.server.counters import running
from bezel_bench.server.http_probe import Ask, ProbeResponse

DEADLINE_SECONDS = 120.0
_POLL_SECONDS = 0.2
_SHOWN_EVERY = 10
# Reads on separate connections: a platform routes them to different instances, if there are several.
_READS = 3
_METRICS = "/metrics"


@dataclass(frozen=True, slots=True)
class Drained:
    """Outcome of a wait for an idle server.

    Attributes:
        idle: Whether nothing ran and nothing waited; None where the server does not report it.
        seconds: The duration of the wait.
        running: Running requests at the last read, and `waiting` ones; -1 where the server does not report them.
        why: The reason why the state is unknown.
    """

    idle: bool | None
    seconds: float
    running: int = -1
    waiting: int = -1
    why: str = ""


@dataclass(frozen=True)
class DrainClock:
    """Monotonic seconds, and a way to sleep."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def drain(
    ask: Ask,
    show: Callable[[str], None],
    *,
    clock: DrainClock | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Drained:
    """Wait until no request runs or waits at a server.

    Args:
        ask: Sends the server a request.
        show: Receives a message on the wait, every few seconds.
        clock: The clock.
        deadline_seconds: The time after which the server counts as busy.
    """
    clock = clock or DrainClock()
    began = clock.now()
    turn = 0
    while True:
        response = ask(_METRICS, None)
        busy = running(response.text) if response.status == 200 else None
        spent = clock.now() - began
        if busy is None:
            return Drained(None, spent, why=_unknown(response))
        if busy == (0, 0):
            return Drained(True, spent, 0, 0)
        if spent >= deadline_seconds:
            return Drained(False, spent, *busy)
        if turn % _SHOWN_EVERY == 0:
            show(f"waits for an idle server: {busy[0]} requests run, {busy[1]} wait, {spent:.0f} s so far")
        clock.sleep(_POLL_SECONDS)
        turn += 1


def read_metrics(ask: Ask) -> list[str]:
    """Read `/metrics` several times and return the texts; empty where one is not vLLM's."""
    texts = []
    for _ in range(_READS):
        response = ask(_METRICS, None)
        texts.append(response.text)
        if response.status != 200 or running(response.text) is None:
            return []
    return texts


def _unknown(response: ProbeResponse) -> str:
    if response.status == 200:
        return "/metrics does not report running and waiting requests: another server than vLLM responds"
    return f"/metrics returned {response.refusal() if response.status else response.text[:100]}"
