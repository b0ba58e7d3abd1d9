"""The engine on the stack of a project's set-up, with its state on this machine or in the state bucket.

Owns the environment, the record of a run that was killed, and its recovery. Leaves out which of the two backends has
the state (`places.py`).
"""

import json
import os
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel.engine.events.reader import read_events
from bezel.engine.events.values import Events
from bezel.engine.locks.engine_locks import read_engine_locks
from bezel.engine.locks.stale_locks import stale_lock_pids
from bezel.engine.outcomes import LockedError
from bezel.engine.recover.recover import recover
from bezel.engine.run.command import CommandError, printed, pulumi_cli
from bezel.engine.run.process import run_to_end
from bezel.engine.run.record import MARK, LastRun
from bezel.engine.state.bucket import StateBucket
from bezel.foundation.settings import NAMESPACE
from bezel.gitops.project_setup.folder import SetupFolder
from bezel_base.console import say
from bezel_base.errors import Problem
from bezel_base.json_documents import read_json
from bezel_base.process_status import is_running
from bezel_base.text.shell import quoted

QUICK_SECONDS = 120.0
REFRESH_SECONDS = 600.0
RUN_SECONDS = 1800.0
# The program finds these again by their names; their ids do not follow from their settings.
_FOUND_BY_THE_PROGRAM = frozenset(
    {"gcp:billing/budget:Budget", "gcp:monitoring/notificationChannel:NotificationChannel"}
)
_EMULATOR = "STORAGE_EMULATOR_HOST"
State = dict[str, Any]


@dataclass(frozen=True)
class SetupEngine:
    """The engine with one backend.

    Attributes:
        folder: Folder of the set-up.
        backend: URL of the backend.
        held: Descriptor that stays open as long as an engine lives.
    """

    folder: SetupFolder
    backend: str
    held: int

    def printed(self, *arguments: str, seconds: float = QUICK_SECONDS) -> str:
        """The output of a short command on the stack.

        Raises:
            CommandError: It failed, or did not end in time.
        """
        command = [pulumi_cli(), *arguments, "--stack", self.folder.stack]
        return printed(command, folder=self.folder.path, seconds=seconds, environment=self._environment())

    def exported(self) -> State | None:
        """The state; None where the backend has no such stack.

        Raises:
            CommandError: The backend cannot be read.
        """
        try:
            state: State = read_json(self.printed("stack", "export"))
        except CommandError as error:
            if "no stack named" in str(error):
                return None
            raise
        except ValueError as error:
            raise CommandError(f"the state of {self.folder.stack} cannot be read: {error}") from None
        return state

    def ensure_stack(self) -> None:
        """Make the stack unless the backend has it."""
        if self.exported() is None:
            self._quick("stack", "init", self.folder.stack, "--secrets-provider", "passphrase", "--non-interactive")

    def imported(self, state: State) -> None:
        """Put a state in place of the stack's."""
        with tempfile.TemporaryDirectory(prefix="bezel-init-") as place:
            file = Path(place) / "state.json"
            file.write_text(json.dumps(state))
            self.printed("stack", "import", "--file", str(file))

    def outputs(self) -> dict[str, str]:
        """The stack's outputs; empty before the first complete run."""
        state = self.exported() or {}
        resources = state.get("deployment", {}).get("resources") or []
        root: State = next((item for item in resources if item["type"] == "pulumi:pulumi:Stack"), {})
        return {name: str(value) for name, value in (root.get("outputs") or {}).items()}

    def run(self, operation: str, *options: str) -> tuple[int, dict[str, int]]:
        """Run `pulumi OPERATION` with its own display; return its exit code, and the number of changes by kind."""
        last = self._last_run()
        last.end_leftovers()
        changes = operation != "preview"
        environment = self._environment() | {MARK: last.begin() if changes else last.mark()}
        # The engine hides the option of its event log unless this is set; it has no other effect.
        environment["PULUMI_DEBUG_COMMANDS"] = "1"
        with tempfile.TemporaryDirectory(prefix="bezel-init-") as place:
            log = last.events if changes else Path(place) / "events.jsonl"
            command = [pulumi_cli(), operation, "--stack", self.folder.stack, "--non-interactive", *options]
            end = run_to_end([*command, "--event-log", str(log)], self.folder.path, environment, held=(self.held,))
            counts = _changes(read_events(log))
        last.end_leftovers()
        if end.code == 0 and changes:
            last.forget()
        return end.code, counts

    def recover(self) -> None:
        """Reconcile what a killed run left: its lock, its processes, its changes with an unknown outcome.

        Raises:
            LockedError: The lock may be that of a living run.
            UserError: A resource's id does not follow from its settings.
        """
        last = self._last_run()
        last.end_leftovers()
        self._unlock()
        changes = [change for change in last.open_changes() if change.resource["type"] not in _FOUND_BY_THE_PROGRAM]
        state = self.exported() or {}
        pending = state.get("deployment", {}).get("pending_operations") or []
        known = [item for item in pending if item["resource"]["type"] not in _FOUND_BY_THE_PROGRAM]
        if known != pending:
            state["deployment"]["pending_operations"] = known
            self.imported(state)
        if changes or known:
            recover(self._recovering, self.folder.project, say, changes, last.remember)
        last.forget()

    def _recovering(self, arguments: Sequence[str]) -> str:
        return self.printed(*arguments, seconds=REFRESH_SECONDS)

    def _unlock(self) -> None:
        """Remove the lock of an engine that is gone."""
        if self.backend.startswith("gs://"):
            stale = self._locks_in_bucket()
        else:
            stale = bool(stale_lock_pids(self.folder.state, NAMESPACE, self.folder.stack))
        if stale:
            say("the last run was killed: unlocking its state")
            self.printed("cancel", "--yes")

    def _locks_in_bucket(self) -> bool:
        """Whether there are locks, all of engines of this machine that are gone.

        Raises:
            LockedError: One may be alive.
        """
        found = False
        with StateBucket.of(self.backend) as bucket:
            for lock in read_engine_locks(bucket, NAMESPACE, self.folder.stack):
                found = True
                if lock.host != socket.gethostname() or is_running(lock.pid):
                    consequence = f"another run changes this project: {lock.text}."
                    repair = (
                        "wait for its end; if it is dead, `pulumi cancel --yes --stack "
                        f"{quoted(self.folder.stack)}` in "
                        f"{self.folder.path} with PULUMI_BACKEND_URL={self.backend}; then run the same command again."
                    )
                    raise LockedError(Problem(f"{self.backend}/{lock.name}", None, consequence, repair))
        return found

    def _quick(self, *arguments: str) -> str:
        """A short command that takes no `--stack`."""
        command = [pulumi_cli(), *arguments]
        return printed(command, folder=self.folder.path, seconds=QUICK_SECONDS, environment=self._environment())

    def _last_run(self) -> LastRun:
        return self.folder.last_run("bucket" if self.backend.startswith("gs://") else "here")

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if name != "PULUMI_CONFIG_PASSPHRASE"}
        if emulator := own.get(_EMULATOR):
            own[_EMULATOR] = emulator.removeprefix("http://")  # the engine's client takes no scheme here
        return own | {
            "PULUMI_BACKEND_URL": self.backend,
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.folder.passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }


def _changes(events: Events) -> dict[str, int]:
    """Number of changes of each kind; without those that change nothing."""
    return {kind: count for kind, count in events.counts.items() if kind not in {"same", "read"} and count}
