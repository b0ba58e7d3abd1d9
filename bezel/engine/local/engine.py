"""The Pulumi engine on localcloud: an engine with an environment, a state folder and a record of its runs.

Only the environment differs from a run against Google; program and stack files are used unchanged. Leaves out what
needs no project (`place`), localcloud itself (`bezel_localcloud`), the runs (bezel.engine.run) and the summary that is
printed (`bezel.cli.up_summary`).
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel.engine.local.place import FOREIGN, EnginePlace, Provider
from bezel.engine.local.project_places import copies_folder, make_private, run_folder
from bezel.engine.local.stack_copy import copy_of, salt_line
from bezel.engine.locks.stale_locks import live_lock, stale_lock_pids
from bezel.engine.project.project import Project
from bezel.engine.recover.recover import Recovered, recover
from bezel.engine.run.command import QUICK_SECONDS, command_output, pulumi_cli
from bezel.engine.run.engine import Engine, EngineRun, Operation
from bezel.engine.run.process import GRACE_SECONDS
from bezel.engine.run.record import LastRun
from bezel.engine.state.folder import is_stack, outputs_in, pending_in, remove_truncated, restore, salt_in
from bezel.engine.state.resource_ids import derived_id
from bezel_base.atomic_write import write_whole
from bezel_base.console import note, say
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word_for_make

ENDING_SECONDS = sum(GRACE_SECONDS) + 5.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class LocalEngine:
    """Pulumi for one project with state, home and secrets below `folder` (localcloud's directory).

    Attributes:
        held_descriptors: File descriptors that stay open while a run continues, also if this process is killed before
            its end.
    """

    project: Project
    folder: Path
    cloud: Mapping[str, str]
    provider: Provider = "stand-in"
    held_descriptors: tuple[int, ...] = ()

    @property
    def place(self) -> EnginePlace:
        """Where the engine works, whatever the project."""
        return EnginePlace(self.folder, self.cloud, self.provider)

    @property
    def state(self) -> Path:
        """The folder of the states of every project."""
        return self.folder / "state"

    def environment(self) -> dict[str, str]:
        """The variables that make the engine run against localcloud, to be added to the present ones."""
        # Not in the environment of the place, which a shell takes over: another passphrase's key is kept nowhere.
        return self.place.environment() | {"BEZEL_KEPT_KEYS": str(self.place.keys)}

    def prepare(self, stack: str, *, accepted: bool = True) -> None:
        """Make state folder, passphrase and stack where they are missing; bring the stack's configuration up to date.

        The engine gets a copy of the stack file, into which it writes its encryption salt; it writes the whole
        configuration into its events and its history. So a refused stack file is not copied: the reason of the refusal
        may be a secret in it. The copy of the last accepted one stays.

        Raises:
            UserError: The engine cannot make the stack.
            ProjectError: There is no such stack file.
        """
        copy = self.stack_copy(stack)
        # The engine, run by hand, writes another backend's salt into the stack file.
        stack_text = self.project.stack_file(stack).read_text(encoding="utf-8")
        if not accepted:
            stack_text = copy.read_text(encoding="utf-8") if copy.exists() else "config: {}"
        self.place.prepare()
        copies = copy.parent
        make_private(self.folder, copies)
        write_whole(
            copies / "Pulumi.yaml", (self.project.folder / "Pulumi.yaml").read_text(encoding="utf-8"), mode=0o600
        )
        state, name = self.state, self.project.name
        if not is_stack(state, name, stack):
            write_whole(copy, copy_of(stack_text), mode=0o600)
            self._quick(["stack", "init", stack, "--non-interactive"], cwd=copies)
        elif not copy.exists() or not salt_line(copy.read_text(encoding="utf-8")):
            write_whole(copy, copy_of(stack_text, salt_in(state, name, stack)), mode=0o600)
        text = copy_of(stack_text, copy.read_text(encoding="utf-8"))
        if copy.read_text(encoding="utf-8") != text:
            write_whole(copy, text, mode=0o600)

    def stack_copy(self, stack: str) -> Path:
        """The copy of the stack file that the engine reads."""
        return copies_folder(self.folder, self.project.name) / f"Pulumi.{stack}.yaml"

    def run(self, operation: Operation, stack: str, options: Sequence[str] = ()) -> EngineRun:
        """Run `pulumi OPERATION` on the stack in the project's folder, with its output on this process's streams.

        On a terminal it has the engine's own display; elsewhere each failure is shown once (bezel.engine.run.texts).

        The lock and the processes that a killed run left are removed first, with a message. The changes that it had
        begun are left to `recover`, which needs the record that a run keeps unless it ends well.

        Raises:
            UserError: That lock cannot be removed, or another run is still under way.
        """
        self._settle(stack, waits=operation != "preview")
        return self.engine(stack).run(operation, options=options)

    def engine(self, stack: str) -> Engine:
        """The engine on a stack that was prepared, with its display in the user's terminal."""
        copy = self.stack_copy(stack).absolute()
        return Engine(
            self.project,
            stack,
            self._full_environment(),
            copy,
            seconds=None,
            record=self._last_run(stack),
            held_descriptors=self.held_descriptors,
            in_terminal=True,
        )

    def recover(self, stack: str, *, adopt: bool = False, always: bool = False) -> Recovered:
        """Repair what a killed run left: its lock, its processes, its changes with an unknown outcome.

        Args:
            stack: The stack's name.
            adopt: Adopt also the resources that the last run could not create because they exist already.
            always: Check the state even if the last run is known to have ended well.

        Raises:
            UserError: The stack cannot be recovered automatically, or its state cannot be read.
        """
        unlocked = self._settle(stack)
        pending = pending_in(self.state, self.project.name, stack)
        last = self._last_run(stack)
        if last.is_running() or (last.ended_well() and not unlocked and not always):
            return Recovered()
        if not last.open_changes(existing=adopt) and not pending:
            last.end_leftovers()
            return Recovered()
        return recover(self.engine(stack), say, adopt=adopt, seconds=QUICK_SECONDS)

    def existing_resources(self, stack: str) -> list[str]:
        """The resources that no run could create because they exist already: their ids, or names if no id is known."""
        project = self.project.cloud_project(stack, self.cloud)
        texts = []
        for change in self._last_run(stack).refused_creates():
            kind = str(change.resource["type"])
            texts.append(f"{derived_id(kind, change.resource.get('inputs', {}), project) or change.name} ({kind})")
        return texts

    def forget_refused(self, stack: str) -> int:
        """Forget the resources that exist already and belong to another owner; return how many."""
        last = self._last_run(stack)
        count = len(last.refused_creates())
        if count:
            last.remember([change for change in last.open_changes() if not change.exists])
        return count

    def _settle(self, stack: str, *, waits: bool = True) -> bool:
        """Remove what a dead engine left; return whether that was a lock. Wait for an engine that is ending."""
        remove_truncated(self.state)
        if waits:
            self._wait_for_others(stack)
        dead = stale_lock_pids(self.state, self.project.name, stack)
        for pid in dead:
            say(f"the last run on {stack} was killed (process {pid}): unlocking the stack")
        if dead:
            self.engine(stack).output_of("cancel", "--yes")
        self._restore(stack)
        return bool(dead)

    def _restore(self, stack: str) -> None:
        """Restore the previous state where a full disk truncated the last, unless a live engine will write it again."""
        state, project = self.state, self.project.name
        if live_lock(state, project, stack) or not restore(state, project, stack):
            return
        since = (
            "the next `up`, `down` or `recover` looks in the cloud for the later changes of the last run"
            if self._last_run(stack).note_set_back()
            else "the last run left no log, so its last changes may be in the cloud and not in the state"
        )
        # To standard error: programs read the outputs on standard output.
        note(f"bezel: the state of {stack} was truncated, e.g. by a full disk; restored the previous one; {since}")

    def _wait_for_others(self, stack: str) -> None:
        announced, end = False, time.monotonic() + ENDING_SECONDS
        while lock := live_lock(self.state, self.project.name, stack):
            if not self._last_run(stack).is_orphan() or time.monotonic() > end:
                consequence = (
                    f"another run is active (pulumi, process {lock.pid}, since {lock.since[:19]}); each of two would "
                    "undo the other's changes."
                )
                repair = f"wait until it has ended, or interrupt it (kill -INT {lock.pid}); then run the command again."
                raise UserError(Problem(f"stack {stack}", None, consequence, repair))
            if not announced:
                say(f"the last run on {stack} lost its command and is ending (process {lock.pid}): waiting for it")
            announced = True
            time.sleep(_LOOK_SECONDS)

    def _last_run(self, stack: str) -> LastRun:
        return LastRun(run_folder(self.folder.absolute(), self.project.name, stack))

    def outputs(self, stack: str) -> dict[str, object]:
        """The stack's outputs, secrets masked.

        Raises:
            UserError: The stack does not exist.
        """
        self._restore(stack)
        outputs = outputs_in(self.state, self.project.name, stack)
        if outputs is None:
            consequence = "it is not on this localcloud, so it has no outputs."
            raise UserError(
                Problem(f"stack {stack}", None, consequence, f"run `make up STACK={shell_word_for_make(stack)}` first.")
            )
        return outputs

    def _full_environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name not in FOREIGN} | self.environment()

    def _quick(self, arguments: Sequence[str], *, cwd: Path) -> str:
        command = [pulumi_cli(), *arguments]
        return command_output(command, folder=cwd, seconds=QUICK_SECONDS, environment=self._full_environment())
