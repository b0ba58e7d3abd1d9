"""Text of the result of a search or a comparison: one line a cell, the conclusions, the checks' findings."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.bench.result.document import Cell, Result

_COLUMNS = 120


def brief(result: Result, figures: Sequence[str]) -> str:
    """Render the text; `figures` are the columns."""
    kind = " (simulated: no figure says anything of hardware)" if result.nature == "simulated" else ""
    wide = max((len(cell.id) for cell in result.cells), default=0) + 2
    columns = [(name, max(len(name), 9) + 2) for name in figures]
    lines = [f"{result.manifest.title}, {result.manifest.url}{kind}", ""]
    lines.append(f"{'':{wide}}{'state':<10}" + "".join(f"{name:>{width}}" for name, width in columns))
    for cell in result.cells:
        row = "".join(f"{_figure(cell, name):>{width}}" for name, width in columns)
        lines.append(f"{cell.id:{wide}}{cell.state:<10}{row}")
    lines.append("")
    wrong = [f"{cell.id}: {cell.reason}" for cell in result.cells if cell.reason]
    for text in [*wrong, *(finding.text for finding in result.findings), *result.notes]:
        lines += textwrap.wrap(text, _COLUMNS, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _figure(cell: Cell, name: str) -> str:
    value = cell.value(name)
    return "-" if value is None else f"{value:,.4g}"
