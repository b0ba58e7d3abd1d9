"""Drain of a server between loads: wait until it is idle, then read its counters.

Owns that wait: requests still running from the last load would slow the next and be counted as its own. Time is passed
in. Leaves the meaning of the counters to bezel.bench.server.counters.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.bench.server.counters import running

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.bench.server.http_probe import Ask

DEADLINE_SECONDS = 120.0
_POLL_SECONDS = 0.2
_SHOWN_EVERY = 10
# Reads on separate connections: a platform routes them to different instances, if there are several.
_LOOKS = 3
_METRICS = "/metrics"


@dataclass(frozen=True, slots=True)
class Drained:
    """Outcome of a wait for an idle server.

    Attributes:
        idle: Whether nothing ran and nothing waited; None where the server does not report it.
        seconds: The duration of the wait.
        running: Running requests at the last read, and ``waiting`` ones; -1 where the server does not report them.
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
        answer = ask(_METRICS, None)
        busy = running(answer.body.decode("utf-8", "replace")) if answer.status == 200 else None
        spent = clock.now() - began
        if busy is None:
            return Drained(None, spent, why=_unknown(answer.status, answer.body))
        if busy == (0, 0):
            return Drained(True, spent, 0, 0)
        if spent >= deadline_seconds:
            return Drained(False, spent, *busy)
        if turn % _SHOWN_EVERY == 0:
            show(f"waits for an idle server: {busy[0]} requests run, {busy[1]} wait, {spent:.0f} s so far")
        clock.sleep(_POLL_SECONDS)
        turn += 1


def looks(ask: Ask) -> list[str]:
    """Read `/metrics` several times and return the texts; empty where one is not vLLM's."""
    found = []
    for _ in range(_LOOKS):
        answer = ask(_METRICS, None)
        text = answer.body.decode("utf-8", "replace")
        if answer.status != 200 or running(text) is None:
            return []
        found.append(text)
    return found


def _unknown(status: int, body: bytes) -> str:
    if status == 200:
        return "/metrics does not say how many requests run and wait: another server than vLLM answers"
    return f"/metrics answered {f'HTTP {status}' if status else body[:100].decode('utf-8', 'replace')}"
