"""Adaptive sweeps of made-up servers of several laws: few requests, small errors, ranges that hold."""

from __future__ import annotations

from statistics import median

import pytest

from bezel.bench.sweep.budget import Limits
from bezel.bench.sweep.grid import Bounds, Grid
from bezel.bench.sweep.journal import Ledger
from bezel.bench.sweep.knees import knee
from bezel.bench.sweep.run import SHARE, Sweep, run_sweep
from bezel.bench.sweep.summarize import conclude
from tests.support.bench.oracle import RATE, Oracle
from tests.support.bench.surfaces import FEWER_USERS, LAWS, server

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("law", LAWS)
def test_a_quarter_of_the_requests_is_enough(law: str) -> None:
    within = total = 0
    for seed in (7001, 7002):
        made = server(seed, law, users=FEWER_USERS)
        grid = Grid(made.contexts, made.users, output_tokens=1)
        oracle = Oracle(lambda context, users, made=made: made.measured[context, users])  # type: ignore[misc]
        most = int(SHARE * grid.full_requests())
        sweep = Sweep(grid, Bounds(), Limits(requests=most), RATE)
        ended = run_sweep(sweep, oracle.measure, Ledger("run"), oracle.clock, lambda _: None)
        told = conclude(ended)
        assert sum(one.requests for one in oracle.asked) <= most
        of = {(one.context_tokens, one.users): one for one in told.inferred}
        assert median(abs(one.value / made.truth[place] - 1) for place, one in of.items()) <= max(0.16, 2 * made.noise)
        held = [one.low <= made.measured[place] <= one.high for place, one in of.items()]
        within, total = within + sum(held), total + len(held)
        knees = {int(one.numbers["context_tokens"] or 0): int(one.numbers["users"] or 0) for one in told.findings
                 if one.name == "knee"}  # fmt: skip
        steps = [
            abs(true - made.users.index(found))
            for context, found in knees.items()
            if (true := knee(made.users, [made.truth[context, users] for users in made.users])) is not None
        ]
        assert len(steps) == len(knees) >= 0.4 * len(made.contexts), "a knee is named where its plateau was measured"
        assert sum(step <= 1 for step in steps) >= 0.8 * len(steps)
    assert within >= 0.8 * total
