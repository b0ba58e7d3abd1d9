"""Summary of a sweep: every cell of the grid, the inferred ones, the knees, the omitted cells.

Pure. Leaves out the document that contains it (`bezel.bench.result.document`).
"""

from dataclasses import dataclass

from bezel.bench.result.document import Cell, Finding, Inferred, Numbers, State
from bezel.bench.sweep.budget import notes as notes_of
from bezel.bench.sweep.grid import Place
from bezel.bench.sweep.knees import knees
from bezel.bench.sweep.next_cell import beyond
from bezel.bench.sweep.run import Ended, SweepStatus
from bezel.bench.sweep.surface import Surface

# With fewer cells an inferred one would be a guess.
LEAST = 6
_HOW = "interpolated between {} measured cells; 90 % of measurements would lie in the range"


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
    grid, known = status.sweep.grid, status.known
    values, excluded = status.judged
    left = {} if status.sweep.full else beyond(known)
    surface = status.surface if len(values) >= LEAST else None
    open_places = sorted(place for place in known.askable if place not in known.asked and place not in left)
    inferred = open_places if surface else []
    cells: list[Cell] = []
    for place in grid.places():
        if place in status.cells:
            cells.append(status.cells[place])
        elif place in status.refused:
            cells.append(_unasked(status, place, status.refused[place].state, status.refused[place].reason))
        elif place in left:
            lighter = status.cells[left[place]]
            outcome = "failed" if lighter.state == "failed" else "was too much for the client"
            reason = f"not requested: {grid.describe(left[place])} {outcome} already ({lighter.reason})"
            cells.append(_unasked(status, place, "not_asked", reason))
        elif place not in inferred:
            cells.append(_unasked(status, place, "not_asked", f"not requested: {ended.reason}"))
    findings = [
        *knees(grid, status.sweep.metric, values),
        *_excluded(status, excluded),
        _surface(status, surface, inferred),
    ]
    notes = [f"The sweep ended: {ended.reason}.", *notes_of(status.sweep.limits, status.lost)]
    return Conclusion(cells, _inferred(status, surface, inferred), findings, notes)


def _unasked(status: SweepStatus, place: Place, state: State, reason: str) -> Cell:
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


def _inferred(status: SweepStatus, surface: Surface | None, places: list[Place]) -> list[Inferred]:
    if surface is None:
        return []
    grid, how = status.sweep.grid, _HOW.format(len(status.judged[0]))
    low, high = surface.interval()
    return [
        Inferred(
            context_tokens=grid.contexts[place[0]],
            users=grid.users[place[1]],
            metric=status.sweep.metric,
            value=float(surface.value[place]),
            low=float(low[place]),
            high=float(high[place]),
            how=how,
        )
        for place in places
    ]


def _excluded(status: SweepStatus, excluded: dict[Place, str]) -> list[Finding]:
    grid = status.sweep.grid
    return [
        Finding(
            name="excluded",
            text=f"{grid.describe(place)} is left out of the surface: {why}.",
            cells=[status.cells[place].id],
        )
        for place, why in sorted(excluded.items())
    ]


def _surface(status: SweepStatus, surface: Surface | None, inferred: list[Place]) -> Finding:
    grid = status.sweep.grid
    share = status.sent / max(1, grid.full_requests(status.refused))
    numbers: Numbers = {
        "measured": len(status.cells),
        "used": len(status.judged[0]),
        "inferred": len(inferred),
        "requests": status.sent,
        "share_of_full": share,
        "seconds": status.spent,
        "usd": status.sweep.limits.cost(status.spent),
    }
    text = f"{len(status.cells)} cells measured with {status.sent} requests, {share:.1%} of a full sweep's"
    if surface is not None and inferred:
        numbers["noise"] = surface.noise
        text += (
            f"; {len(inferred)} inferred; at the middle context the last doubling of users changed {surface.noise:.1%}"
        )
    return Finding(name="surface", text=f"{text}.", numbers=numbers)
