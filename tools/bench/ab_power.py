"""Error rates of comparisons: how often equal servers seem to differ, and how often a difference is found.

    .venv/bin/python -m tools.bench.ab_power [--write]

Each trial is one comparison of two made-up servers by `bezel_bench.sweep.ab`: all four figures, every run with its own
noise, a share of the runs slower by 30 %. With --write the table goes into docs/sweeps.md.
"""

from __future__ import annotations

import random
import sys

import tools.package_tests  # noqa: F401 - it finds the helpers
from bench_support.oracle import cell_of
from bezel_bench.sweep.ab import FIGURES, ROUNDS, ComparisonPlan, differences
from bezel_bench.sweep.cell_request import CellRequest
from tools.docs.generated_sections import ROOT, put

TRIALS = 2000
GAIN, SLOW = 0.1, 0.3
NOISES, SHARES = (0.02, 0.04), (0.0, 0.1, 0.2)
_REQUEST = CellRequest(512, 128, 40, users=4)


def difference_share(gain: float, noise: float, slow_share: float, rounds: int, trials: int = TRIALS) -> float:
    """Return the share of comparisons that show a difference of throughput; for equal servers, of any figure.

    Args:
        gain: How much faster the second server is; 0 for equal ones.
        noise: Standard deviation of a run's speed, relative, and of each figure beside it.
        slow_share: The share of the runs that are slower by SLOW, of both servers alike.
        rounds: The rounds of each comparison.
        trials: The number of comparisons.
    """
    chances = random.Random(f"{gain} {noise} {slow_share} {rounds}")  # noqa: S311 - trials
    plan = ComparisonPlan(("a", "b"), _REQUEST, rounds)
    count = 0
    for _ in range(trials):
        cells = []
        for arm, speed in (("a", 1.0), ("b", 1 + gain)):
            for _ in range(rounds):
                run = speed * chances.lognormvariate(0, noise) * (1 - SLOW if chances.random() < slow_share else 1)
                factors = {name: chances.lognormvariate(0, noise / 4) for name in FIGURES}
                cells.append((arm, {name: run * factors[name] if "per_second" in name else factors[name] / run
                                    for name in FIGURES}))  # fmt: skip
        results = differences(plan, [
            cell_of(CellRequest(512, 128, 40, users=4, variant=arm, repeat=place % rounds), reason="", **figures)
            for place, (arm, figures) in enumerate(cells)
        ])  # fmt: skip
        count += any(one.is_shown for one in results) if gain == 0 else results[0].is_shown
    return count / trials


def table(trials: int = TRIALS) -> str:
    """Return the table of error rates."""
    column = f"a difference of {GAIN:.0%} found, {ROUNDS} rounds"
    columns = ("noise of a run", f"runs slower by {SLOW:.0%}", "equal servers that seem to differ", column, "6 rounds")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for noise in NOISES:
        for share in SHARES:
            wrong = max(difference_share(0.0, noise, share, rounds, trials) for rounds in (ROUNDS, 6))
            powers = (difference_share(GAIN, noise, share, rounds, trials) for rounds in (ROUNDS, 6))
            lines.append(
                f"| {noise:.0%} | {share:.0%} | {wrong:.1%} | {' | '.join(f'{power:.0%}' for power in powers)} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    made = table()
    print(made)
    if "--write" in sys.argv[1:]:
        put(ROOT / "docs" / "sweeps.md", "tools.bench.ab_power", made)
