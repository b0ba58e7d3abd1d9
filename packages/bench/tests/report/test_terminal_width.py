"""The texts of runs, sweeps and searches fit terminals: no row is wider, and a sweep keeps all of its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench_support.results import METRIC, USERS, drafts, failed_result, staged_result, sweep
from bezel_base.terminal.layout import lay_out
from bezel_bench.commands.render.tables import grid_blocks, run_blocks, search_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bezel_base.terminal.blocks import Block

FIGURES = ("requests_per_second", "output_tokens_per_second", "ttft_p99", "cost_per_million_output_tokens")
TEXTS: dict[str, Callable[[], Iterable[Block]]] = {
    "run": lambda: run_blocks(staged_result()),
    "failed": lambda: run_blocks(failed_result()),
    "sweep": lambda: grid_blocks(sweep(), METRIC),
    "search": lambda: search_blocks(drafts(), FIGURES),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", TEXTS)
def test_no_row_of_a_result_is_wider_than_the_terminal(name: str, width: int) -> None:
    rows = lay_out(TEXTS[name](), width)
    assert rows
    assert [row for row in rows if len(row) > width] == []


def test_a_sweep_continues_below_where_its_users_do_not_fit() -> None:
    narrow, wide = (lay_out(grid_blocks(sweep(), METRIC), width) for width in (60, 120))
    heads = {f"{count}" for count in USERS}
    assert any(heads <= {*row.split()} for row in wide)
    assert not any(heads <= {*row.split()} for row in narrow)
    assert heads <= {head for row in narrow for head in row.split()}
