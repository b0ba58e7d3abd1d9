"""Clean grids in every unit are not accused, whatever made their cells slow; a queue left over is found in each."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from bench_support.audit_grids import UNITS, Grid, clean_grid, overloaded_grid
from bezel_bench.audit.findings import DRAIN
from bezel_bench.audit.runner import audit_files

if TYPE_CHECKING:
    from pathlib import Path

    from bezel_bench.audit.findings import Finding

HELD_OUT = 700_000
GRIDS, LOADED = 120, 60


@cache
def clean() -> dict[int, Grid]:
    return {seed: clean_grid(seed) for seed in range(HELD_OUT, HELD_OUT + GRIDS)}


@cache
def overloaded(*, drained: bool) -> dict[int, Grid]:
    return {seed: overloaded_grid(seed, drained=drained) for seed in range(HELD_OUT, HELD_OUT + LOADED)}


def findings(folder: Path, grid: Grid, unit: str) -> tuple[Finding, ...]:
    path = folder / "grid.csv"
    path.write_text(grid.text(unit), encoding="utf-8")
    told = audit_files([path])
    assert not told.unreadable
    return told.findings


@pytest.mark.wide_except("req/s", "total tok/s")
@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_none_of_120_clean_grids_is_accused_in_any_unit(tmp_path: Path, unit: str) -> None:
    """Cells that compile, cold prompts, a slow start, a quarter of noise and a few errors are no fault."""
    told = {seed: findings(tmp_path, grid, unit) for seed, grid in clean().items()}
    assert not {seed: found for seed, found in told.items() if found}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_queue_left_over_is_found_in_every_unit_that_tells_the_requests(tmp_path: Path, unit: str) -> None:
    told = [one for one in overloaded(drained=False).values() if one.lengths_told or not unit.startswith("total")]
    found = sum(DRAIN in {one.kind for one in findings(tmp_path, grid, unit)} for grid in told)
    assert found >= 0.95 * len(told)
    assert len(told) >= LOADED / 5


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_loss_that_was_waited_for_is_no_missing_drain_even_where_the_next_cell_compiles(
    tmp_path: Path, unit: str
) -> None:
    accused = {
        seed: [one.arithmetic for one in findings(tmp_path, grid, unit) if one.kind == DRAIN]
        for seed, grid in overloaded(drained=True).items()
    }
    assert not {seed: texts for seed, texts in accused.items() if texts}
