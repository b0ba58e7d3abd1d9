"""Times of commands in two checkouts, in alternating pairs: `pairs.py BEFORE [AFTER]` prints both and their ratio.

    git worktree add --detach ../before 0f0f162f && make -C ../before setup
    .venv/bin/python -m tools.measure.pairs ../before [--only plan] [--runs 9]

`help` and `plan` are commands of `bezel`; `preview` is that of a stack on a localcloud that runs already. `clone` is
the first `make up` in a new clone of the checkout's last commit, with the user's caches, and `again` the second one
there. `set-up` is `make setup` in a new clone without any cache: it downloads, and builds the Pulumi CLI, so it runs
only where it is named. Which checkout comes first changes from pair to pair. The first pair of `help`, `plan` and
`preview` fills caches and does not count. Figures depend on the machine's other work: its load is printed beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.measure.own_cloud import own_cloud

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 1800.0
STACK = "l4-qat"
SPEED = "10000"
CASES = ("help", "plan", "preview", "clone", "again", "set-up")
_CACHES = ("XDG_CACHE_HOME", "UV_CACHE_DIR", "GOCACHE", "GOMODCACHE", "PLAYWRIGHT_BROWSERS_PATH")


@dataclass(frozen=True)
class Checkout:
    """A checkout with its environment, and the place of its clones and of its localcloud."""

    root: Path
    folder: Path
    cloud: Path

    def seconds(self, case: str) -> float:
        """Seconds of one run of a case.

        Raises:
            SystemExit: A command failed, or did not end in time.
        """
        bezel = str(self.root / ".venv" / "bin" / "bezel")
        if case == "help":
            return run_seconds(self.root, bezel, "--help")
        if case == "plan":
            return run_seconds(self.root, bezel, "plan", STACK)
        if case == "preview":
            return run_seconds(self.root, bezel, "local", "preview", STACK, "--dir", str(self.cloud), "--speed", SPEED)
        clone = self.folder / "clone"
        run_seconds(self.folder, "git", "clone", "--quiet", "--shared", str(self.root), str(clone))
        if case == "set-up":
            caches = {name: str(self.folder / "caches" / name) for name in _CACHES}
            seconds = run_seconds(clone, "make", "setup", variables=caches | {"GOFLAGS": "-modcacherw"})
        else:
            options = (f"STACK={STACK}", f"OPTIONS=--dir {self.cloud} --speed {SPEED}")
            seconds = run_seconds(clone, "make", "up", *options)
            if case == "again":
                seconds = run_seconds(clone, "make", "up", *options)
            run_seconds(clone, "make", "down", *options)
        run_seconds(self.folder, "rm", "-rf", "clone", "caches", self.cloud.name)
        return seconds


def main() -> None:
    """Run the pairs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="checkout with its .venv")
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).resolve().parents[2])
    parser.add_argument("--only", choices=CASES, action="append", help="measure this alone; repeatable")
    parser.add_argument("--runs", type=int, default=5, help="pairs of each case (default: 5)")
    chosen = parser.parse_args()
    # Unset, as for most users: with it every run would compile every module.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{os.cpu_count()} cores; load of the last minute {os.getloadavg()[0]:.2f}")
    print(f"{'':<8}{'before: least':>15}{'median':>9}{'after: least':>15}{'median':>9}{'ratio':>8}")
    for case in chosen.only or [case for case in CASES if case != "set-up"]:
        with contextlib.ExitStack() as stack:
            before, after = (
                Checkout(root.resolve(), *stack.enter_context(own_cloud())) for root in (chosen.before, chosen.after)
            )
            print(row(case, pairs(case, before, after, chosen.runs)), flush=True)
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")


def pairs(case: str, before: Checkout, after: Checkout, runs: int) -> list[tuple[float, float]]:
    """Seconds of each pair that counts: before, after."""
    times = []
    for number in range(runs + (case in {"help", "plan", "preview"})):
        order = (before, after) if number % 2 == 0 else (after, before)
        seconds = {checkout: checkout.seconds(case) for checkout in order}
        times.append((seconds[before], seconds[after]))
    return times[-runs:]


def row(case: str, times: list[tuple[float, float]]) -> str:
    """Least and median seconds of both, and the median of the pairs' ratios."""
    cells = [f"{min(each):>15.3f}{statistics.median(each):>9.3f}" for each in zip(*times, strict=True)]
    return f"{case:<8}{''.join(cells)}{statistics.median(after / before for before, after in times):>8.3f}"


def run_seconds(folder: Path, *command: str, variables: Mapping[str, str] | None = None) -> float:
    """Seconds of a command, which is ended with all that it started where it does not end in time.

    Raises:
        SystemExit: It failed; its output is the text.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | dict(variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=SECONDS)[0]
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                sys.exit(f"{' '.join(command)} in {folder} did not end in {SECONDS:g} s")
            raise
    seconds = time.perf_counter() - begun
    if process.returncode:
        sys.exit(f"{' '.join(command)} in {folder} ended with {process.returncode}:\n{output}")
    return seconds


if __name__ == "__main__":
    main()
