"""Text of the result of a sweep: contexts down, users across, each figure with its kind."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.bench.result.document import Cell, Result

_COLUMNS = 120
_LEGEND = (
    "~ inferred; x failed; - cannot be; q queueing; c limited by the client; ? not asked; "
    "* measured, left out of the surface"
)
_MARKS = {"failed": "x", "infeasible": "-", "queueing": "q", "client_limited": "c", "not_asked": "?"}
_TOLD = ("surface", "knee", "no_plateau", "excluded")


def grid_table(result: Result, metric: str) -> str:
    """Render the text, at most 120 columns wide unless the grid itself is wider."""
    kind = " (simulated: no figure says anything of hardware)" if result.nature == "simulated" else ""
    left_out = {cell for finding in result.findings if finding.name == "excluded" for cell in finding.cells}
    shown = {(one.context_tokens, one.users): f"~{_short(one.value)}" for one in result.inferred}
    shown |= {(cell.context_tokens or 0, cell.users or 0): _cell(cell, metric, left_out) for cell in result.cells}
    contexts, users = sorted({context for context, _ in shown}), sorted({count for _, count in shown})
    lines = [f"{result.manifest.title}, {result.manifest.url}{kind}", f"{metric}, contexts down, users across", ""]
    lines.append(f"{'':>7}" + "".join(f"{count:>8}" for count in users))
    lines += [
        f"{context:>7}" + "".join(f"{shown.get((context, count), ''):>8}" for count in users) for context in contexts
    ]
    lines += ["", _LEGEND, ""]
    told = [finding.text for name in _TOLD for finding in result.findings if finding.name == name]
    for text in [*told, *_refused(result), *result.notes]:
        lines += textwrap.wrap(text, _COLUMNS, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _cell(cell: Cell, metric: str, left_out: set[str]) -> str:
    value = cell.value(metric)
    if cell.state != "ok" or value is None:
        return _MARKS.get(cell.state, "x")
    return f"{_short(value)}{'*' if cell.id in left_out else ''}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _refused(result: Result) -> list[str]:
    """Reasons why cells were not measured, each once."""
    reasons: dict[str, int] = {}
    for cell in result.cells:
        if cell.state in ("infeasible", "queueing", "not_asked") and not cell.requests:
            reason = cell.reason.removeprefix("not asked: ")
            reasons[reason] = reasons.get(reason, 0) + 1
    return [f"{count} {'cell was' if count == 1 else 'cells were'} not asked: {why}" for why, count in reasons.items()]
