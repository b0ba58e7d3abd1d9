"""Made-up servers for sweeps: throughput over contexts and users by other laws than the one that sweeps fit.

Each is drawn by a seed: how it saturates, whether it falls beyond, how it declines in the context, how noisy it is.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CONTEXTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
FEWER_USERS = (1, 8, 64, 128, 256, 512, 1024, 2048)
LAWS = ("batches", "universal", "corner", "collapse")


@dataclass(frozen=True)
class Server:
    """One made-up server: requests a second, truly and as one measurement tells."""

    law: str
    noise: float
    contexts: tuple[int, ...]
    users: tuple[int, ...]
    truth: dict[tuple[int, int], float]
    measured: dict[tuple[int, int], float]


def server(seed: int, law: str = "", contexts: tuple[int, ...] = CONTEXTS, users: tuple[int, ...] = USERS) -> Server:
    """One by its number; `law` of LAWS, else by the number too."""
    chances = random.Random(seed)  # noqa: S311 - no secret
    law = law or LAWS[seed % len(LAWS)]
    rate = _rate(law, chances)
    noise = math.exp(chances.uniform(math.log(0.005), math.log(0.07)))
    truth = {(context, count): rate(context, count) for context in contexts for count in users}
    measured = {}
    for place, value in truth.items():
        outlier = chances.random() < 0.02
        factor = chances.uniform(0.6, 0.85) if outlier else math.exp(chances.gauss(0.0, noise))
        measured[place] = value * factor
    return Server(law, noise, contexts, users, truth, measured)


def _rate(law: str, chances: random.Random) -> Callable[[int, int], float]:
    def between(low: float, high: float) -> float:
        return math.exp(chances.uniform(math.log(low), math.log(high)))

    answer = chances.choice((1, 16, 64, 128))
    overhead = between(0.01, 0.2)  # seconds of network and start, for each request
    step, read, compute = between(0.005, 0.05), between(1e-9, 1e-7), between(2e-6, 2e-4)
    fixed = between(1e-3, 4e-2)  # of the server's time, for each request
    places = chances.choice((8, 16, 64, 256, 512))

    def batches(context: int, users: int) -> float:
        """Steps of a batch: weights read once, the cache for each, prompts computed one after another."""
        batch = min(users, places)
        seconds = overhead + answer * (step + read * batch * context) + batch * (context * compute + fixed)
        return batch / seconds

    contention, coherence = between(0.01, 0.1), chances.choice((0.0, between(1e-7, 1e-5)))

    def universal(context: int, users: int) -> float:
        """Gunther's law, its scale by a fixed time and one for each token."""
        share = contention * (1 + context / between_context) / (1 + contention * context / between_context)
        alone = 1 / (overhead + answer * step + context * compute)
        return alone * users / (1 + share * (users - 1) + coherence * users * (users - 1))

    between_context = between(300, 30000)
    bend, slope = between(50, 5000), chances.uniform(0.3, 1.0)

    def corner(context: int, users: int) -> float:
        """Two straight lines that meet, in a context that bends."""
        decline = (1 + context / bend) ** -slope
        return min(users * 5.0 * decline**0.6, 40.0 * decline)

    edge, fall = chances.choice((200, 400, 800)), chances.uniform(0.1, 0.6)

    def collapse(context: int, users: int) -> float:
        """Batches, and less beyond an edge, the less the longer the context."""
        steep = fall * (1 - 0.6 * math.log(context + 1) / math.log(16385))
        return batches(context, users) * (max(1.0, users / edge) ** -steep)

    return {"batches": batches, "universal": universal, "corner": corner, "collapse": collapse}[law]
