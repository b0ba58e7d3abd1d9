"""Kill each part of a run at boundaries of the wire and see that everything converges: writes the table of kill points.

    .venv/bin/python -m tools.measure.kills [--each 2] [--limit N] [--jobs 2] [--folder DIR]

Kill points: the calls of an undisturbed up, update, refresh and destroy are counted from the log of the wire. For each
operation and victim, `--each` boundaries are drawn with a seed: the first among the calls that change something, the
next among all; before and after the call in turn. A victim that does not run at a drawn boundary gets the next draw.

The points tried on this commit are stored in `tests/results/kills-engine.json` and not tried again: an interrupted run
continues where it stopped. Exit status 1 if a point does not converge.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from tests.support.e2e.kill_points import (
    OPERATIONS,
    VICTIMS,
    Boundary,
    KillHarness,
    NotThereError,
    Point,
    boundaries,
    kill_at_boundary,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

RESULTS = ROOT / "tests" / "results" / "kills-engine.json"
# A refresh and a destroy run without the program.
ABSENT = {("refresh", "program"), ("destroy", "program")}
COLUMNS = ["operation", "victim", "boundary", "next command said", "converged"]


def main() -> int:
    """Try the remaining points; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=2, help="points for each operation and victim (default: 2)")
    parser.add_argument("--limit", type=int, default=1000, help="try no more than so many now")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time (default: 1)")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    options = parser.parse_args()
    table = _table()
    with tempfile.TemporaryDirectory() as folder:
        return _run(options.folder or Path(folder), table, options.each, options.limit, options.jobs)


def _run(folder: Path, table: dict[str, Any], each: int, limit: int, jobs: int) -> int:
    grounds = KillHarness(folder / "grounds")
    grounds.make()
    if not table["boundaries"]:
        for operation in OPERATIONS:
            calls = _in_copy(folder, grounds, operation, lambda rehearsal, op=operation: boundaries(rehearsal, op))
            table["boundaries"][operation] = [[item.method, item.path, item.nth] for item in calls]
            print(f"{operation}: {len(calls)} calls", flush=True)
        _write(table)
    tasks = [
        (operation, victim, share)
        for share in range(each)
        for operation, victim in itertools.product(OPERATIONS, VICTIMS)
        if (operation, victim) not in ABSENT
    ]
    left = [item for item in tasks if f"{item[0]} {item[1]} {item[2]}" not in table["tried"]][:limit]
    began = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(_try, folder, grounds, table, *item): item for item in left}
        for number, ended in enumerate(as_completed(running), 1):
            row, problems = ended.result()
            if row:
                table["rows"].append(row)
                table["tried"].append(" ".join(map(str, running[ended])))
                _write(table)
            rest = (time.monotonic() - began) / number * (len(left) - number)
            print(f"{' | '.join(row)} | {rest / 60:.0f} min left", *problems, sep="\n  ", flush=True)
    return int(any(row[-1] != "yes" for row in table["rows"]))


def _try(
    folder: Path, grounds: KillHarness, table: dict[str, Any], operation: str, victim: str, share: int
) -> tuple[list[str], tuple[str, ...]]:
    """The row of the first draw at which the victim runs, and the conditions that did not hold."""
    for point in _draws(table, operation, victim, share):
        try:
            outcome = _in_copy(folder, grounds, operation, lambda rehearsal, at=point: kill_at_boundary(rehearsal, at))
        except NotThereError as error:
            print(f"  {_point_text(point)}: {error}; the next draw", flush=True)
            continue
        row = [operation, victim, _point_text(point), outcome.message, "yes" if not outcome.problems else "no"]
        return row, outcome.problems
    return [], (f"{operation} {victim}: lives at no boundary",)


def _draws(table: dict[str, Any], operation: str, victim: str, share: int) -> Iterator[Point]:
    """Boundaries in the order drawn, for the `place`-th point of a victim in an operation."""
    calls = [Boundary(*item) for item in table["boundaries"][operation]]
    if share == 0:
        calls = [call for call in calls if call.method not in {"GET", "HEAD"}] or calls
    whens = itertools.cycle(["before", "after"] if share % 2 else ["after", "before"])
    taken = {row[2] for row in table["rows"] if row[:2] == [operation, victim]}
    # The draw is the same in every run: the seed is made of operation, victim and place.
    for call in random.Random(f"{operation} {victim} {share}").sample(calls, len(calls)):  # noqa: S311
        point = Point(operation, victim, call, next(whens))
        if _point_text(point) not in taken:
            yield point


def _in_copy(folder: Path, grounds: KillHarness, operation: str, work: Any) -> Any:
    copy = folder / f"point-{os.getpid()}-{threading.get_ident()}"
    shutil.rmtree(copy, ignore_errors=True)
    rehearsal = grounds.copy(operation, copy)
    try:
        return work(rehearsal)
    finally:
        rehearsal.local("stop")
        shutil.rmtree(copy, ignore_errors=True)


def _point_text(point: Point) -> str:
    call = point.boundary
    return f"{point.when} {call.method} {call.path}" + (f" ({call.nth})" if call.nth > 1 else "")


def _table() -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    if RESULTS.exists():
        table: dict[str, Any] = json.loads(RESULTS.read_text())
        if table["stamp"]["commit"] == commit:
            return table
    machine = f"{os.cpu_count()} CPUs, {os.uname().sysname}"
    return {
        "title": "Kills with the whole engine",
        "document": "reliability",
        "provider": "the stand-in, with the retries, failures and error texts of the published one",
        "order": 21,
        "about": "",
        "command": ".venv/bin/python -m tools.measure.kills",
        "stamp": {"commit": commit, "date": dt.datetime.now(dt.UTC).date().isoformat(), "machine": machine},
        "columns": COLUMNS,
        "rows": [],
        "notes": [],
        "boundaries": {},
        "tried": [],
    }


def _write(table: dict[str, Any]) -> None:
    counted = ", ".join(f"{operation} {len(calls)}" for operation, calls in table["boundaries"].items())
    table["about"] = (
        "Each row: a part is killed (SIGKILL, or the signals named) at a call of an operation; then `up` converges, a "
        "second `up` changes nothing, `down` leaves nothing in the cloud and no process, localcloud's database is "
        f"whole. Calls of an undisturbed run, each with a boundary before and after it: {counted}. The points are "
        "drawn with a fixed seed for each operation and victim: first among the calls that change something, then "
        "among all. `itself`: what the struck command found out and mended before it ended."
    )
    order = [*OPERATIONS, *VICTIMS]
    table["rows"].sort(key=lambda row: [order.index(name) for name in row[:2]])
    RESULTS.parent.mkdir(exist_ok=True)
    part = RESULTS.with_name(f".{RESULTS.name}.{os.getpid()}")
    part.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    part.replace(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
