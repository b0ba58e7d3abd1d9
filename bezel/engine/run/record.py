"""Record of the engine's last run on a stack: its processes, its event log, its changes with an unknown outcome.

Stored in a folder of this machine until a run ends well. Leaves out the recovery of those changes
(bezel.engine.recover).
"""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bezel.engine.events.open_changes import OpenChange, unfinished_changes
from bezel.engine.events.reader import read_events
from bezel_base.atomic_write import write_whole
from bezel_base.process_status import end_marked, is_running, processes_with_variable

MARK = "BEZEL_RUN"


@dataclass(frozen=True)
class LastRun:
    """The record of a stack's last run, in a folder of its own."""

    folder: Path

    @property
    def events(self) -> Path:
        """The engine's event log."""
        return self.folder / "events.jsonl"

    def begin(self) -> str:
        """Start the record of a run in place of the previous one; return the value that marks its processes.

        The refused creates of the previous one are kept: they are open until they are adopted or given up.
        """
        if refused := self.refused_creates():
            self.remember([*(change for change in self._stored_changes() if not change.exists), *refused])
        self.events.unlink(missing_ok=True)
        return self.mark()

    def open(self, *, changes: bool) -> dict[str, str]:
        """End what the previous run left, and begin the record of the next one.

        Args:
            changes: Whether the run makes changes, which are recorded.

        Returns:
            The variables that mark its processes; none while another run lives: the engine refuses then, and the record
            is the other's.
        """
        if self.is_running():
            return {}
        self.end_leftovers()
        return {MARK: self.begin() if changes else self.mark()}

    def mark(self) -> str:
        """A new value to mark the processes of a run that makes no changes, so none are recorded."""
        mark = secrets.token_hex(8)
        self._put("mark", mark)
        self._put("command", str(os.getpid()))
        return mark

    def is_orphan(self) -> bool:
        """Whether the command that started the run is gone: its engine, if still running, is being ended."""
        command = self._get("command")
        return command.isdecimal() and not is_running(int(command))

    def is_running(self) -> bool:
        """Whether the run's engine is still running."""
        mark = self._get("mark")
        return bool(mark) and any(_is_engine(process) for process in processes_with_variable(MARK, mark))

    def end_leftovers(self) -> int:
        """End the processes that a killed engine left; return how many. Not to be called while the run lives."""
        mark = self._get("mark")
        return end_marked(MARK, mark) if mark else 0

    def open_changes(self, *, existing: bool = False) -> list[OpenChange]:
        """The changes whose outcome is unknown, the earlier ones first.

        Args:
            existing: Include creates that Google refused because the resource exists already.
        """
        stored = self._stored_changes()
        open_urns = {change.urn for change in stored if not change.exists}
        changes = [*stored, *unfinished_changes(read_events(self.events), ended_too=self.set_back())]
        return [change for change in changes if not change.exists or existing or change.urn in open_urns]

    def refused_creates(self) -> list[OpenChange]:
        """The creates that Google refused because the resource exists already, in this run or an earlier one."""
        events = read_events(self.events)
        earlier = [change for change in self._stored_changes() if change.urn not in events.ended]
        changes = {change.urn: change for change in [*earlier, *unfinished_changes(events)]}
        return [change for change in changes.values() if change.exists]

    def remember(self, changes: Sequence[OpenChange]) -> None:
        """Store these changes as open, and delete the rest of the run's record."""
        self._put("open", json.dumps([asdict(change) | {"resource": dict(change.resource)} for change in changes]))
        self.events.unlink(missing_ok=True)
        (self.folder / "set-back").unlink(missing_ok=True)

    def set_back(self) -> bool:
        """Whether the state was restored to one before the run's last changes, so that all of them are open."""
        return (self.folder / "set-back").exists()

    def note_set_back(self) -> bool:
        """Record that an earlier state was restored; return whether there is a log of the run's changes."""
        self._put("set-back", "")
        return self.events.exists()

    def ended_well(self) -> bool:
        """Whether the run left nothing to recover."""
        return not self.set_back() and not self.events.exists() and not json.loads(self._get("open") or "[]")

    def forget(self, *, refused: bool = True) -> None:
        """Delete the record of a run that ended well.

        Args:
            refused: Delete the refused creates too: the run reached all resources, or the user has given those up.
        """
        left = [] if refused else self.refused_creates()
        self.events.unlink(missing_ok=True)
        (self.folder / "open").unlink(missing_ok=True)
        (self.folder / "set-back").unlink(missing_ok=True)
        if left:
            self.remember(left)

    def _stored_changes(self) -> list[OpenChange]:
        return [OpenChange(**item) for item in json.loads(self._get("open") or "[]")]

    def _get(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def _put(self, name: str, text: str) -> None:
        for folder in (self.folder.parents[1], self.folder.parent, self.folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self.folder / name, text, mode=0o600)


def end_processes(mark: str) -> int:
    """End the processes of ended runs with this mark, on this machine; return how many. No run with it may live."""
    return end_marked(MARK, mark)


def _is_engine(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip() == "pulumi"
    except OSError:
        return False
