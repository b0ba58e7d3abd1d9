"""A sweep as an operation on a simulated server: every requested cell with its state, within the limits."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.operations.bench.sweep import SweepArguments, sweep
from bezel.operations.context import Context
from simulated_vllm_support.process import simulated_vllm

pytestmark = pytest.mark.slow  # a server, and a process for each sweep


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with simulated_vllm(tmp_path / "model") as address:
        yield address


def test_every_requested_cell_is_in_the_result_with_its_state(url: str, tmp_path: Path) -> None:
    with Context(tmp_path, os.environ, show=lambda _line: None) as context:
        options = {"contexts": "128,99999", "users": "1,2", "output_tokens": 4, "full": True, "simulated": True}
        arguments = SweepArguments.model_validate({"url": url, "out": "sweep.json", **options})
        result = sweep(context, arguments)
        assert {cell.id for cell in result.cells} == {"c128-u1", "c128-u2", "c99999-u1", "c99999-u2"}
        states = {cell.id: cell.state for cell in result.cells}
        assert states["c99999-u1"] == "infeasible"
        assert (result.kind, result.nature) == ("sweep", "simulated")
        journal = tmp_path / "sweep.journal"
        before = journal.read_bytes()
        again = sweep(context, arguments)
        # The same call continues: what was measured is not measured again, only what a busy machine disturbed.
        kept = {cell.id: cell.figures for cell in result.cells if cell.state == "ok"}
        assert {cell.id: cell.figures for cell in again.cells if cell.id in kept} == kept
        assert journal.read_bytes().startswith(before)
