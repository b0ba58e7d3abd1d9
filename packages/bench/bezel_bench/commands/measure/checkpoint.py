"""Files of a measurement: FILE.json with the result, and checkpoint files beside it, from which a command continues.

Owns the paths of result, journal and samples, and the writing of them. What only a result needs (numpy, the models of
its records) is imported when there is one, so that a load begins sooner. Leaves out what the records mean
(`bezel_bench.sweep`).
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bezel_base.console import note
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.screen import show
from bezel_base.text.counting import format_count
from bezel_bench.server.manifest import redact_command
from bezel_bench.sweep.measurement.journal import Journal, Ledger

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from bezel_base.terminal.blocks import Block
    from bezel_bench.cell.cell import MeasuredCell
    from bezel_bench.result.document import Cell, Result, SampleFile

_EXISTS = "it exists, and its result would be lost."
# Samples are stored beside the result, and both are written under another name first: .NAME.samples.npz.PID
_MAX_NAME = 255 - 24


def check_out(out: Path | None, *, force: bool) -> None:
    """Refuse a path that no result can be written to, or that holds one which is no unfinished run's.

    Raises:
        UserError: The path is a folder, its folder does not exist or is not writable, its name is too long, or it
            exists and is not to be replaced.
    """
    if out is None:
        return
    consequence, repair = "", "choose another path."
    try:
        folder = out.absolute().parent
        if out.is_dir():
            consequence, repair = "it is a folder.", f"choose a file in it, e.g. {out / 'r.json'}."
        elif not _is_folder(folder):
            consequence, repair = "its folder does not exist.", "create the folder first."
        elif (size := len(os.fsencode(out.name))) > _MAX_NAME:
            consequence = f"with a name of {size} bytes, the names of the files beside it would be too long."
            repair = f"choose a name of {_MAX_NAME} bytes at most."
        elif not os.access(folder, os.W_OK | os.X_OK):
            consequence = f"{folder} is not writable."
        elif out.exists() and not force and not out.with_name(f"{out.stem}.journal").exists():
            raise UserError(Problem("--out", str(out), _EXISTS, "choose another path, or add --force to replace it."))
    except OSError as error:
        consequence = f"the system reports: {error.strerror}."
    if consequence:
        raise UserError(Problem("--out", str(out), f"the result would be lost: {consequence}", repair))


def _is_folder(path: Path) -> bool:
    """As Path.is_dir, which from Python 3.14 on hides why a path is none, e.g. a name that is too long."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def write(result: Result, samples: Callable[[Path], SampleFile | None], out: Path) -> Result:
    """Write a result and, beside it, its samples: these first, so that no result names a missing file.

    Args:
        result: The result.
        samples: Writes the samples to a file; does nothing and returns None where there are none.
        out: The result's file.

    Raises:
        UserError: They cannot be written.
    """
    from bezel_bench.result.document import save
    from bezel_bench.result.sample_file import samples_path

    try:
        file = samples(samples_path(out))
        complete = result.model_copy(update={"samples": file})
        save(complete, out)
    except OSError as error:
        raise UserError(Problem("--out", str(out), f"it cannot be written: {error}.", "choose another path.")) from None
    return complete


def finish(
    result: Result,
    files: ResultFiles,
    options: argparse.Namespace,
    blocks: Callable[[Result], Iterable[Block]],
    *,
    complete: bool = False,
) -> None:
    """Write the result, and print it as JSON or as its text.

    Args:
        result: The result.
        files: Its checkpoint files.
        options: The options of the output.
        blocks: Makes the text of the result.
        complete: Whether the same command would measure anew: then the checkpoint files are removed before anything is
            printed, as the reader of the output may be gone.
    """
    if options.out:
        result = write(result, partial(files.write_samples, result.cells), options.out)
        if complete:
            files.forget()
    if options.json:
        sys.stdout.write(result.as_json())
        return
    show(blocks(result))
    if options.out:
        samples = f", samples in {result.samples.file}" if result.samples else ""
        sys.stdout.write(f"\nwritten: {options.out}{samples}\n")


class ResultFiles:
    """The checkpoint files beside a result; none without a result file.

    Args:
        out: File of the result; None stores nothing.
        program: The program as a user types it, to continue a command.
        force: Whether a result and its checkpoints may be discarded that this command cannot continue.
    """

    def __init__(self, out: Path | None, program: str, *, force: bool = False) -> None:
        self._out, self._program, self._force = out, program, force
        # Sample files that this process wrote.
        self._kept: set[Path] = set()

    def ledger(self, settings: Mapping[str, Any]) -> Ledger:
        """Open the ledger of the cells that were measured with these settings.

        Raises:
            UserError: It cannot be continued.
        """
        run = os.urandom(4).hex()
        if self._out is None:
            return Ledger(run)
        journal = Journal(self._path(".journal"), settings, run, force=self._force)
        if journal.discarded:
            shutil.rmtree(self._path(".cells"), ignore_errors=True)
            note("--force: discarded the cells of an unfinished command with other settings")
        if journal.taken:
            note(f"continues after {format_count(len(journal.taken), 'cells')} measured before")
        return journal

    def keep(self, measured: MeasuredCell) -> None:
        """Store a cell's samples."""
        if self._out is None or measured.samples is None:
            return
        from bezel_bench.result.sample_file import write_samples

        file = self._samples(measured.cell)
        file.parent.mkdir(exist_ok=True)
        write_samples(file, {measured.cell.id: (measured.samples, measured.began)})
        self._kept.add(file)

    def write_samples(self, cells: Iterable[Cell], path: Path) -> SampleFile | None:
        """Write the samples of cells that this process or an earlier one measured; None where there are none.

        Raises:
            OSError: They cannot be written.
            ResultError: Those of an earlier process cannot be read.
        """
        from bezel_bench.result.sample_file import copy_samples, read_samples, write_samples

        files = [file for cell in cells if cell.requests and (file := self._samples(cell)).exists()]
        if len(files) == 1 and files[0] in self._kept:
            # The samples of one cell are stored as those of a result are.
            return copy_samples(files[0], path)
        samples = {name: columns for file in files for name, columns in read_samples(file).items()}
        return write_samples(path, samples) if samples else None

    def spill(self, cell: str) -> Path | None:
        """The file for the samples of a cell's unfinished load; None where nothing is stored."""
        if self._out is None:
            return None
        self._path(".cells").mkdir(exist_ok=True)
        return self._path(".cells") / f"{quote(cell, safe='')}.spill"

    def spills(self, cell: str) -> list[Path]:
        """The spill files of a cell's killed load, one for each sender."""
        spill = self.spill(cell)
        return sorted(spill.parent.glob(f"{spill.name}*")) if spill else []

    def clear(self, cell: str) -> None:
        """Remove the spill files of a cell whose samples are stored elsewhere."""
        for path in self.spills(cell):
            path.unlink()

    def killed_file(self, attempt: int) -> Path:
        """The result file of a killed attempt."""
        return self._path(f".killed-{attempt}.json")

    def forget(self, *, only_empty: bool = False) -> None:
        """Remove journal and samples once the result holds them, or (`only_empty`) if nothing was measured."""
        if self._out is None:
            return
        journal, cells = self._path(".journal"), self._path(".cells")
        if only_empty and (_has_responses(cells) or b'"cell"' in journal.read_bytes()):
            return
        journal.unlink(missing_ok=True)
        shutil.rmtree(cells, ignore_errors=True)

    def print_continuation(self) -> None:
        """Print, after a command that ended early, where its cells are stored and the command that continues."""
        if self._out is not None and (journal := self._path(".journal")).exists():
            command = shlex.join([self._program, *redact_command(sys.argv[1:])])
            note(f"the measured cells are stored in {journal}; this command continues from there:\n   {command}")

    def _samples(self, cell: Cell) -> Path:
        # An id contains the user's name of a variant, which may be a path.
        return self._path(".cells") / f"{quote(cell.id, safe='')}.npz"

    def _path(self, suffix: str) -> Path:
        if self._out is None:
            raise ValueError("without a result file nothing is stored")
        return self._out.with_name(f"{self._out.stem}{suffix}")


def _has_responses(cells: Path) -> bool:
    """Whether a folder of samples has any: a spill with more than its first line, or the file of a complete cell."""
    files = [*cells.iterdir()] if cells.is_dir() else []
    return any(".spill" not in file.name or file.read_bytes().count(b"\n") > 1 for file in files)
