"""Synthetic runs whose figures are known beforehand: no server, no clock."""

import heapq
import random
from array import array
from collections.abc import Callable, Sequence

from bezel_bench.result.columns import Columns
from bezel_bench.result.sample import ClientHealth, Measured, Sample

SECOND = 1_000_000_000
MS = 1_000_000
BEGAN = 1_000 * SECOND


def good_sample(
    index: int,
    sent: int,
    *,
    ttft: int = 100 * MS,
    step: int = 10 * MS,
    tokens: int = 11,
    user: int = 0,
    planned: int | None = None,
    begun: int | None = None,
    prompt: int = 100,
    cached: int = 0,
    per_chunk: int = 1,
) -> Sample:
    """A request that succeeded: `tokens` tokens at an even pace, `per_chunk` of them in each chunk but the last."""
    first = sent + ttft
    instants = [first + place * step for place in range(0, tokens, per_chunk)]
    last = first + (tokens - 1) * step
    if len(instants) > 1 or tokens == 1:
        instants[-1] = last
    return Sample(
        index=index, user=user, planned=sent if planned is None else planned, begun=sent if begun is None else begun,
        sent=sent, first=first, first_content=first, last=last, done=last + MS, status=200, prompt_tokens=prompt,
        output_tokens=tokens, cached_tokens=cached, reasoning_tokens=0, asked_tokens=tokens,
        chunks=array("q", instants),
    )  # fmt: skip


def failed_sample(index: int, sent: int, kind: str, *, after: int = SECOND, user: int = 0, detail: str = "") -> Sample:
    """A request that failed."""
    return Sample(
        index=index,
        user=user,
        planned=sent,
        begun=sent,
        sent=sent,
        done=sent + after,
        failure=kind,
        detail=detail,
        asked_tokens=11,
    )


def closed_loop(
    users: int, rounds: int, make: Callable[[int, int, int], Sample] | None = None, *, stagger: int = 0
) -> Measured:
    """A closed loop: each user sends when the last answer is complete.

    Args:
        users: How many.
        rounds: Requests of each.
        make: A sample of (index, sent, user); by default one of 11 tokens.
        stagger: Nanoseconds between the first requests of two users.
    """
    make = make or (lambda index, sent, user: good_sample(index, sent, user=user))
    samples: list[Sample] = []
    free = {user: BEGAN + user * stagger for user in range(users)}
    for index in range(users * rounds):
        user = min(free, key=lambda one: free[one])
        samples.append(make(index, free[user], user))
        free[user] = samples[-1].done
    return measurement(samples)


def measurement(samples: list[Sample], **health: float) -> Measured:
    """What a load gave, by a client that was never in a hurry."""
    ended = max((one.done for one in samples), default=BEGAN)
    client = ClientHealth(wall_seconds=(ended - BEGAN) / SECOND, **{"stall_p99_ms": 0.0} | health)
    return Measured(samples, BEGAN, ended, client)


def columns(run: Measured) -> Columns:
    """Its requests by field."""
    return Columns.of(run.samples)


def noise(seed: int) -> random.Random:
    """Chance that is the same each time."""
    return random.Random(seed)  # noqa: S311 - noise, no secrets


def queueing_loop(instants: Sequence[int], services: Sequence[int], places: int) -> Measured:
    """An open loop at a server that works for so many at once, the others waiting in their order.

    Args:
        instants: When requests are planned and sent, in ns since the begin.
        services: How long the server works for each: half of it up to the first token.
        places: That it has.
    """
    free = [0] * places
    samples = []
    for index, (at, service) in enumerate(zip(instants, services, strict=True)):
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + service)
        first = begins + service // 2
        samples.append(
            good_sample(index, BEGAN + at, ttft=first - at, step=max((service - service // 2 - MS) // 10, 1))
        )
    return measurement(samples)
