"""Recovery of a stack after a killed run: `bezel recover`, and a step of `bezel local up`.

Uses the engine's commands and its providers only, so that it works on any backend and any cloud. Leaves out the lock
and the processes of a dead run, known only on the machine that it ran on: see `stale_locks` and `runs`.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel.errors import UserError
from bezel.pulumi_engine.event_log import Change
from bezel.pulumi_engine.project import Project
from bezel.pulumi_engine.pulumi_command import CommandError, printed
from bezel.pulumi_engine.recovery_plan import Recovery, State, held, pending, planned, undo_replacement

# Time limit for one command of the engine; a refresh waits for the cloud.
SECONDS = 900

Pulumi = Callable[[Sequence[str]], str]
Say = Callable[[str], None]
Remember = Callable[[Sequence[Change]], None]


class RecoveryError(UserError):
    """The stack cannot be recovered automatically; the text says what to do by hand."""


@dataclass(frozen=True)
class Recovered:
    """Result of a recovery.

    Attributes:
        adopted: Resources that existed in the cloud and that the recovery added to the state.
        missing: Creates whose resource the cloud does not have (yet).
        looked_at: Number of all changes.
        cut_off: Whether the engine itself, not a plugin, was ended in the middle of a change.
    """

    adopted: tuple[str, ...] = ()
    missing: tuple[Change, ...] = ()
    looked_at: int = 0
    cut_off: bool = False


def _forget(_open: Sequence[Change]) -> None:
    pass


def recover(
    pulumi: Pulumi, project: str | None, say: Say, changes: Sequence[Change] = (), remember: Remember = _forget
) -> Recovered:
    """Reconcile every change whose outcome is unknown.

    Args:
        pulumi: Runs a command of the engine on the stack and returns its output.
        project: The Google Cloud project of resources that name none.
        say: Prints a line for the user.
        changes: Changes besides the pending operations of the state.
        remember: Stores the open changes: all of them before the first step, at the end those with a missing resource.

    Raises:
        RecoveryError: A resource's id does not follow from its inputs; nothing was done.
    """
    before: State = json.loads(pulumi(["stack", "export"]))
    # The state's entries replace the log's: they have the dependencies.
    known = list({change.urn: change for change in [*changes, *pending(before)]}.values())
    if not known:
        return Recovered()
    plan = planned(before, known, project)
    blocking = {change.urn for change in pending(before)}
    if unknown := [change for change in plan.unknown if change.urn in blocking]:
        raise RecoveryError(_by_hand(unknown))
    _announce(say, plan, known)
    remember(known)
    if plan.creates or blocking:
        # If this process ends between here and the refresh, any later refresh has the same result.
        _replace(pulumi, plan.state)
    after = _refreshed(pulumi, before, plan)
    there, were = held(after), held(before)
    adopted = [urn for urn in plan.creates if urn in there and there[urn] != were.get(urn)]
    settled = {*adopted, *(urn for urn, found in plan.creates.items() if there.get(urn) == found)}
    missing = [change for change in known if change.urn in plan.creates and change.urn not in settled]
    remember([change for change in missing if not change.exists])
    for urn in adopted:
        say(f"  made, and taken in: {there[urn]}")
    for change in missing:
        say(f"  {'not there (any more)' if change.exists else 'not made'}: {plan.creates[change.urn]}")
    return Recovered(tuple(adopted), tuple(missing), len(known), bool(blocking))


def _announce(say: Say, plan: Recovery, known: Sequence[Change]) -> None:
    for change in plan.unknown:
        say(f"  cannot tell whether {change.resource['type']} {_name(change)} was made: look, and delete what is there")
    for found in plan.orphans:
        say(f"  cannot be taken in, as what it belonged to is gone: delete {found} by hand if it is there")
    lost = sum(not change.read for change in known)
    if lost:
        say(f"an earlier run never heard how {_count(lost, 'change')} ended: asking the cloud")
    if len(known) > lost:
        say(f"the state may differ from the cloud in {_count(len(known) - lost, 'resource')}: reading what is there")


def _refreshed(pulumi: Pulumi, before: State, plan: Recovery) -> State:
    """The state after a refresh from the cloud; the planned state where nothing can have been made."""
    if plan.targets:
        targets = [option for urn in dict.fromkeys(plan.targets) for option in ("--target", urn)]
        pulumi(["refresh", "--yes", "--skip-preview", "--non-interactive", *targets])
    if not plan.creates:
        return plan.state
    after: State = json.loads(pulumi(["stack", "export"]))
    mended = undo_replacement(after, before, plan.creates)
    if mended:
        _replace(pulumi, mended)
    return mended or after


def recover_stack(project: Project, stack: str) -> int:
    """`bezel recover STACK`: reconcile open changes on the user's own backend and cloud; return the exit code.

    Raises:
        ProjectError: There is no such stack file.
        RecoveryError: The stack cannot be recovered automatically; the text says what to do by hand.
    """
    project.stack_file(stack)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    cli = shutil.which("pulumi", path=path)
    if cli is None:
        raise RecoveryError("there is no `pulumi` on PATH: run `make setup`, or install the Pulumi CLI.")

    def pulumi(arguments: Sequence[str]) -> str:
        if arguments[0] == "refresh":
            _say(f"  reading what was open from the cloud: at most {SECONDS // 60} minutes")
        try:
            return printed([cli, *arguments, "--stack", stack], folder=project.folder, seconds=SECONDS)
        except CommandError as error:
            locked = "currently locked" in str(error)
            repair = f"\nIf that run is dead, `pulumi cancel --stack {stack}` takes its lock away; then recover again."
            raise RecoveryError(f"{error}{repair if locked else ''}") from None

    found = recover(pulumi, project.cloud_project(stack), _say)
    if not found.looked_at:
        _say(f"{stack}: nothing is open")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _replace(pulumi: Pulumi, state: State) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.json"
        file.write_text(json.dumps(state))
        pulumi(["stack", "import", "--file", str(file)])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def _name(change: Change) -> str:
    return change.urn.rpartition("::")[2]


def _by_hand(unknown: Sequence[Change]) -> str:
    return "\n".join(
        [
            "a killed run was making these, and their ids cannot be told from their settings:",
            *(f"  {change.resource['type']} {_name(change)}" for change in unknown),
            "  Consequence: nobody knows whether they exist, so the stack is left as it is.",
            "  Repair: delete those that are there, then `pulumi refresh --clear-pending-creates` (on localcloud after",
            '  `eval "$(.venv/bin/bezel local env)"`). A type whose id does follow from its settings is a row more in',
            "  bezel/pulumi_engine/resource_ids.py.",
        ]
    )
