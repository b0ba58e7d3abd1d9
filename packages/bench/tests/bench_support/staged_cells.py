"""Cells of loads in stages, measured at a made-up server."""

from dataclasses import replace
from typing import Any

import pytest

from bench_support.cells import plan, record
from bench_support.staged import load_of, staged_run
from bezel_bench.cell.cell import MeasuredCell
from bezel_bench.load.plan import Stage, Staged

RATES = Staged("rate", (Stage(5.0, 30.0), Stage(20.0, 30.0), Stage(5.0, 30.0)))
USERS = Staged("users", (Stage(1.0, 30.0), Stage(8.0, 30.0), Stage(1.0, 30.0)))
BOTH = pytest.mark.parametrize("pattern", [RATES, USERS], ids=["rate", "users"])


def run_of(pattern: Staged, **how: Any) -> MeasuredCell:
    return record(staged_run(pattern, **how), replace(plan(), load=load_of(pattern)))
