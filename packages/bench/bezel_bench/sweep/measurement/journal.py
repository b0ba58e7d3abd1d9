"""Journal of a sweep, a search or a comparison: its measured cells, stored so that a kill loses nothing.

A journal is an append-only file, one record a line. The first line holds the settings and the name that separates its
prompts from all others; each cell has one line when it begins and one when it is measured, on disk before anything
else happens. A line torn by a kill is cut off. Two processes cannot have one journal open. A ledger is the same without
a file, for commands that store no result either.

Leaves out the choice of the next load (`bezel_bench.sweep.measurement.run_once`). A cell that was under way at a
kill is measured again, and its estimated time counts against the limits.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from bezel_bench.result.document import Cell
    from bezel_bench.result.records import Manifest


@dataclass(frozen=True)
class Taken:
    """A measured cell, and the seconds from its begin to its end, waiting included.

    Attributes:
        cut: Whether a limit ended it early.
    """

    cell: "Cell"
    seconds: float
    cut: bool = False


@dataclass(frozen=True)
class Server:
    """A server, identified by its manifest, and whether it is simulated."""

    manifest: "Manifest"
    simulated: bool


_ANOTHER = "name another file"
_OR_FORCE = f"{_ANOTHER} or add --force"


class Ledger:
    """Measured cells of this process, without a file.

    Attributes:
        run: The name that separates the prompts of this ledger from those of any other.
        taken: The measured cells, in their order.
        begun: The number of times that each cell was begun, by id.
        lost_seconds: Estimated seconds of cells that an earlier process began and did not measure.
        notes: Notes on the cells for the reader.
        servers: The server of each variant when it was first seen.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.taken: list[Taken] = []
        self.begun: dict[str, int] = {}
        self.lost_seconds = 0.0
        self.notes: dict[str, None] = {}
        self.servers: dict[str, Server] = {}

    @property
    def spent_seconds(self) -> float:
        """Return the seconds so far, of all processes."""
        return self.lost_seconds + sum(result.seconds for result in self.taken)

    def begin(self, cell_id: str, seconds: float | None) -> int:
        """Record that a cell is begun, with its estimated time; return how often it was begun before."""
        self._append({"begin": cell_id, "seconds": seconds})
        before = self.begun.get(cell_id, 0)
        self.begun[cell_id] = before + 1
        return before

    def end(self, taken: Taken) -> None:
        """Store a measured cell."""
        self._append({"cell": taken.cell.model_dump(mode="json"), "seconds": taken.seconds, "cut": taken.cut})
        self.taken.append(taken)

    def note(self, text: str) -> None:
        """Store a note for the reader, once."""
        if text not in self.notes:
            self._append({"note": text})
            self.notes[text] = None

    def meet(self, variant: str, server: Server) -> None:
        """Record the server of a variant.

        Raises:
            UserError: It reports another version, model or setting than when it was first seen.
        """
        if variant in self.servers:
            before, now = (view.manifest.served_by.model_dump() for view in (self.servers[variant], server))
            comparable = [name for name in before if None not in (before[name], now[name])]
            same = {name: before[name] for name in comparable}, {name: now[name] for name in comparable}
            _refuse_changes(f"server {variant}".rstrip(), *same, "start the earlier server")
            return
        manifest = server.manifest.model_dump(mode="json")
        self._append({"server": variant, "manifest": manifest, "simulated": server.simulated})
        self.servers[variant] = server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def _append(self, record: Mapping[str, Any]) -> None:
        """Write a record to disk before anything else happens."""


class Journal(Ledger):
    """A ledger in a file.

    Attributes:
        discarded: Whether the file held a journal that could not be continued, and was emptied.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], run: str, *, force: bool = False) -> None:
        """Open the journal, or create it.

        Args:
            path: The file; its folder exists.
            settings: Settings that make two cells comparable: server, grid, responses. Plain JSON values.
            run: The name of a new journal; an existing one has its own.
            force: Whether to begin anew where the file cannot be continued.

        Raises:
            UserError: Another process has it open; or it was begun with other settings or is not a journal, and is not
                to be discarded.
        """
        super().__init__(run)
        self.discarded = False
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            consequence = f"the journal cannot be opened ({error.strerror}), so a kill would lose every cell."
            raise UserError(Problem(str(path), None, consequence, "name a file in another folder.")) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            repair = "wait until the other command ends, or name another file."
            raise UserError(Problem(str(path), None, "another command writes this journal.", repair)) from None
        try:
            self._read_or_discard(settings, run, force=force)
        except BaseException:
            os.close(self._file)
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def _read_or_discard(self, settings: Mapping[str, Any], run: str, *, force: bool) -> None:
        try:
            self._read(settings)
        except UserError:
            if not force:
                raise
            os.ftruncate(self._file, 0)
            Ledger.__init__(self, run)
            self.discarded = True
            self._read(settings)

    def _read(self, settings: Mapping[str, Any]) -> None:
        records = self._records()
        if not records:
            self._append({"settings": settings, "run": self.run})
            _sync_folder(self._path)
            return
        now = json.loads(json.dumps(settings))
        before = _flat(records[0]["settings"])
        _refuse_changes(str(self._path), before, _flat(now), "give the earlier settings", _OR_FORCE)
        self.run = records[0]["run"]
        open_cells: dict[str, float] = {}
        for number, record in enumerate(records[1:], 2):
            try:
                self._take(record, open_cells)
            except (KeyError, TypeError, ValueError):  # of pydantic's, too
                raise self._no_record(number) from None
        self.lost_seconds += sum(open_cells.values())

    def _take(self, record: Mapping[str, Any], open_cells: dict[str, float]) -> None:
        """Take over an earlier record; `open_cells` are the cells begun, with their estimates."""
        if "begin" in record:
            name = record["begin"]
            self.lost_seconds += open_cells.pop(name, 0.0)
            open_cells[name] = record["seconds"] or 0.0
            self.begun[name] = self.begun.get(name, 0) + 1
        elif "cell" in record:
            from bezel_bench.result.document import Cell  # late: a new journal holds none

            cell = Cell.model_validate(record["cell"])
            open_cells.pop(cell.id, None)
            self.taken.append(Taken(cell, record["seconds"], record["cut"]))
        elif "server" in record:
            from bezel_bench.result.records import Manifest

            self.servers[record["server"]] = Server(Manifest.model_validate(record["manifest"]), record["simulated"])
        else:
            self.notes[record["note"]] = None

    def _records(self) -> list[dict[str, Any]]:
        """Return all whole lines; a torn last line is cut off."""
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
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
        consequence = f"line {number} is not a record of a benchmark's journal."
        return UserError(Problem(str(self._path), None, consequence, "name another file."))

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            repair = "free space on the disk, then run the command again."
            raise UserError(Problem(str(self._path), None, "the disk stored only a part of a record.", repair))
        os.fsync(self._file)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings by their path, so that of a whole load only what differs is shown."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        nested = isinstance(value, dict) and value
        flat |= _flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return flat


def _refuse_changes(
    key: str, before: Mapping[str, Any], now: Mapping[str, Any], origin: str, anew: str = _ANOTHER
) -> None:
    """Raise UserError with every value that differs, if any does; `origin` restores the earlier values."""
    problems = [
        Problem(
            f"{key}: {name}",
            json.dumps(now.get(name)),
            f"it was {json.dumps(before.get(name))} in this journal: its cells cannot be compared with new ones.",
            f"{origin} to continue, or {anew} to start anew.",
        )
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if problems:
        raise UserError(*problems)


def _sync_folder(path: Path) -> None:
    """Write the new file's name to disk, so that it survives a crash of the machine."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
