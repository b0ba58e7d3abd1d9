"""Summary of a benchmark's result: each cell with its state and main figures, bounded. The file has the rest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from bezel.operations.redaction import clean_text
from bezel.operations.results import Result as OperationResult
from bezel_base.terminal.blocks import Block, Line, Table, mark
from bezel_bench.result.document import Cell, Result

_MOST_CELLS, _MOST_TEXTS = 200, 30
_TITLES = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "e2e"}
_FIGURES = (
    *("requests_per_second", "output_tokens_per_second", "input_tokens_per_second", "goodput", "success_share"),
    *("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "e2e_p50", "e2e_p99"),
)
_HEADS = {
    "requests_per_second": "req/s",
    "output_tokens_per_second": "tokens/s",
    "input_tokens_per_second": "tokens/s in",
    **{f"{name}_{share}": f"{title} {share}" for name, title in _TITLES.items() for share in ("p50", "p99")},
}
_SHOWN = ("requests_per_second", "output_tokens_per_second", "ttft_p50", "ttft_p99", "tpot_p50")
_SHOWN_WITHOUT_OUTPUT = ("requests_per_second", "input_tokens_per_second", "e2e_p50", "e2e_p99")
"""Of embeddings and ranks, which have no output tokens."""


class CellSummary(OperationResult):
    """One measured load, or one stage of it."""

    id: str
    context_tokens: int | None = Field(description="requested tokens of a prompt")
    users: int | None = Field(description="users of a closed loop; null for an open one")
    rate: float | None = Field(description="requests per second of an open loop; null for a closed one")
    state: str = Field(description="ok, or why the figures are not to be trusted: failed, infeasible, saturated, ...")
    reason: str = Field(description="the rule behind a state other than ok, with its arithmetic")
    requests: int
    failures: dict[str, int] = Field(description="failed requests by kind")
    figures: dict[str, float | None] = Field(
        description="by name: latencies in ms, rates per second; null where they cannot be measured"
    )
    failed_checks: tuple[str, ...] = Field(description="checks of validity that failed or look suspect")
    usd: float | None = Field(description="cost of the load at the server's price; null if unknown")


class BenchResult(OperationResult):
    """Summary of a result."""

    kind: str = Field(description="run or sweep")
    nature: Literal["measured", "simulated"] = Field(description="simulated: no figure describes hardware")
    title: str
    model: str
    file: str = Field(description="the whole result, below the project's folder")
    cells: tuple[CellSummary, ...]
    cells_left_out: int = Field(description="cells that only the file has")
    findings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 if no cell is ok, or a run's cell is not."""
        good = [cell.state == "ok" for cell in self.cells]
        return 0 if (any(good) if self.kind == "sweep" else good and all(good)) else 1

    def page(self) -> Iterator[Block]:
        """A table of the cells, then the findings."""
        has_output = any("output_tokens_per_second" in each.figures for each in self.cells)
        shown = _SHOWN if has_output or not self.cells else _SHOWN_WITHOUT_OUTPUT
        heads = ("cell", "state", "requests", *(_HEADS[name] for name in shown))
        rows = [
            (each.id, mark(each.state), each.requests, *(_figure(each.figures.get(name)) for name in shown))
            for each in self.cells
        ]
        reasons = [f"{each.id}: {each.state}: {each.reason}" for each in self.cells if each.reason][:_MOST_TEXTS]
        yield Line(f"{self.title} ({self.nature}), latencies in ms")
        yield Table(heads, rows)
        yield from map(Line, (*reasons, *self.findings, *(f"note: {note}" for note in self.notes)))
        yield Line(f"written: {self.file}")


def summary_of(result: Result, file: Path, folder: Path) -> BenchResult:
    """The summary of a result.

    Args:
        result: The result.
        file: Its file.
        folder: The project's folder.
    """
    loads = [part for cell in result.cells for part in cell.parts()]
    return BenchResult(
        kind=result.kind,
        nature=result.nature,
        title=clean_text(result.manifest.title, 300),
        model=clean_text(result.manifest.model, 300),
        file=str(file.relative_to(folder.resolve())),
        cells=tuple(_cell(cell) for cell in loads[:_MOST_CELLS]),
        cells_left_out=max(0, len(loads) - _MOST_CELLS),
        findings=tuple(clean_text(finding.text, 600) for finding in result.findings[:_MOST_TEXTS]),
        notes=tuple(clean_text(note, 600) for note in result.notes[:_MOST_TEXTS]),
    )


def _cell(cell: Cell) -> CellSummary:
    return CellSummary(
        id=clean_text(cell.id, 100),
        context_tokens=cell.context_tokens,
        users=cell.users,
        rate=cell.rate,
        state=cell.state,
        reason=clean_text(cell.reason, 300),
        requests=cell.requests,
        failures=cell.failures,
        figures={name: _round(cell.value(name)) for name in _FIGURES if name in cell.metrics},
        failed_checks=tuple(check.name for check in cell.checks if check.state in {"failed", "suspect"}),
        usd=cell.cost_usd,
    )


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
