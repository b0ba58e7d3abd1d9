"""Runs of the engine on any backend and cloud: preview, up, refresh, destroy, with policy packs and a time limit.

An environment says which backend and which cloud (PULUMI_BACKEND_URL, GOOGLE_*, ...). The engine's own display goes to
standard error, so that standard output holds the command's result alone, or to a person's terminal. Leaves out the
meaning of the events (bezel.engine.events), the copy of the stack's file that a run gets (`stack`), and the environment
of localcloud (bezel.engine.local).
"""

import contextlib
import shutil
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bezel.engine.events.denied_permissions import account_of, missing_roles
from bezel.engine.events.open_changes import OpenChange, unfinished_changes
from bezel.engine.events.reader import PACK_FAILED, read_events
from bezel.engine.events.values import Change, Events, Violation
from bezel.engine.project.pipeline_file import environment_of
from bezel.engine.project.project import Project
from bezel.engine.run.command import QUICK_SECONDS, CommandError, backend_problem, command_output, pulumi_cli
from bezel.engine.run.output import display_output
from bezel.engine.run.policy_packs import PACK, with_packs
from bezel.engine.run.process import End, Streams, run_to_end
from bezel.engine.run.record import LastRun
from bezel.engine.run.saved_plans import let_computed_values_differ
from bezel.engine.run.texts import plain_errors
from bezel.engine.run.waiting import Waiting, report_waiting
from bezel.engine.state.backend import NotReadableHereError, stored_export
from bezel.engine.state.exported import resources_of
from bezel_base.console import note
from bezel_base.ending_signals import INTERRUPTED
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.run_facts import VARIABLE, Facts, read_facts

Operation = Literal["preview", "up", "refresh", "destroy"]

SECONDS = 6 * 3600.0
"""Time limit of a run, as that of a forge's job; each wait of a stack, for leased machines too, has one of its own."""
PREVIEW_SECONDS = 1800.0
"""Time limit of a preview, which waits for no change in the cloud."""
# Without --plan the engine shows this option only, and takes both, with it.
_EXPERIMENTAL = "PULUMI_EXPERIMENTAL"
_EVENT_LOG = "--event-log="
_LONGEST = 4000


@dataclass(frozen=True)
class EngineRun:
    """Result of a run.

    Attributes:
        end: The engine's exit code, and what requested its end.
        events: What it planned, did and reported.
        packs: Number of policy packs that it ran with.
        text: The engine's last words on standard error: what failed before there was an event.
        unfinished: Changes whose outcome is unknown although the engine lived: a plugin died, or its connection.
        account: E-mail of the account that a failed run had; "" where it is unknown.
        facts: What the program reports to this run beside its log, by kind.
    """

    end: End
    events: Events
    packs: int
    text: str = ""
    unfinished: tuple[OpenChange, ...] = ()
    account: str = ""
    facts: Facts = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the engine ended well."""
        return self.end.code == 0

    @property
    def changes(self) -> tuple[Change, ...]:
        """The planned or completed changes, each resource once."""
        return self.events.changes

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What the policy packs report."""
        return self.events.violations

    @property
    def errors(self) -> list[str]:
        """The messages of the failure, without repetitions, and the role that a denied permission needs."""
        texts = [item.message for item in self.events.diagnostics if item.severity == "error"]
        if self.end.timed_out:
            texts.append("the time limit was reached, so the engine was interrupted")
        if not texts and not self.ok and self.text:
            texts.append(self.text)
        causes = plain_errors(texts)
        return causes + missing_roles(causes, self.account)

    @property
    def packs_unable(self) -> list[str]:
        """Why the packs did not evaluate the stack; empty where they did, or the program failed before they could."""
        if not self.packs:
            return []
        if self.events.packs_failed:
            return [item.message for item in self.events.diagnostics if item.message.startswith(PACK_FAILED)]
        if not self.events.complete and "polic" in self.text.lower():
            return [self.text]  # a pack is missing, did not start, or has an invalid configuration
        refused = any(violation.refuses for violation in self.violations)
        if (self.ok or refused) and len(self.events.analysed) < self.packs:
            return [f"{self.packs} policy packs were given, and {len(self.events.analysed)} evaluated the stack"]
        return []


@dataclass(frozen=True)
class Engine:
    """Pulumi on one stack of a project, in an environment.

    Attributes:
        project: The project.
        stack: The stack's name.
        environment: The engine's complete environment.
        config_file: A copy of the stack's file. The engine writes what names its secrets provider into the file that it
            is given; a checkout whose own file has changed is refused by the next deploy.
        seconds: Time limit of a run; None for none.
        show: Gets each step as a line instead of the engine's own display on standard error.
        cancelled: Ends a run as soon as it is set; an interrupt of a run sets it.
        record: Keeps what a run that does not end well leaves on this machine, until a recovery.
        held_descriptors: Descriptors that stay open as long as a run's engine lives, also if this process is killed
            before its end.
        in_terminal: Whether a person watches: the engine has its own display on standard output, and asks what the
            options do not answer.
    """

    project: Project
    stack: str
    environment: Mapping[str, str]
    config_file: Path
    seconds: float | None = SECONDS
    show: Callable[[str], None] | None = None
    cancelled: threading.Event | None = None
    record: LastRun | None = None
    held_descriptors: tuple[int, ...] = ()
    in_terminal: bool = False

    def run(
        self,
        operation: Operation,
        *,
        packs: Sequence[Path] = (),
        options: Sequence[str] = (),
        plan: Path | None = None,
        save_plan: Path | None = None,
        limits_of: object = None,
        meanwhile: contextlib.AbstractContextManager[None] | None = None,
    ) -> EngineRun:
        """Run `pulumi OPERATION` and return what it planned or did.

        Args:
            operation: `refresh`, `destroy` and `up` change the cloud or the state, `preview` nothing.
            packs: Folders of policy packs; each with the limits in the file beside it that is named after it and the
                environment (bezel.engine.run.policy_packs).
            options: More options; an event log that they name becomes a copy of the run's.
            plan: The plan that an `up` has to keep to.
            save_plan: The file that a preview writes its plan to; its secrets are encrypted as in the state.
            limits_of: The environment whose limits hold; by default that of the stack.
            meanwhile: Entered while the engine runs, and only once it does: it may start threads.

        Raises:
            UserError: There is no Pulumi CLI, `bezel.toml` has problems, or the state is unreadable after an interrupt.
        """
        changes = operation != "preview"
        arguments = [operation, *self._stack_options(), *self.pack_options(packs, limits_of)]
        if not self.in_terminal:
            arguments += ["--non-interactive", "--color", "never", *(["--yes", "--skip-preview"] if changes else [])]
        arguments += [f"--plan={plan}"] if plan else []
        arguments += [f"--save-plan={save_plan}"] if save_plan else []
        arguments += [option for option in options if not option.startswith(_EVENT_LOG)]
        copies = [Path(option.removeprefix(_EVENT_LOG)) for option in options if option.startswith(_EVENT_LOG)]
        # The engine hides the option of its event log unless this is set; it has no other effect.
        variables = {**self.environment, "PULUMI_DEBUG_COMMANDS": "1", "PULUMI_SKIP_UPDATE_CHECK": "1"}
        if plan or save_plan:
            variables[_EXPERIMENTAL] = "1"
        marks = self.record.open(changes=changes) if self.record else {}
        with tempfile.TemporaryDirectory(prefix="bezel-run-") as folder:
            log = self.record.events if self.record and marks and changes else Path(folder) / "events.jsonl"
            facts_file = Path(folder) / "facts.json"
            with self._streams(Path(folder)) as (streams, text):
                end = run_to_end(
                    [pulumi_cli(), *arguments, f"{_EVENT_LOG}{log}"],
                    self.project.folder,
                    variables | marks | {VARIABLE: str(facts_file)},
                    self.held_descriptors,
                    meanwhile=_both(self._reports(log, changes=changes), meanwhile),
                    streams=streams,
                    seconds=self._seconds(changes=changes),
                    cancelled=self.cancelled,
                )
                if end.interrupted and self.cancelled is not None:
                    self.cancelled.set()  # what follows the run is given up as well
                output = text()
            if save_plan and not end.code and save_plan.is_file():
                let_computed_values_differ(save_plan)
            if self.record and marks:
                self.record.end_leftovers()
            for copy in copies:
                if log.exists():
                    shutil.copyfile(log, copy)
            events, facts = read_events(log), read_facts(facts_file)
        if operation == "destroy" and self._is_cut(end):
            output = f"the destroy was interrupted, and {self.stack} still has resources: run it again"
            end = replace(end, code=INTERRUPTED)
        if self.record and marks and changes and not end.code:
            self.record.forget(refused=operation != "refresh")
        unknown = tuple(unfinished_changes(events)) if end.code and changes else ()
        account = account_of(self.environment) if end.code else ""
        return EngineRun(end, events, len(packs), output, unknown, account, facts)

    def output_of(self, *arguments: str, seconds: float = QUICK_SECONDS) -> str:
        """The output of a short command on the stack, or of a refresh.

        It runs beside the copy of the stack's file, into which it may write; a refresh in the project's folder, where
        the plugin of dynamic resources finds the program's virtual environment.

        Raises:
            CommandError: The command failed, or did not end in time.
        """
        if arguments[0] == "refresh":
            command, folder = [pulumi_cli(), *arguments, *self._stack_options()], self.project.folder
        else:
            command, folder = [pulumi_cli(), *arguments, "--stack", self.stack], self.config_file.parent
        return command_output(command, folder=folder, seconds=seconds, environment=self.environment)

    def export(self) -> dict[str, Any] | None:
        """The stack's state: see `exported_state`.

        Raises:
            CommandError: The backend cannot be read.
        """
        return exported_state(self.project, self.stack, self.environment)

    def pack_options(self, packs: Sequence[Path], limits_of: object = None) -> list[str]:
        """The engine's options for policy packs and their configurations; the arguments are those of `run`.

        Raises:
            UserError: `bezel.toml` has problems.
        """
        options = [f"{PACK}={pack.absolute()}" for pack in packs]
        limits = limits_of if limits_of is not None or not options else environment_of(self.project, self.stack)
        return with_packs(options, here=Path.cwd(), environment=limits)

    def _is_cut(self, end: End) -> bool:
        """Whether a destroy left resources although it ended with 0, as the engine does when cancelled amid deletes."""
        return end.code == 0 and (end.interrupted or end.timed_out) and bool(resources_of(self.export()))

    def _stack_options(self) -> list[str]:
        return ["--stack", self.stack, "--config-file", str(self.config_file)]

    def _seconds(self, *, changes: bool) -> float | None:
        return self.seconds if changes or self.seconds is None else min(self.seconds, PREVIEW_SECONDS)

    def _reports(self, log: Path, *, changes: bool) -> contextlib.AbstractContextManager[None] | None:
        """What says what a run waits for; on a terminal the engine's own display does."""
        if self.in_terminal:
            return report_waiting(Waiting(log)) if changes and not sys.stdout.isatty() else None
        return report_waiting(Waiting(log, show=self.show or note, each=self.show is not None and changes))

    @contextlib.contextmanager
    def _streams(self, folder: Path) -> Iterator[tuple[Streams | None, Callable[[], str]]]:
        """The engine's standard output and error, and a function that returns its last words on the latter."""
        if self.in_terminal:
            with display_output() as streams:
                yield streams, str
            return
        with (
            _errors_of(folder, is_shown=self.show is None) as (file, text),
            (folder / "display").open("wb") as display,
        ):
            yield Streams(_standard_error() if self.show is None else display.fileno(), file), text


def exported_state(project: Project, stack: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The state of a stack, which needs no file, its secrets encrypted; None where the backend has no such stack.

    It is what `pulumi stack export` prints. The engine is started only for what it alone reads:
    another backend than a folder or a bucket, a stack without a deployment or in another place, and what is wrong.

    Raises:
        CommandError: The backend cannot be read.
    """
    with contextlib.suppress(NotReadableHereError, UserError, OSError, EOFError, zlib.error, ValueError):
        if stored := stored_export(project.name, stack, environment):
            return stored
    try:
        command = [pulumi_cli(), "stack", "export", "--stack", stack]
        text = command_output(command, folder=project.folder, seconds=QUICK_SECONDS, environment=environment)
    except CommandError as error:
        if f"no stack named '{stack}' found" in str(error):
            return None
        raise CommandError(backend_problem(error, environment)) from None
    try:
        state: dict[str, Any] = read_json(text)
    except ValueError as error:
        raise CommandError(f"the state of {stack} cannot be read: {error}") from None
    return state


def check_packs(packs: Sequence[Path]) -> None:
    """Refuse a policy pack that is not there: the engine's own error names the file only.

    Raises:
        UserError: It holds a problem for each.
    """
    missing = [pack for pack in packs if not (pack / "PulumiPolicy.yaml").is_file()]
    if missing:
        consequence = "there is no policy pack in this folder, so the policies cannot be evaluated."
        repair = "name a folder with a PulumiPolicy.yaml, or restore it."
        raise UserError(*(Problem("--pack", str(pack), consequence, repair) for pack in missing))


@contextlib.contextmanager
def _both(
    first: contextlib.AbstractContextManager[None] | None, second: contextlib.AbstractContextManager[None] | None
) -> Iterator[None]:
    with first or contextlib.nullcontext(), second or contextlib.nullcontext():
        yield


def _standard_error() -> int:
    """The descriptor that shows the engine's progress."""
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):  # captured, or closed
        return 2


@contextlib.contextmanager
def _errors_of(folder: Path, *, is_shown: bool) -> Iterator[tuple[int, Any]]:
    """A descriptor for the engine's errors, and a function that returns their end; shown at the end if asked for."""
    path = folder / "errors"
    with path.open("w+b") as file:

        def text() -> str:
            content = path.read_text(encoding="utf-8", errors="replace").strip()
            return content[-_LONGEST:]

        try:
            yield file.fileno(), text
        finally:
            if is_shown and (shown := text()):
                note(shown)
