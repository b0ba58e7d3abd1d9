"""What a sweep has measured, kept so that a kill loses nothing: a file that only grows, one record a line.

The first line holds the settings; each cell has one line when it begins and one when it is measured, on disk before
anything follows. A line that a kill tore is cut off. Two processes cannot have one journal open.

Leaves out what the records mean for what is asked next: `run`. A cell that was under way at a kill is asked again, and
what it is thought to have taken counts against the limits.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.told import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from bezel.bench.result import Cell


@dataclass(frozen=True)
class Taken:
    """A cell that was measured, and the seconds from its begin to its end, waiting included."""

    cell: Cell
    seconds: float


class Journal:
    """An open one.

    Attributes:
        taken: The measured cells, in their order.
        begun: How often each cell was begun, by id.
        lost_seconds: Of cells that were begun and never measured, as far as it had been estimated.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Opens the journal, or begins it.

        Args:
            path: Of the file; its folder exists.
            settings: What makes two cells comparable: server, grid, answers. Plain JSON values.

        Raises:
            UserError: Another process has it open, it was begun with other settings, or it is no journal.
        """
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}: a sweep without a journal is lost by a kill.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UserError(f"{path}: another sweep writes it. Wait for its end, or name another file.") from None
        try:
            self._read(settings)
        except BaseException:
            os.close(self._file)
            raise

    def begin(self, cell_id: str, seconds: float | None) -> int:
        """Notes that a cell is begun, and what it is thought to take; how often it was begun before."""
        self._append({"begin": cell_id, "seconds": seconds})
        before = self.begun.get(cell_id, 0)
        self.begun[cell_id] = before + 1
        return before

    def end(self, cell: Cell, seconds: float) -> None:
        """Keeps a measured cell."""
        self._append({"cell": cell.model_dump(mode="json"), "seconds": seconds})
        self.taken.append(Taken(cell, seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def _read(self, settings: Mapping[str, Any]) -> None:
        from bezel.bench.result import Cell

        self.taken: list[Taken] = []
        self.begun: dict[str, int] = {}
        open_cells: dict[str, float] = {}
        self.lost_seconds = 0.0
        records = self._records()
        if not records:
            self._append({"settings": settings})
            _keep_name(self._path)
            return
        _compare(self._path, records[0].get("settings"), json.loads(json.dumps(settings)))
        for record in records[1:]:
            if "begin" in record:
                self.lost_seconds += open_cells.pop(record["begin"], 0.0)
                open_cells[record["begin"]] = record["seconds"] or 0.0
                self.begun[record["begin"]] = self.begun.get(record["begin"], 0) + 1
            else:
                cell = Cell.model_validate(record["cell"])
                open_cells.pop(cell.id, None)
                self.taken.append(Taken(cell, record["seconds"]))
        self.lost_seconds += sum(open_cells.values())

    def _records(self) -> list[dict[str, Any]]:
        """All whole lines; what a kill left behind the last of them is cut off."""
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.ftruncate(self._file, len(whole))
        records = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict) or (number == 1) != ("settings" in record):
                raise UserError(f"{self._path}, line {number}: no record of a sweep's journal. Name another file.")
            records.append(record)
        return records

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            raise UserError(f"{self._path}: the disk took only part of a record. Make room, then run the sweep again.")
        os.fsync(self._file)


def _compare(path: Path, before: Any, now: Mapping[str, Any]) -> None:
    if not isinstance(before, dict):
        before = {}
    different = [
        f"{name}: {json.dumps(before.get(name))} then, {json.dumps(now.get(name))} now"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if different:
        listed = "\n   ".join(different)
        raise UserError(
            f"{path} was begun with other settings, so its cells cannot be compared with new ones:\n   {listed}\n"
            "   Give the settings of then to go on with it, or name another file to begin anew."
        )


def _keep_name(path: Path) -> None:
    """Makes the new file's name last beyond a crash of the machine."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
