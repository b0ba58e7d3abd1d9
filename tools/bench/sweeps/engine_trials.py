"""Ranges and figures of sweeps on the grids of made-up engines (`tools.bench.sweeps.engines`), by kind.

    .venv/bin/python -m tools.bench.sweeps.engine_trials [--write]

With --write the table goes into docs/sweeps.md.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

from tools.bench.sweeps import engines
from tools.bench.sweeps.grids import oracle
from tools.bench.sweeps.methods import Outcome, own
from tools.bench.sweeps.trials import MANY
from tools.docs.generated_sections import ROOT, put

FIRST, GRIDS = 5000, 40  # seeds that the method was not looked at with
LEAST_HELD = 0.75


def table(grids: int = GRIDS, first: int = FIRST) -> str:
    """Return the table of ranges and figures, over so many grids of each kind."""
    columns = ("grids", "cells with a figure", "ranges", "held", "grids with 20 ranges or more", "below 75 %", "worst")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    jobs = [(seed, kind) for kind in engines.KINDS for seed in range(first, first + grids)]
    with ProcessPoolExecutor() as pool:
        made = list(zip(jobs, pool.map(_outcome, jobs), strict=True))
    for label in (*engines.KINDS, ""):
        outcomes = [outcome for (_, kind), outcome in made if label in ("", kind)]
        ranges = [is_held for outcome in outcomes for is_held in outcome.held]
        many = [sum(one.held) / len(one.held) for one in outcomes if len(one.held) >= MANY]
        cells = (
            f"{len(outcomes)} {label or 'of all kinds'}",
            f"at least {min(one.figures for one in outcomes):.0%}",
            str(len(ranges)),
            f"{sum(ranges) / len(ranges):.0%}",
            str(len(many)),
            str(sum(share < LEAST_HELD for share in many)),
            f"{min(many):.0%}" if many else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _outcome(job: tuple[int, str]) -> Outcome:
    made = engines.grid(*job)
    return own(oracle(made.name, list(made.rows())))


if __name__ == "__main__":
    made_table = table()
    print(made_table)
    if "--write" in sys.argv[1:]:
        put(ROOT / "docs" / "sweeps.md", "tools.bench.sweeps.engine_trials --write", made_table)
