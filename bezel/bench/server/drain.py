"""Looking at a server beside the load: waiting until it is idle, and reading its counters then.

Owns the wait between two loads: what still runs of the last one slows the next, and is counted as its. Time is passed
in. Leaves what the counters mean to bezel.bench.server.counters.
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
# Looks on connections of their own: a platform gives them to different instances, if there are several.
_LOOKS = 3
_METRICS = "/metrics"


@dataclass(frozen=True, slots=True)
class Drained:
    """How a wait for an idle server ended.

    Attributes:
        idle: Nothing ran and nothing waited; None where the server does not say.
        seconds: That it took.
        running: Requests at the last look, and ``waiting`` ones; -1 where the server does not say.
        why: What kept the answer from being known.
    """

    idle: bool | None
    seconds: float
    running: int = -1
    waiting: int = -1
    why: str = ""


@dataclass(frozen=True)
class DrainClock:
    """Seconds that only go forward, and a way to wait."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def drain(
    ask: Ask,
    show: Callable[[str], None],
    *,
    clock: DrainClock | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Drained:
    """Waits until nothing runs and nothing waits at a server.

    Args:
        ask: Asks the server.
        show: Takes a message about what is waited for, every few seconds.
        clock: Time.
        deadline_seconds: After which the server counts as busy.
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
    """What whoever answers says at `/metrics`, asked several times; empty where one look finds no vLLM's."""
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
