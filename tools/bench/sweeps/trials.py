"""Accuracy of sweeps with a quarter of the requests, on measured, simulated and made-up grids, beside other methods.

    .venv/bin/python -m tools.bench.sweeps.trials [FOLDER] [--write]

FOLDER holds one CSV for each measured grid (`tools.bench.sweeps.grids`); without it these keep their stored outcomes.
The simulated servers and the made-up grids follow. With --write the outcomes go into
`tests/results/sweeps/trials.json`, the table into docs/sweeps.md.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np

from tools.bench.sweeps import made_up
from tools.bench.sweeps.grids import Oracle, made_up_grids, read, twins
from tools.bench.sweeps.methods import COARSE, FORMER, METHODS, OWN, Outcome, former
from tools.docs.generated_sections import ROOT, put

FILE = ROOT / "tests" / "results" / "sweeps" / "trials.json"
DOCUMENT = ROOT / "docs" / "sweeps.md"
MADE_UP = 50
MANY = 20
"""Ranges of a grid from which on the share of held ones is shown for it alone."""
Trials = dict[str, dict[str, Outcome]]
"""Outcomes by grid and method."""
KINDS = ("measured", "simulated", "made-up")


def trials(oracle: Oracle) -> dict[str, Outcome]:
    """Run every method on a grid."""
    return {name: method(oracle) for name, method in METHODS.items()}


def kind(grid: str) -> str:
    """Return the kind of a grid by its name: one of KINDS."""
    prefix = grid.partition(":")[0]
    return prefix if prefix in KINDS else KINDS[0]


def relative(outcome: Outcome, quantile: float) -> float:
    """Return a quantile of the relative errors: the larger of both figures by the smaller, less 1."""
    return float(np.quantile(np.expm1(outcome.errors), quantile))


def table(made: Trials) -> str:
    """Return the table of methods and kinds of grids."""
    columns = (
        *("method", "grids", "cells with a figure", "median error", "p90", "ranges", "held", "held, worst grid"),
        "requests",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    before = former()
    rows = {name: {grid: each[name] for grid, each in made.items()} for name in METHODS}
    rows = {OWN: rows[OWN], FORMER: {grid: before[grid] for grid in made}, COARSE: rows[COARSE]}
    lines += [
        _row(name, label, {grid: one for grid, one in outcomes.items() if kind(grid) == label})
        for name, outcomes in rows.items()
        for label in KINDS
    ]
    lines += [
        _row(OWN, shape, {grid: one for grid, one in rows[OWN].items() if shape in grid}) for shape in made_up.SHAPES
    ]
    return "\n".join(lines) + "\n"


def ranges_held(outcomes: dict[str, Outcome]) -> tuple[int, float, float | None]:
    """Return the number of ranges, the share that held, and the least share of a grid with many of them."""
    ranges = [each for outcome in outcomes.values() for each in outcome.held]
    of_many = [sum(one.held) / len(one.held) for one in outcomes.values() if len(one.held) >= MANY]
    return len(ranges), sum(ranges) / max(1, len(ranges)), min(of_many, default=None)


def _row(name: str, label: str, outcomes: dict[str, Outcome]) -> str:
    with_figures = [one for one in outcomes.values() if one.errors]
    count, share, least = ranges_held(outcomes)
    figures = [one.figures for one in outcomes.values()]
    cells = [
        name,
        f"{len(outcomes)} {label}",
        f"{median(figures):.0%}, at least {min(figures):.0%}",
        f"{median(relative(one, 0.5) for one in with_figures):.1%}",
        f"{median(relative(one, 0.9) for one in with_figures):.1%}",
        str(count) if count else "none",
        f"{share:.0%}" if count else "",
        "" if least is None else f"{least:.0%}",
        f"{max(one.share for one in outcomes.values()):.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def to_json(made: Trials) -> str:
    """Return the outcomes as JSON, one line for each grid."""
    lines = []
    for grid, outcomes in made.items():
        plain = {
            name: {
                **asdict(outcome),
                "errors": [float(f"{error:.3g}") for error in outcome.errors],
                "figures": round(outcome.figures, 4),
                "share": round(outcome.share, 4),
            }
            for name, outcome in outcomes.items()
        }
        lines.append(f"{json.dumps(grid)}: {json.dumps(plain)}")
    return "{" + ",\n".join(lines) + "}\n"


def read_stored() -> Trials:
    """Return the outcomes of the last run."""
    return from_json(FILE.read_text("utf-8"))


def from_json(text: str) -> Trials:
    """Return the outcomes in JSON."""
    return {
        grid: {name: Outcome(**outcome) for name, outcome in outcomes.items()}
        for grid, outcomes in json.loads(text).items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    oracles = [*twins(), *made_up_grids(MADE_UP)]
    if options.folder:
        oracles = [*(read(file) for file in sorted(options.folder.glob("*.csv"))), *oracles]
    made = {} if options.folder else {grid: each for grid, each in read_stored().items() if kind(grid) == KINDS[0]}
    with ProcessPoolExecutor() as pool:
        made |= dict(zip((oracle.name for oracle in oracles), pool.map(trials, oracles), strict=True))
    text = to_json(made)
    if options.write:
        FILE.write_text(text, encoding="utf-8")
        put(DOCUMENT, "tools.bench.sweeps.trials", table(from_json(text)))
    else:
        print(table(from_json(text)))
        for grid, each in from_json(text).items():
            engine = each[OWN]
            part = f"{sum(engine.held)} of {len(engine.held)} ranges held, {engine.figures:.0%} with a figure"
            print(
                f"{grid}: {part}, {relative(engine, 0.5):.1%}, {relative(engine, 0.9):.1%}" if engine.errors else grid
            )
