"""Accuracy of sweeps with a quarter of the requests on grids that no constant was chosen on, beside obvious methods.

    .venv/bin/python -m tools.bench.sweeps.trials FOLDER [--write]

FOLDER holds one CSV for each measured grid (`tools.bench.sweeps.grids`); the simulated servers follow. Leave one grid
out: the constants of a model, and the width of every method's 90 % ranges, are chosen by the errors on all the other
grids. With --write the outcomes go into `tests/results/sweeps/trials.json`, the table into docs/sweeps.md.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from tools.bench.sweeps.grids import Oracle, read, twins
from tools.bench.sweeps.methods import METHODS, OWN, Outcome
from tools.docs.generated_sections import ROOT, put

FILE = ROOT / "tests" / "results" / "sweeps" / "trials.json"
DOCUMENT = ROOT / "docs" / "sweeps.md"
HELD = 0.9
SIMULATED = "simulated"
Trials = dict[str, dict[str, Outcome]]
"""Outcomes by grid and method."""


@dataclass(frozen=True)
class Judged:
    """A method on one grid, with what was chosen on the others."""

    grid: str
    chosen: str
    median: float
    p90: float
    held: list[bool]
    share: float


def trials(oracle: Oracle) -> dict[str, Outcome]:
    """Run every method with every candidate on a grid."""
    return {key(name, each): run(oracle) for name, runs in METHODS.items() for each, run in runs.items()}


def key(method: str, candidate: str) -> str:
    """Return the name of a candidate of a method."""
    return f"{method}, {candidate}" if candidate else method


def keys(method: str) -> list[str]:
    """Return the names of a method's candidates."""
    return [key(method, candidate) for candidate in METHODS[method]]


def relative(outcome: Outcome, quantile: float) -> float:
    """Return a quantile of the relative errors."""
    return float(np.quantile(np.expm1(outcome.errors), quantile))


def width(outcomes: list[Outcome]) -> float:
    """Return the multiple of their units that holds 90 % of the errors, in the mean of the grids."""
    held = sorted(
        (error / unit, 1 / len(each.errors) / len(outcomes))
        for each in outcomes
        for error, unit in zip(each.errors, each.units, strict=True)
    )
    places = np.cumsum([weight for _, weight in held])
    return held[min(int(np.searchsorted(places, HELD)), len(held) - 1)][0]


def judged(made: Trials, names: list[str]) -> list[Judged]:
    """Return each grid by the method of those names that has the least p90 on all other grids, ranges included.

    A grid of which a method leaves no valid cell to infer is left out.
    """
    found = []
    for grid in made:
        others = [each for other, each in made.items() if other != grid and all(each[name].errors for name in names)]
        chosen = min(names, key=lambda name: fmean(np.log(relative(each[name], HELD)) for each in others))
        outcome = made[grid][chosen]
        if not outcome.errors:
            continue
        times = width([each[chosen] for each in others])
        held = [error <= times * unit for error, unit in zip(outcome.errors, outcome.units, strict=True)]
        found.append(Judged(grid, chosen, relative(outcome, 0.5), relative(outcome, HELD), held, outcome.share))
    return found


def table(made: Trials) -> str:
    """Return the table of methods."""
    columns = (
        *("method", "grids", "median error", "p90", "within the 90 % range", "per grid", "grids at 85-95 %"),
        "requests",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name in METHODS:
        rows = judged(made, keys(name))
        for label, part in (
            ("measured", [row for row in rows if not row.grid.startswith(SIMULATED)]),
            ("simulated", [row for row in rows if row.grid.startswith(SIMULATED)]),
            ("all", rows),
        ):
            held = [fmean(row.held) for row in part]
            pooled = fmean(cell for row in part for cell in row.held)
            lines.append(
                f"| {name} | {len(part)} {label} | {median(row.median for row in part):.1%} "
                f"| {median(row.p90 for row in part):.1%} | {pooled:.0%} | {min(held):.0%} to {max(held):.0%} "
                f"| {sum(0.85 <= share <= 0.95 for share in held)} of {len(part)} "
                f"| {fmean(row.share for row in part):.0%} |"
            )
    return "\n".join(lines) + "\n"


def kept(made: Trials) -> str:
    """Return the outcomes as JSON, one line for each grid."""
    lines = []
    for grid, outcomes in made.items():
        plain = {
            name: {
                key: [float(f"{each:.3g}") for each in value] if isinstance(value, list) else round(value, 4)
                for key, value in asdict(outcome).items()
            }
            for name, outcome in outcomes.items()
        }
        lines.append(f"{json.dumps(grid)}: {json.dumps(plain)}")
    return "{" + ",\n".join(lines) + "}\n"


def stored() -> Trials:
    """Return the outcomes of the last run."""
    return loaded(FILE.read_text("utf-8"))


def loaded(text: str) -> Trials:
    """Return the outcomes in JSON."""
    return {
        grid: {name: Outcome(**outcome) for name, outcome in outcomes.items()}
        for grid, outcomes in json.loads(text).items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    oracles = [*(read(file) for file in sorted(options.folder.glob("*.csv"))), *twins()]
    with ProcessPoolExecutor() as pool:
        text = kept(dict(zip((oracle.name for oracle in oracles), pool.map(trials, oracles), strict=True)))
    if options.write:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(text, encoding="utf-8")
        put(DOCUMENT, "tools.bench.sweeps.trials", table(stored()))
    else:
        made = {
            grid: {name: Outcome(**each) for name, each in found.items()} for grid, found in json.loads(text).items()
        }
        print(table(made))
        print(f"width of all grids: {width([each[OWN] for each in made.values() if each[OWN].errors]):.2f}")
        for row in judged(made, keys(OWN)):
            print(f"{row.grid}: {row.chosen}, {row.median:.1%}, {row.p90:.1%}, held {fmean(row.held):.0%}")
