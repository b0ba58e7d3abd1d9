"""Checkpoint files beside FILE.json during a measurement, from which the same command continues after a kill.

Owns the paths of the journal and of the samples, and the options and texts of the limits, which sweeps, searches and
comparisons share. Leaves out what the records mean (`bezel.bench.sweep`).
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bezel.bench.cell.cell import MeasuredCell
    from bezel.bench.result.columns import Columns
    from bezel.bench.result.document import Cell
    from bezel.bench.sweep.budget import Limits
    from bezel.bench.sweep.journal import Ledger
    from bezel.cli.bench.measure.variant import Variant


def limit_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the limits on time and cost."""
    parser.add_argument("--max-minutes", type=float, metavar="M", help="of measuring, all runs of the command together")
    parser.add_argument("--max-usd", type=float, metavar="USD", help="at the server's price for the same time")


def limits_of(options: argparse.Namespace, usd_per_hour: float | None) -> Limits:
    """The limits that the options set.

    Raises:
        UserError: One of them cannot be kept.
    """
    from bezel.bench.sweep.budget import Limits

    for option, value in (("--max-minutes", options.max_minutes), ("--max-usd", options.max_usd)):
        if value is not None and not 0 < value < float("inf"):
            raise UserError(f"{option} {value:g}: nothing could be measured. Give a number above 0, or leave it out.")
    if options.max_usd is not None and usd_per_hour is None and options.max_minutes is None:
        raise UserError(
            f"--max-usd {options.max_usd:g}: what the server costs is not known, so the limit cannot be kept. "
            "Give --usd-per-hour, or --max-minutes."
        )
    seconds = None if options.max_minutes is None else options.max_minutes * 60
    return Limits(seconds=seconds, usd=options.max_usd, usd_per_hour=usd_per_hour)


def amount(seconds: float, limits: Limits) -> str:
    """Format a time and its cost."""
    usd = limits.cost(seconds)
    return f"{seconds / 60:.1f} min" + ("" if usd is None else f" {usd:.2f} USD")


def amounts(seconds: float, limits: Limits) -> str:
    """Format the time and cost spent, and those left."""
    left = limits.seconds_left(seconds)
    ahead = "" if left is None else f"; at most {amount(max(0.0, left), limits)} left"
    return f"{amount(seconds, limits)}{ahead}"


def settings_of(arm: Variant, options: argparse.Namespace) -> dict[str, Any]:
    """Settings of the server and of the requests that make cells comparable."""
    target, served = arm.reached.target, arm.server.served
    return {
        "url": target.url,
        "model": target.model,
        "endpoint": target.endpoint,
        "vllm_version": served.vllm_version,
        "max_model_len": served.max_model_len,
        "kv_cache_tokens": arm.server.kv_cache_tokens,
        "deadline": options.deadline,
        "workers": options.workers,
    }


def _holds_answers(cells: Path) -> bool:
    """Whether a folder of samples holds any: a spill with more than its first line, or the file of a complete cell."""
    files = [*cells.iterdir()] if cells.is_dir() else []
    return any(".spill" not in file.name or file.read_bytes().count(b"\n") > 1 for file in files)


def this_command() -> str:
    """The command line of this process for a shell, without secrets."""
    from bezel.bench.server.manifest import shown

    return shlex.join([".venv/bin/bezel", *shown(sys.argv[1:])])


class ResultFiles:
    """The checkpoint files beside a result; none without a result file.

    Args:
        out: File of the result; None stores nothing.
    """

    def __init__(self, out: Path | None) -> None:
        self._out = out

    def ledger(self, settings: Mapping[str, Any]) -> Ledger:
        """Open the ledger of the cells that were measured with these settings.

        Raises:
            UserError: It cannot be continued.
        """
        from bezel.bench.sweep.journal import Journal, Ledger

        run = secrets.token_hex(4)
        if self._out is None:
            return Ledger(run)
        journal = Journal(self._of(".journal"), settings, run)
        if journal.taken:
            sys.stderr.write(f"goes on after {len(journal.taken)} cells that were measured before\n")
        return journal

    def keep(self, found: MeasuredCell) -> None:
        """Store a cell's samples."""
        from bezel.bench.result.sample_file import write_samples

        if self._out is None or found.samples is None:
            return
        file = self._samples(found.cell)
        file.parent.mkdir(exist_ok=True)
        write_samples(file, {found.cell.id: (found.samples, found.began)})

    def samples(self, cells: Iterable[Cell]) -> dict[str, tuple[Columns, int]]:
        """The samples of cells that this process or an earlier one measured."""
        from bezel.bench.result.sample_file import read_samples

        files = [self._samples(cell) for cell in cells if cell.requests]
        return {name: one for file in files if file.exists() for name, one in read_samples(file).items()}

    def spill(self, cell: str) -> Path | None:
        """The file for the samples of a cell's unfinished load; None where nothing is stored."""
        if self._out is None:
            return None
        self._of(".cells").mkdir(exist_ok=True)
        return self._of(".cells") / f"{quote(cell, safe='')}.spill"

    def spills(self, cell: str) -> list[Path]:
        """The spill files of a cell's killed load, one for each sender."""
        one = self.spill(cell)
        return sorted(one.parent.glob(f"{one.name}*")) if one else []

    def clear(self, cell: str) -> None:
        """Remove the spill files of a cell whose samples are stored elsewhere."""
        for path in self.spills(cell):
            path.unlink()

    def killed(self, attempt: int) -> Path:
        """The result file of a killed attempt."""
        return self._of(f".killed-{attempt}.json")

    def forget(self, *, unless_kept: bool = False) -> None:
        """Remove journal and samples once the result holds them, or (`unless_kept`) if nothing was measured."""
        if self._out is None:
            return
        journal, cells = self._of(".journal"), self._of(".cells")
        if unless_kept and (_holds_answers(cells) or b'"cell"' in journal.read_bytes()):
            return
        journal.unlink(missing_ok=True)
        shutil.rmtree(cells, ignore_errors=True)

    def goes_on(self) -> None:
        """Print, after a command that ended early, where its cells are stored and the command that continues."""
        if self._out is None:
            return
        kept = self._of(".journal")
        if kept.exists():
            sys.stderr.write(f"what was measured is kept in {kept}; this goes on from there:\n   {this_command()}\n")

    def _samples(self, cell: Cell) -> Path:
        # An id holds the user's name of an arm, which may be a path.
        return self._of(".cells") / f"{quote(cell.id, safe='')}.npz"

    def _of(self, suffix: str) -> Path:
        if self._out is None:
            raise ValueError("nothing is kept without a result")
        return self._out.with_name(f"{self._out.stem}{suffix}")
