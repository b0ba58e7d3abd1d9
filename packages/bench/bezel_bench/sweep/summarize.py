"""Summary of a sweep: every cell of the grid, the inferred ones, the knees, the omitted cells.

Pure. Leaves out the document that contains it (`bezel_bench.result.document`).
"""

from dataclasses import dataclass
from statistics import median

from bezel_base.text.counting import format_count
from bezel_bench.result.document import Cell, Finding, Inferred, Numbers, State
from bezel_bench.sweep.grid import Place
from bezel_bench.sweep.inference.knees import knees
from bezel_bench.sweep.inference.reach import LEAST
from bezel_bench.sweep.inference.surface import Estimate
from bezel_bench.sweep.measurement.budget import notes as notes_of
from bezel_bench.sweep.next_cell import beyond
from bezel_bench.sweep.run import Ended, SweepStatus

_NO_NEIGHBOUR = "no measured cell beside it on both sides, so it is not inferred"


@dataclass(frozen=True)
class Conclusion:
    """Conclusion of a sweep, as written to its document."""

    cells: list[Cell]
    inferred: list[Inferred]
    findings: list[Finding]
    notes: list[str]


def conclude(ended: Ended) -> Conclusion:
    """Return the conclusion of an ended sweep."""
    status = ended.status
    grid, known_cells = status.sweep.grid, status.known_cells
    values, excluded = status.values_and_exclusions
    left = {} if status.sweep.full else beyond(known_cells)
    open_places = sorted(place for place in known_cells.askable if place not in known_cells.asked and place not in left)
    inferred = {place: estimate for place in open_places if (estimate := status.surface.estimate(place))}
    cells: list[Cell] = []
    for place in grid.places():
        if place in status.cells:
            cells.append(status.cells[place])
        elif place in status.refused:
            cells.append(_unasked_cell(status, place, status.refused[place].state, status.refused[place].reason))
        elif place in left:
            lighter = status.cells[left[place]]
            outcome = "failed" if lighter.state == "failed" else "was too much for the client"
            reason = f"not requested: {grid.describe(left[place])} {outcome} already ({lighter.reason})"
            cells.append(_unasked_cell(status, place, "not_asked", reason))
        elif place not in inferred:
            cells.append(_unasked_cell(status, place, "not_asked", f"not requested: {ended.reason}; {_NO_NEIGHBOUR}"))
    findings = [
        *knees(grid, status.sweep.metric, values),
        *_exclusion_findings(status, excluded),
        _surface(status, list(inferred.values())),
    ]
    notes = [
        f"The sweep ended: {ended.reason}.",
        *_unmeasured_notes(status),
        *notes_of(status.sweep.limits, status.lost),
    ]
    return Conclusion(cells, [_inferred_cell(status, *one) for one in inferred.items()], findings, notes)


def _unmeasured_notes(status: SweepStatus) -> list[str]:
    why = status.unmeasured_text
    return [f"Not measured, and tried anew by the next run of the same command: {why}."] if why else []


def _unasked_cell(status: SweepStatus, place: Place, state: State, reason: str) -> Cell:
    request = status.sweep.grid.request(place)
    return Cell(
        id=request.id,
        context_tokens=request.context_tokens,
        users=request.users,
        output_tokens=request.output_tokens,
        pattern="closed",
        prompts="unique",
        state=state,
        reason=reason,
    )


def _inferred_cell(status: SweepStatus, place: Place, estimate: Estimate) -> Inferred:
    grid, line = status.sweep.grid, estimate.line
    ends = (
        f"{grid.contexts[line.below[0]]} and {grid.contexts[line.above[0]]} tokens at the same users"
        if line.axis == "contexts"
        else f"{grid.users[line.below[1]]} and {grid.users[line.above[1]]} users at the same context"
    )
    few = f"only {format_count(estimate.errors, 'cells')} measured between others; a 90 % range needs {LEAST}"
    return Inferred(
        context_tokens=grid.contexts[place[0]],
        users=grid.users[place[1]],
        metric=status.sweep.metric,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        errors=estimate.errors,
        how=f"log-linear between {ends}",
        why="" if estimate.low is not None else few,
    )


def _exclusion_findings(status: SweepStatus, excluded: dict[Place, str]) -> list[Finding]:
    grid = status.sweep.grid
    return [
        Finding(
            name="excluded",
            text=f"{grid.describe(place)} is left out of the surface: {why}.",
            cells=[status.cells[place].id],
        )
        for place, why in sorted(excluded.items())
    ]


def _surface(status: SweepStatus, inferred: list[Estimate]) -> Finding:
    grid = status.sweep.grid
    feasible = len(grid.places()) - len(status.refused)
    share = status.sent_requests / max(1, grid.full_requests(status.refused))
    reaches = [one.high / one.value - 1 for one in inferred if one.high is not None]
    numbers: Numbers = {
        "measured": len(status.cells),
        "used": len(status.values_and_exclusions[0]),
        "inferred": len(inferred),
        "with_range": len(reaches),
        "feasible": feasible,
        "requests": status.sent_requests,
        "share_of_full": share,
        "seconds": status.spent_seconds,
        "usd": status.sweep.limits.cost(status.spent_seconds),
    }
    text = (
        f"{format_count(len(status.cells), 'cells')} measured with {format_count(status.sent_requests, 'requests')}, "
        f"{share:.1%} of a full sweep's"
    )
    if inferred:
        text += f"; {len(inferred)} inferred, {len(reaches)} of them with a 90 % range"
    if reaches:
        numbers["range"] = median(reaches)
        text += f", half of which reach {median(reaches):.0%} up or less"
    if len(reaches) < len(inferred):
        text += f"; the others have none: fewer than {LEAST} cells were measured between others"
    return Finding(name="surface", text=f"{text}.", numbers=numbers)
