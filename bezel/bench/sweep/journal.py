"""What a sweep, a search or a comparison has measured, kept so that a kill loses nothing.

A journal is a file that only grows, one record a line. The first line holds the settings and the name that keeps its
prompts apart from all others; each cell has one line when it begins and one when it is measured, on disk before
anything follows. A line that a kill tore is cut off. Two processes cannot have one journal open. A ledger is the same
without a file: for who keeps no result either.

Leaves out what the records mean for what is asked next: `once`. A cell that was under way at a kill is asked again, and
what it is thought to have taken counts against the limits.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from bezel.bench.result.document import Cell, Manifest


@dataclass(frozen=True)
class Taken:
    """A cell that was measured, and the seconds from its begin to its end, waiting included.

    Attributes:
        cut: A limit ended it before its end.
    """

    cell: Cell
    seconds: float
    cut: bool = False


@dataclass(frozen=True)
class Server:
    """Which server answered, by its manifest, and whether it only simulates one."""

    manifest: Manifest
    simulated: bool


class Ledger:
    """What is known in this process, and gone with it.

    Attributes:
        run: Keeps the prompts of this ledger apart from those of any other.
        taken: The measured cells, in their order.
        begun: How often each cell was begun, by id.
        lost_seconds: Of cells that an earlier process began and did not measure, as far as it had been estimated.
        notes: What a reader must know of the cells.
        servers: Of each variant what answered when it was first seen.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.taken: list[Taken] = []
        self.begun: dict[str, int] = {}
        self.lost_seconds = 0.0
        self.notes: dict[str, None] = {}
        self.servers: dict[str, Server] = {}

    @property
    def spent(self) -> float:
        """Seconds so far, of all processes."""
        return self.lost_seconds + sum(one.seconds for one in self.taken)

    def begin(self, cell_id: str, seconds: float | None) -> int:
        """Notes that a cell is begun, and what it is thought to take; how often it was begun before."""
        self._append({"begin": cell_id, "seconds": seconds})
        before = self.begun.get(cell_id, 0)
        self.begun[cell_id] = before + 1
        return before

    def end(self, taken: Taken) -> None:
        """Keeps a measured cell."""
        self._append({"cell": taken.cell.model_dump(mode="json"), "seconds": taken.seconds, "cut": taken.cut})
        self.taken.append(taken)

    def note(self, text: str) -> None:
        """Keeps what a reader must know, once."""
        if text not in self.notes:
            self._append({"note": text})
            self.notes[text] = None

    def meet(self, variant: str, server: Server) -> None:
        """Keeps which server a variant is.

        Raises:
            UserError: It tells another version, model or setting of itself than when it was first seen.
        """
        if variant in self.servers:
            _same(variant, self.servers[variant], server)
            return
        manifest = server.manifest.model_dump(mode="json")
        self._append({"server": variant, "manifest": manifest, "simulated": server.simulated})
        self.servers[variant] = server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def _append(self, record: Mapping[str, Any]) -> None:
        """Puts a record where it outlasts the process, before anything follows."""


class Journal(Ledger):
    """One in a file."""

    def __init__(self, path: Path, settings: Mapping[str, Any], run: str) -> None:
        """Opens the journal, or begins it.

        Args:
            path: Of the file; its folder exists.
            settings: What makes two cells comparable: server, grid, answers. Plain JSON values.
            run: Of a new one; one that was begun before has its own.

        Raises:
            UserError: Another process has it open, it was begun with other settings, or it is no journal.
        """
        super().__init__(run)
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}: without a journal a kill loses all.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UserError(f"{path}: another command writes it. Wait for its end, or name another file.") from None
        try:
            self._read(settings)
        except BaseException:
            os.close(self._file)
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def _read(self, settings: Mapping[str, Any]) -> None:
        records = self._records()
        if not records:
            self._append({"settings": settings, "run": self.run})
            _keep_name(self._path)
            return
        _compare(self._path, records[0]["settings"], json.loads(json.dumps(settings)))
        self.run = records[0]["run"]
        open_cells: dict[str, float] = {}
        for number, record in enumerate(records[1:], 2):
            try:
                self._take(record, open_cells)
            except (KeyError, TypeError, ValueError):  # of pydantic's, too
                raise self._no_record(number) from None
        self.lost_seconds += sum(open_cells.values())

    def _take(self, record: Mapping[str, Any], open_cells: dict[str, float]) -> None:
        """Takes over a record of before; `open_cells` are those that were begun, with their estimates."""
        from bezel.bench.result.document import Cell, Manifest

        if "begin" in record:
            name = record["begin"]
            self.lost_seconds += open_cells.pop(name, 0.0)
            open_cells[name] = record["seconds"] or 0.0
            self.begun[name] = self.begun.get(name, 0) + 1
        elif "cell" in record:
            cell = Cell.model_validate(record["cell"])
            open_cells.pop(cell.id, None)
            self.taken.append(Taken(cell, record["seconds"], record["cut"]))
        elif "server" in record:
            self.servers[record["server"]] = Server(Manifest.model_validate(record["manifest"]), record["simulated"])
        else:
            self.notes[record["note"]] = None

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
            if not isinstance(record, dict) or (number == 1) != (record.keys() == {"settings", "run"}):
                raise self._no_record(number)
            records.append(record)
        return records

    def _no_record(self, number: int) -> UserError:
        return UserError(f"{self._path}, line {number}: no record of a benchmark's journal. Name another file.")

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            raise UserError(f"{self._path}: the disk took part of a record. Make room, then run the command again.")
        os.fsync(self._file)


def _compare(path: Path, before: Any, now: Mapping[str, Any]) -> None:
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


def _same(variant: str, before: Server, now: Server) -> None:
    told, tells = before.manifest.served_by.model_dump(), now.manifest.served_by.model_dump()
    different = [
        f"{name}: {told[name]} then, {tells[name]} now"
        for name in told
        if None not in (told[name], tells[name]) and told[name] != tells[name]
    ]
    if different:
        listed = "\n   ".join(different)
        raise UserError(
            f"{variant} is another server than at first, so what it does cannot be compared:\n   {listed}\n"
            "   Start the one of then to go on with it, or name another file to begin anew."
        )


def _keep_name(path: Path) -> None:
    """Makes the new file's name last beyond a crash of the machine."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
