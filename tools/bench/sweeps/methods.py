"""Methods of sweeping a grid with a share of the requests: the product's, other models, and obvious orders.

Each measures cells until its share is spent and infers the others. Leaves out what is concluded from the errors
(`tools.bench.sweeps.trials`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bezel.bench.sweep.budget import Limits
from bezel.bench.sweep.grid import Bounds, Place
from bezel.bench.sweep.journal import Ledger
from bezel.bench.sweep.next_cell import Known, beyond, next_cell
from bezel.bench.sweep.run import SHARE, Sweep, run_sweep
from bezel.bench.sweep.surface import Array, surface_of
from bezel.bench.sweep.validity import usable_cells
from tools.bench.sweeps.grids import METRIC, Oracle
from tools.bench.sweeps.law import Constants, Fit, fit, most_telling

if TYPE_CHECKING:
    from bezel.bench.result.document import Cell

OWN = "bezel: every context, cheapest users first, and two far cells"
LENGTHS, POWERS = (1.0, 1.5), (0.5, 0.75, 1.0)
Order = Callable[[Oracle], Sequence[Place]]
Choose = Callable[[Known, list[Place]], Place | None]


@dataclass(frozen=True)
class Outcome:
    """Errors of a method on one grid.

    Attributes:
        errors: |ln(inferred / measured)| of each cell that was inferred and is valid in the grid.
        units: What each range is a multiple of.
        share: Requests spent, of a full sweep's.
    """

    errors: list[float]
    units: list[float]
    share: float


def own(oracle: Oracle) -> Outcome:
    """Run the product's sweep."""
    grid = oracle.grid
    sweep = Sweep(grid, Bounds(), Limits(requests=_most(oracle)), METRIC)
    status = run_sweep(sweep, oracle.measure, Ledger("trial"), float, lambda _: None).status
    if status.surface is None:
        raise ValueError(f"{oracle.name} has no valid cell")
    return _outcome(oracle, status.known, status.surface.log, status.surface.unit)


def law_and_process(oracle: Oracle, constants: Constants) -> Outcome:
    """Measure what tells a law of saturation with a Gaussian process most, at the cells that it chooses."""
    grid, fits = oracle.grid, _Fits(oracle, constants)
    rows = range(len(grid.contexts))
    ends = [(row, column) for column in (0, len(grid.users) - 1) for row in (rows[0], rows[-1])]

    def choose(known: Known, affordable: list[Place]) -> Place | None:
        first = [place for place in ends if place in affordable]
        if first or not known.values:
            return first[0] if first else min(affordable, key=lambda place: place[::-1])
        return most_telling(grid, fits.of(known), known, affordable, constants)

    known = measured(oracle, choose)
    surface = fits.of(known)
    return _outcome(oracle, known, surface.mean, np.hypot(surface.spread, surface.noise))


def law_over(choose: Callable[[Oracle], Choose], oracle: Oracle, constants: Constants) -> Outcome:
    """Fit the same law and process to the cells of another method."""
    known = measured(oracle, choose(oracle))
    surface = _Fits(oracle, constants).of(known)
    return _outcome(oracle, known, surface.mean, np.hypot(surface.spread, surface.noise))


def in_order(order: Order, oracle: Oracle) -> Outcome:
    """Measure cells in an order, and interpolate as the product does; every range has one width."""
    known = measured(oracle, _by(order(oracle)))
    surface = surface_of(oracle.grid.contexts, oracle.grid.users, known.values)
    return _outcome(oracle, known, surface.log, np.ones_like(surface.log))


def measured(oracle: Oracle, choose: Choose) -> Known:
    """Measure chosen cells, as far as the share allows, and none that failures exclude."""
    grid, most, spent = oracle.grid, _most(oracle), 0
    cells: dict[Place, Cell] = {}
    while True:
        values, _ = usable_cells(grid, cells, METRIC)
        failed = {place for place, cell in cells.items() if cell.state == "failed"}
        known = Known(values, failed, set(cells), grid.places())
        left = beyond(known)
        affordable = [
            place
            for place in grid.places()
            if place not in cells and place not in left and spent + grid.requests(place) <= most
        ]
        place = choose(known, affordable) if affordable else None
        if place is None:
            return known
        spent += grid.requests(place)
        cells[place] = oracle.measure(grid.request(place))


class _Fits:
    """Fits of one grid, each from the scales of the last one."""

    def __init__(self, oracle: Oracle, constants: Constants) -> None:
        self._grid, self._constants, self._scales = oracle.grid, constants, None

    def of(self, known: Known) -> Fit:
        found, self._scales = fit(self._grid.contexts, self._grid.users, known.values, self._constants, self._scales)
        return found


def every_second_context(oracle: Oracle) -> list[Place]:
    """Every second context, cheapest users first."""
    return sorted((place for place in oracle.grid.places() if place[0] % 2 == 0), key=lambda place: place[::-1])


def coarse(oracle: Oracle) -> list[Place]:
    """Every second context and every second number of users, the last ones included, cheapest users first."""
    ends = len(oracle.grid.contexts) - 1, len(oracle.grid.users) - 1
    places = [
        place
        for place in oracle.grid.places()
        if all(at % 2 == 0 or at == end for at, end in zip(place, ends, strict=True))
    ]
    return sorted(places, key=lambda place: place[::-1])


def by_chance(oracle: Oracle) -> list[Place]:
    """Cells in a random order."""
    return random.Random(1).sample(oracle.grid.places(), len(oracle.grid.places()))  # noqa: S311 - an order


def _by(order: Sequence[Place]) -> Choose:
    return lambda _, affordable: next((place for place in order if place in affordable), None)


def _as_own(oracle: Oracle) -> Choose:
    return lambda known, affordable: next_cell(oracle.grid, known, affordable, _most(oracle))


CONSTANTS = {
    f"length {length:g}, power {power:g}": Constants(users_length=length, cost_power=power)
    for length, power in product(LENGTHS, POWERS)
}
_SECOND = "every second context, cheapest users first"


def _each(run: Callable[[Oracle, Constants], Outcome]) -> dict[str, Callable[[Oracle], Outcome]]:
    return {name: partial(run, constants=constants) for name, constants in CONSTANTS.items()}


METHODS: dict[str, dict[str, Callable[[Oracle], Outcome]]] = {
    OWN: {"": own},
    "model 1: law and process, at cells that it chooses": _each(law_and_process),
    "model 2: law and process, at the cells of bezel": _each(partial(law_over, _as_own)),
    "model 3: law and process, every second context": _each(
        partial(law_over, lambda oracle: _by(every_second_context(oracle)))
    ),
    f"baseline: {_SECOND}": {"": partial(in_order, every_second_context)},
    "coarse and bilinear": {"": partial(in_order, coarse)},
    "random": {"": partial(in_order, by_chance)},
}
"""Methods by name, each with the candidates of its constants."""


def _most(oracle: Oracle) -> int:
    return int(SHARE * oracle.grid.full_requests())


def _outcome(oracle: Oracle, known: Known, surface: Array, units: Array) -> Outcome:
    """Return the errors of the cells that are inferred and valid in the grid."""
    grid, left = oracle.grid, beyond(known)
    truth = usable_cells(grid, {place: oracle.measure(grid.request(place)) for place in grid.places()}, METRIC)[0]
    places = [place for place in sorted(truth) if place not in known.asked and place not in left]
    return Outcome(
        [abs(math.log(truth[place]) - float(surface[place])) for place in places],
        [float(units[place]) for place in places],
        sum(grid.requests(place) for place in known.asked) / grid.full_requests(),
    )
