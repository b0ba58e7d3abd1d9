"""Error rates of knees on made-up contexts: 5 % noise, a tenth of the cells stalled to half of their throughput.

    .venv/bin/python -m tools.bench.sweeps.knee_rates [--write]

Each context has a server of known throughput, and one noisy measurement of it at each number of users. The true knee
has nine tenths of the most that the server gives at any of them, and a plateau was there to be seen where at least
three cells, the knee's among them, give four fifths of it. A knee is wrong where there is no plateau, or where it is
more than one step of users off. With --write the table goes into docs/sweeps.md.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bezel_bench.sweep.inference.knees import knee
from tools.bench.sweeps import made_up
from tools.docs.generated_sections import ROOT, put

NOISE, STALLED_SHARE, STALLED_TO = 0.05, 0.1, 0.5
CONTEXTS = 4000
_USERS = (
    (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048),
    (1, 8, 64, 128, 256, 512, 1024, 2048),
    (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    (1, 2, 4, 8, 16, 32, 64),
    (1, 3, 10, 30, 100, 300, 1000),
    (1, 2, 4, 8),
)
_KNEE, _PLATEAU, _CELLS = 0.9, 0.8, 3  # of what a true knee is; the rule that is judged has constants of its own
Law = Callable[[random.Random, Sequence[int]], list[float]]


@dataclass
class Rates:
    """Counts over many contexts of one law."""

    plateaus: int = 0
    found_knees: int = 0
    off: int = 0
    without: int = 0
    wrong: int = 0

    @property
    def contexts(self) -> int:
        """Return the number of contexts."""
        return self.plateaus + self.without

    @property
    def false_share(self) -> float:
        """Return the wrong knees of all contexts."""
        return (self.off + self.wrong) / self.contexts

    @property
    def found_share(self) -> float | None:
        """Return the true knees that were found within one step; None where there is none."""
        return self.found_knees / self.plateaus if self.plateaus else None


def _sharp(chances: random.Random, users: Sequence[int]) -> list[float]:
    most = _between(chances, 1, 2 * users[-1])
    return [min(float(count), most) for count in users]


def _round(chances: random.Random, users: Sequence[int]) -> list[float]:
    most, corner = _between(chances, 1, 2 * users[-1]), chances.uniform(1, 6)
    return [(count**-corner + most**-corner) ** (-1 / corner) for count in users]


def _falling(chances: random.Random, users: Sequence[int]) -> list[float]:
    most, slope = _between(chances, 1, users[-1]), chances.uniform(0.05, 0.4)
    edge = most * chances.choice((2, 4, 8))
    return [min(float(count), most) * max(1.0, count / edge) ** -slope for count in users]


def _linear(_chances: random.Random, users: Sequence[int]) -> list[float]:
    return [float(count) for count in users]


def _power(chances: random.Random, users: Sequence[int]) -> list[float]:
    power = chances.uniform(0.3, 1.0)
    return [count**power for count in users]


LAWS: dict[str, Law] = {
    "a sharp corner": _sharp,
    "a round corner": _round,
    "a fall behind the plateau": _falling,
    "rises in proportion to the users": _linear,
    "rises by a power of the users, 0.3 to 1": _power,
}
MADE_UP = "contexts of the made-up grids"


def rates(law: str, contexts: int = CONTEXTS) -> Rates:
    """Return the counts of a law, or of MADE_UP."""
    counts = Rates()
    for seed in range(contexts):
        chances = random.Random(f"{law} {seed}")  # noqa: S311 - no secret
        users, truth = _server(law, seed, chances)
        measured = [
            value * math.exp(chances.gauss(0, NOISE)) * (STALLED_TO if chances.random() < STALLED_SHARE else 1)
            for value in truth
        ]
        _count(counts, knee(users, measured).index, truth)
    return counts


def _server(law: str, seed: int, chances: random.Random) -> tuple[Sequence[int], list[float]]:
    if law == MADE_UP:
        made = made_up.grid(seed)
        context = chances.choice(made.contexts)
        return made.users, [made.truth[context, count] for count in made.users]
    users = chances.choice(_USERS)
    return users, LAWS[law](chances, users)


def _count(counts: Rates, named: int | None, truth: Sequence[float]) -> None:
    true = next(at for at, value in enumerate(truth) if value >= _KNEE * max(truth))
    near = named is not None and abs(named - true) <= 1
    if sum(value >= _PLATEAU * max(truth) for value in truth[true:]) >= _CELLS:
        counts.plateaus += 1
        counts.found_knees += near
        counts.off += named is not None and not near
    else:
        # Two cells of a plateau are a plateau all the same: naming their knee is not wrong, and not asked for.
        counts.without += 1
        counts.wrong += named is not None and not (near and true < len(truth) - 1)


def table(contexts: int = CONTEXTS) -> str:
    """Return the table of error rates."""
    columns = ("throughput", "contexts", "with a plateau", "knee found within one step", "false knees")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for law in (*LAWS, MADE_UP):
        counts = rates(law, contexts)
        share = "" if counts.found_share is None else f"{counts.found_share:.1%}"
        lines.append(f"| {law} | {counts.contexts} | {counts.plateaus} | {share} | {counts.false_share:.2%} |")
    return "\n".join(lines) + "\n"


def _between(chances: random.Random, low: float, high: float) -> float:
    return math.exp(chances.uniform(math.log(low), math.log(high)))


if __name__ == "__main__":
    made = table()
    print(made)
    if "--write" in sys.argv[1:]:
        put(ROOT / "docs" / "sweeps.md", "tools.bench.sweeps.knee_rates", made)
