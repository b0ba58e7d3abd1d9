"""Summary of a sweep: every cell of the grid, the inferred ones, the knees, the omitted cells.

Pure. Leaves out the document that contains it (`bezel.bench.result.document`).
"""

from dataclasses import dataclass

import numpy as np

from bezel.bench.result.document import Cell, Finding, Inferred, State
from bezel.bench.sweep import acquisition
from bezel.bench.sweep.budget import notes as notes_of
from bezel.bench.sweep.grid import Place
from bezel.bench.sweep.knees import knees
from bezel.bench.sweep.run import Ended, SweepStatus
from bezel.bench.sweep.surface import Fit

# With fewer cells an inferred one would be a guess.
LEAST = 6
_HOW = "saturation law with a Gaussian process through {} measured cells; 90 % of measurements would lie in the range"


@dataclass(frozen=True)
class Conclusion:
    """Conclusion of a sweep, as written to its document."""

    cells: list[Cell]
    inferred: list[Inferred]
    findings: list[Finding]
    notes: list[str]


def conclude(ended: Ended) -> Conclusion:
    """Return the conclusion of an ended sweep."""
    standing = ended.standing
    grid, known = standing.sweep.grid, standing.known
    values, excluded = standing.judged
    left = acquisition.beyond(known) if standing.sweep.error is not None else {}
    surface = standing.fitted[0] if standing.fitted and len(values) >= LEAST else None
    open_places = sorted(place for place in known.askable if place not in known.asked and place not in left)
    inferred = open_places if surface else []
    cells: list[Cell] = []
    for place in grid.places():
        if place in standing.cells:
            cells.append(standing.cells[place])
        elif place in standing.refused:
            cells.append(_unasked(standing, place, standing.refused[place].state, standing.refused[place].reason))
        elif place in left:
            lighter = standing.cells[left[place]]
            was = "failed" if lighter.state == "failed" else "was too much for the client"
            reason = f"not asked: {grid.told(left[place])} {was} already ({lighter.reason})"
            cells.append(_unasked(standing, place, "not_asked", reason))
        elif place not in inferred:
            cells.append(_unasked(standing, place, "not_asked", f"not asked: {ended.reason}"))
    findings = [
        *knees(grid, standing.sweep.metric, values, _values(surface, inferred)),
        *_excluded(standing, excluded),
        _surface(standing, surface, inferred),
    ]
    notes = [f"The sweep ended: {ended.reason}.", *notes_of(standing.sweep.limits, standing.lost)]
    return Conclusion(cells, _inferred(standing, surface, inferred), findings, notes)


def _values(surface: Fit | None, places: list[Place]) -> dict[Place, float]:
    return {} if surface is None else {place: float(surface.value[place]) for place in places}


def _unasked(standing: SweepStatus, place: Place, state: State, reason: str) -> Cell:
    wanted = standing.sweep.grid.wanted(place)
    return Cell(
        id=wanted.id,
        context_tokens=wanted.context_tokens,
        users=wanted.users,
        output_tokens=wanted.output_tokens,
        pattern="closed",
        prompts="unique",
        state=state,
        reason=reason,
    )


def _inferred(standing: SweepStatus, surface: Fit | None, places: list[Place]) -> list[Inferred]:
    if surface is None:
        return []
    grid, how = standing.sweep.grid, _HOW.format(len(standing.judged[0]))
    low, high = surface.interval()
    return [
        Inferred(
            context_tokens=grid.contexts[place[0]],
            users=grid.users[place[1]],
            metric=standing.sweep.metric,
            value=float(surface.value[place]),
            low=float(low[place]),
            high=float(high[place]),
            how=how,
        )
        for place in places
    ]


def _excluded(standing: SweepStatus, excluded: dict[Place, str]) -> list[Finding]:
    grid = standing.sweep.grid
    return [
        Finding(
            name="excluded",
            text=f"{grid.told(place)} is left out of the surface: {why}.",
            cells=[standing.cells[place].id],
        )
        for place, why in sorted(excluded.items())
    ]


def _surface(standing: SweepStatus, surface: Fit | None, inferred: list[Place]) -> Finding:
    grid = standing.sweep.grid
    share = standing.sent / max(1, grid.full_requests(standing.refused))
    numbers: dict[str, int | float | str | None] = {
        "measured": len(standing.cells),
        "used": len(standing.judged[0]),
        "inferred": len(inferred),
        "requests": standing.sent,
        "share_of_full": share,
        "seconds": standing.spent,
        "usd": standing.sweep.limits.cost(standing.spent),
    }
    text = f"{len(standing.cells)} cells measured with {standing.sent} requests, {share:.1%} of a full sweep's"
    if surface is not None and inferred:
        spread = np.array([surface.spread[place] for place in inferred])
        numbers |= {
            "error_median": float(np.median(spread)),
            "error_p90": float(np.quantile(spread, 0.9)),
            "noise": surface.noise,
        }
        text += (
            f"; {len(inferred)} inferred, half of them to {numbers['error_median']:.1%}, nine in ten to "
            f"{numbers['error_p90']:.1%} (standard error); one measurement differs from the next by {surface.noise:.1%}"
        )
    return Finding(name="surface", text=f"{text}.", numbers=numbers)
