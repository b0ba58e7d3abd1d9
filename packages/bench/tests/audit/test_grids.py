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

    from bezel_bench.audit.findings import AuditFinding

HELD_OUT = 700_000
GRIDS, LOADED = 120, 60


@cache
def clean() -> dict[int, Grid]:
    return {seed: clean_grid(seed) for seed in range(HELD_OUT, HELD_OUT + GRIDS)}


@cache
def overloaded_grids(*, drained: bool) -> dict[int, Grid]:
    return {seed: overloaded_grid(seed, drained=drained) for seed in range(HELD_OUT, HELD_OUT + LOADED)}


def findings(folder: Path, grid: Grid, unit: str) -> tuple[AuditFinding, ...]:
    path = folder / "grid.csv"
    path.write_text(grid.text(unit), encoding="utf-8")
    result = audit_files([path])
    assert not result.unreadable
    return result.findings


@pytest.mark.wide_except("req/s", "total tok/s")
@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_none_of_120_clean_grids_is_accused_in_any_unit(tmp_path: Path, unit: str) -> None:
    """Cells that compile, cold prompts, a slow start, a quarter of noise and a few errors are no fault."""
    accusations = {seed: findings(tmp_path, grid, unit) for seed, grid in clean().items()}
    assert not {seed: accused for seed, accused in accusations.items() if accused}


@pytest.mark.wide_except("req/s", "total tok/s")
@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_queue_left_over_is_found_in_every_unit_that_tells_the_requests(tmp_path: Path, unit: str) -> None:
    grids = [
        one for one in overloaded_grids(drained=False).values() if one.lengths_told or not unit.startswith("total")
    ]
    accused = sum(DRAIN in {one.kind for one in findings(tmp_path, grid, unit)} for grid in grids)
    assert accused >= 0.95 * len(grids)
    assert len(grids) >= LOADED / 5


@pytest.mark.wide_except("req/s", "total tok/s")
@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_drained_loss_is_no_missing_drain_where_the_next_cell_compiles(tmp_path: Path, unit: str) -> None:
    """The client waited for what was lost; the next cell is slow for another reason."""
    accused = {
        seed: [one.arithmetic for one in findings(tmp_path, grid, unit) if one.kind == DRAIN]
        for seed, grid in overloaded_grids(drained=True).items()
    }
    assert not {seed: texts for seed, texts in accused.items() if texts}
