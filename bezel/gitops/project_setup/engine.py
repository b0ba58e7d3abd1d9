"""The engine on the stack of a project's set-up, with its state on this machine or in the state bucket.

Owns the environment, the record of a run that was killed, and its recovery. Leaves out which of the two backends has
the state (`places.py`).
"""

import json
import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel.engine.locks.engine_locks import read_engine_locks
from bezel.engine.locks.stale_locks import stale_lock_pids
from bezel.engine.outcomes import LockedError
from bezel.engine.project.project import Project
from bezel.engine.recover.plan import pending
from bezel.engine.recover.recover import recover
from bezel.engine.run.command import QUICK_SECONDS, command_output, pulumi_cli
from bezel.engine.run.engine import Engine, EngineRun, Operation
from bezel.engine.run.record import LastRun
from bezel.engine.state.bucket import StateBucket
from bezel.foundation.settings import NAMESPACE
from bezel.gitops.project_setup.folder import SetupFolder
from bezel_base.errors import Problem
from bezel_base.process_status import is_running
from bezel_base.terminal.screen import show_text
from bezel_base.text.shell import shell_word

REFRESH_SECONDS = 600.0
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
        lock_descriptor: Descriptor that stays open as long as an engine lives.
    """

    folder: SetupFolder
    backend: str
    lock_descriptor: int

    @property
    def engine(self) -> Engine:
        """The engine, with its own display."""
        return Engine(
            Project(self.folder.path),
            self.folder.stack,
            self._environment(),
            self.folder.path / f"Pulumi.{self.folder.stack}.yaml",
            seconds=None,
            record=self._last_run(),
            held_descriptors=(self.lock_descriptor,),
            in_terminal=True,
        )

    def output_of(self, *arguments: str) -> str:
        """The output of a short command on the stack.

        Raises:
            CommandError: It failed, or did not end in time.
        """
        return self.engine.output_of(*arguments)

    def export_state(self) -> State | None:
        """The state; None where the backend has no such stack.

        Raises:
            CommandError: The backend cannot be read.
        """
        return self.engine.export()

    def ensure_stack(self) -> None:
        """Make the stack unless the backend has it."""
        if self.export_state() is None:
            self._quick("stack", "init", self.folder.stack, "--secrets-provider", "passphrase", "--non-interactive")

    def import_state(self, state: State) -> None:
        """Put a state in place of the stack's."""
        with tempfile.TemporaryDirectory(prefix="bezel-init-") as place:
            file = Path(place) / "state.json"
            file.write_text(json.dumps(state))
            self.output_of("stack", "import", "--file", str(file))

    def outputs(self) -> dict[str, str]:
        """The stack's outputs; empty before the first complete run."""
        return outputs_of(self.export_state() or {})

    def run(self, operation: Operation, *options: str) -> tuple[EngineRun, dict[str, int]]:
        """Run `pulumi OPERATION` with its own display; return the run, and the number of changes by kind."""
        run = self.engine.run(operation, options=["--non-interactive", *options])
        counts = run.events.counts.items()
        return run, {kind: count for kind, count in counts if kind not in {"same", "read"} and count}

    def recover(self) -> None:
        """Reconcile what a killed run left: its lock, its processes, its changes with an unknown outcome.

        Raises:
            LockedError: The lock may be that of a living run.
            UserError: A resource's id does not follow from its settings.
        """
        last = self._last_run()
        last.end_leftovers()
        self._unlock()
        state = self.export_state()
        if last.open_changes() or (state is not None and pending(state)):
            recover(self.engine, show_text, ignored=_FOUND_BY_THE_PROGRAM, seconds=REFRESH_SECONDS)
        last.forget()

    def _unlock(self) -> None:
        """Remove the lock of an engine that is gone."""
        if self.backend.startswith("gs://"):
            stale = self._locks_in_bucket()
        else:
            stale = bool(stale_lock_pids(self.folder.state, NAMESPACE, self.folder.stack))
        if stale:
            show_text("the last run was killed: unlocking its state")
            self.output_of("cancel", "--yes")

    def _locks_in_bucket(self) -> bool:
        """Whether there are locks, all of engines of this machine that are gone.

        Raises:
            LockedError: One may be alive.
        """
        has_locks = False
        with StateBucket.of(self.backend) as bucket:
            for lock in read_engine_locks(bucket, NAMESPACE, self.folder.stack):
                has_locks = True
                if lock.host != socket.gethostname() or is_running(lock.pid):
                    consequence = f"another run changes this project: {lock.text}."
                    repair = (
                        "wait for its end; if it is dead, `pulumi cancel --yes --stack "
                        f"{shell_word(self.folder.stack)}` in "
                        f"{self.folder.path} with PULUMI_BACKEND_URL={self.backend}; then run the same command again."
                    )
                    raise LockedError(Problem(f"{self.backend}/{lock.name}", None, consequence, repair))
        return has_locks

    def _quick(self, *arguments: str) -> str:
        """A short command that takes no `--stack`."""
        command = [pulumi_cli(), *arguments]
        return command_output(command, folder=self.folder.path, seconds=QUICK_SECONDS, environment=self._environment())

    def _last_run(self) -> LastRun:
        return self.folder.last_run("bucket" if self.backend.startswith("gs://") else "here")

    def _environment(self) -> dict[str, str]:
        variables = {name: value for name, value in os.environ.items() if name != "PULUMI_CONFIG_PASSPHRASE"}
        if emulator := variables.get(_EMULATOR):
            variables[_EMULATOR] = emulator.removeprefix("http://")  # the engine's client takes no scheme here
        return variables | {
            "PULUMI_BACKEND_URL": self.backend,
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.folder.passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }


def outputs_of(state: State) -> dict[str, str]:
    """The outputs of an exported state; empty before the first complete run."""
    resources = state.get("deployment", {}).get("resources") or []
    root: State = next((item for item in resources if item["type"] == "pulumi:pulumi:Stack"), {})
    return {name: str(value) for name, value in (root.get("outputs") or {}).items()}
