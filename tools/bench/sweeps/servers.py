"""Accuracy of adaptive sweeps on sixty synthetic servers with a known truth: measured cells, errors of inferred ones.

    .venv/bin/python -m tools.bench.sweeps.servers [--write]

The servers are those of `tests/support/bench/surfaces.py`, with other seeds than the tests', every second one with
fewer users. With --write the text goes into docs/sweeps.md.
"""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from statistics import mean, median, quantiles

from bezel.bench.sweep.budget import Limits
from bezel.bench.sweep.grid import Bounds, Grid
from bezel.bench.sweep.journal import Ledger
from bezel.bench.sweep.knees import knee
from bezel.bench.sweep.run import SHARE, Sweep, run_sweep
from bezel.bench.sweep.summarize import conclude
from tests.support.bench.oracle import RATE, Oracle
from tests.support.bench.surfaces import CONTEXTS, FEWER_USERS, USERS, server
from tools.docs.generated_sections import ROOT, put

SEEDS = range(8000, 8060)
_WIDTH = 112  # leaves room for the blank before each %


@dataclass(frozen=True)
class Fared:
    """Result of one server; errors are against the truth, ranges against one noisy measurement each."""

    share: float
    error: float
    held: int
    inferred: int
    knees: int
    knees_within: int
    knees_missed: int


def fared(seed: int) -> Fared:
    """Sweep a server and compare."""
    known = server(seed, users=FEWER_USERS if seed % 2 else USERS)
    grid = Grid(known.contexts, known.users, output_tokens=1)
    oracle = Oracle(lambda context, users: known.measured[context, users])
    sweep = Sweep(grid, Bounds(), Limits(requests=int(SHARE * grid.full_requests())), RATE)
    summary = conclude(run_sweep(sweep, oracle.measure, Ledger("run"), oracle.clock, lambda _: None))
    inferred = {(cell.context_tokens, cell.users): cell for cell in summary.inferred}
    named = {cell.numbers["context_tokens"]: cell.numbers["users"] for cell in summary.findings if cell.name == "knee"}
    true = {
        context: knee(known.users, [known.truth[context, users] for users in known.users]) for context in known.contexts
    }
    there = {context: step for context, step in true.items() if step is not None}
    steps = [
        abs(known.users.index(int(named[context] or 0)) - step) for context, step in there.items() if context in named
    ]
    return Fared(
        share=sum(cell.requests for cell in oracle.asked) / grid.full_requests(),
        error=median(abs(cell.value / known.truth[place] - 1) for place, cell in inferred.items()),
        held=sum(cell.low <= known.measured[place] <= cell.high for place, cell in inferred.items()),
        inferred=len(inferred),
        knees=len(steps),
        knees_within=sum(step <= 1 for step in steps),
        knees_missed=len(there) - len(steps),
    )


def text(fared: list[Fared]) -> str:
    """The document's text about the results."""
    errors, shares = [server.error for server in fared], [server.share for server in fared]
    held = sum(server.held for server in fared) / sum(server.inferred for server in fared)
    knees, missed = sum(server.knees for server in fared), sum(server.knees_missed for server in fared)
    within = sum(server.knees_within for server in fared)
    summary = (
        f"On {len(fared)} further made-up servers of these laws ({len(CONTEXTS)} contexts by {len(USERS)} or "
        f"{len(FEWER_USERS)} users) adaptive sweeps took {mean(shares):.0%} of the requests, {max(shares):.0%} at "
        f"most. The median error of the inferred cells against the truth was {median(errors):.1%} (above "
        f"{quantiles(errors, n=20)[-1]:.1%} for one server in twenty, {max(errors):.1%} at most), and the 90% range "
        f"held {held:.0%} of the measurements. Of {knees + missed} contexts with a plateau {knees} were given their "
        f"knee, {within} of them within one step of users."
    )
    return textwrap.fill(summary, _WIDTH).replace("%", " %") + "\n"


if __name__ == "__main__":
    made = text([fared(seed) for seed in SEEDS])
    print(made)
    if "--write" in sys.argv[1:]:
        put(ROOT / "docs" / "sweeps.md", "tools.bench.sweeps.servers", made)
