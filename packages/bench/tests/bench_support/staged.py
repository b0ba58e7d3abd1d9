"""Loads in stages at a made-up server with places for so many requests at once; each is worked on for a random time."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

from bench_support.runs import BEGAN, MS, SECOND, good_sample, measurement, noise
from bezel_bench.load.patterns import instants, user_windows
from bezel_bench.load.plan import Load, PromptPlan, Staged, Stop, Target

if TYPE_CHECKING:
    from bezel_bench.result.sample import Measured, Sample

TOKENS = 11


def load_of(pattern: Staged) -> Load:
    """The load of these stages."""
    return Load(Target("http://127.0.0.1:1", "m"), pattern, Stop(), PromptPlan(input_tokens=100, output_tokens=TOKENS))


def staged_run(pattern: Staged, *, seed: int = 0, places: int = 64, work_ms: float = 150.0) -> Measured:
    """What the load gives."""
    chance, free = noise(seed), [0] * places
    samples: list[Sample] = []

    def send(at: int, user: int = 0) -> int:
        work = round(work_ms * chance.uniform(0.7, 1.3)) * MS
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + work)
        step = work // 2 // (TOKENS - 1)
        sent = BEGAN + at
        samples.append(
            good_sample(len(samples), sent, ttft=begins + work // 2 - at, step=step, tokens=TOKENS, user=user)
        )
        return samples[-1].done - BEGAN

    if pattern.of == "rate":
        for instant in instants(pattern, Stop(), seed):
            send(round(instant * SECOND))
        return measurement(samples)
    ready = [(round(begin * SECOND), user, window) for user, windows in enumerate(user_windows(load_of(pattern)))
             for window, (begin, _) in enumerate(windows)]  # fmt: skip
    heapq.heapify(ready)
    busy_until: dict[int, int] = {}
    ends = {(user, window): until for user, windows in enumerate(user_windows(load_of(pattern)))
            for window, (_, until) in enumerate(windows)}  # fmt: skip
    for _ in itertools.count():
        if not ready:
            return measurement(sorted(samples, key=lambda one: one.index))
        at, user, window = heapq.heappop(ready)
        at = max(at, busy_until.get(user, 0))
        if at < ends[user, window] * SECOND:
            busy_until[user] = send(at, user)
            heapq.heappush(ready, (busy_until[user], user, window))
    raise AssertionError
