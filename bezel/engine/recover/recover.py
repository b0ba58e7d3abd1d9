"""Recovery of a stack after a killed run: of `bezel recover`, of localcloud's commands, of deploys, of the set-up.

Uses the engine's commands and its providers only, so that it works on any backend and any cloud. Leaves out the lock of
a dead run, which its caller removes or holds.
"""

import json
import tempfile
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel.engine.events.open_changes import OpenChange
from bezel.engine.recover.plan import Recovery, State, ids_by_urn, pending, plan_recovery, undo_replacement
from bezel.engine.run.command import QUICK_SECONDS
from bezel.engine.run.engine import Engine
from bezel.engine.run.record import end_processes
from bezel_base.console import note
from bezel_base.errors import Problem, UserError

SECONDS = 900.0
"""Time limit of the refresh, which waits for the cloud."""

Pulumi = Callable[[Sequence[str]], str]
Say = Callable[[str], None]
Remember = Callable[[Sequence[OpenChange]], None]


@dataclass(frozen=True)
class Recovered:
    """Result of a recovery.

    Attributes:
        adopted: Resources that existed in the cloud and that the recovery added to the state.
        missing: Creates whose resource the cloud does not have (yet).
        checked: Number of all changes.
        cut_off: Whether the engine itself, not a plugin, was ended in the middle of a change.
    """

    adopted: tuple[str, ...] = ()
    missing: tuple[OpenChange, ...] = ()
    checked: int = 0
    cut_off: bool = False


def recover(
    engine: Engine,
    say: Say = note,
    changes: Sequence[OpenChange] = (),
    *,
    mark: str = "",
    adopt: bool = False,
    ignored: Container[str] = (),
    seconds: float = SECONDS,
) -> Recovered:
    """Reconcile what ended runs left open: operations pending in the state, changes that a record or a run names.

    To be called under the stack's lock, or by the run itself. Processes that such a run left are ended first: they live
    on where the guard was killed as well, and may still be creating what is looked for.

    Args:
        engine: The stack's engine; its record, if it has one, is brought up to date.
        say: Gets each line of progress.
        changes: Changes besides those of the state and of the record.
        mark: Marks the processes of the ended runs where there is no record; none with it may be of a living one.
        adopt: Adopt also what the runs of the record could not create because it exists already.
        ignored: Types of resources that need no recovery: the program finds them again.
        seconds: Time limit of the refresh.

    Raises:
        UserError: A resource's id does not follow from its inputs, or the engine failed.
    """
    record, open_changes, refused = engine.record, [*changes], list[OpenChange]()
    if record is not None:
        record.end_leftovers()
        open_changes += record.open_changes(existing=adopt)
        listed = {change.urn for change in open_changes}
        refused = [] if adopt else [change for change in record.refused_creates() if change.urn not in listed]
    elif mark and (count := end_processes(mark)):
        say(f"ended {count} processes of an ended run")

    def remember(still_open: Sequence[OpenChange]) -> None:
        if record is not None:
            record.remember([*still_open, *refused])

    def pulumi(arguments: Sequence[str]) -> str:
        if arguments[0] != "refresh":
            return engine.output_of(*arguments)
        if seconds > QUICK_SECONDS:
            say(f"  reading the open resources from the cloud: at most {seconds / 60:.0f} minutes")
        return engine.output_of(*arguments, seconds=seconds)

    project = engine.project.cloud_project(engine.stack, engine.environment)
    return reconcile(pulumi, project, say, open_changes, remember, ignored)


def reconcile(
    pulumi: Pulumi,
    project: str | None,
    say: Say,
    changes: Sequence[OpenChange] = (),
    remember: Remember = lambda _: None,
    ignored: Container[str] = (),
) -> Recovered:
    """Reconcile every change whose outcome is unknown.

    Args:
        pulumi: Runs a command of the engine on the stack and returns its output.
        project: The Google Cloud project of resources that name none.
        say: Prints a line for the user.
        changes: Changes besides the pending operations of the state.
        remember: Stores the open changes: all of them before the first step, at the end those with a missing resource.
        ignored: Types of resources whose changes are dropped.

    Raises:
        UserError: A resource's id does not follow from its inputs; nothing was done.
    """
    before: State = json.loads(pulumi(["stack", "export"]))
    # The state's entries replace the log's: they have the dependencies.
    changes_by_urn = {change.urn: change for change in [*changes, *pending(before)]}
    if not changes_by_urn:
        return Recovered()
    open_changes = [change for change in changes_by_urn.values() if change.resource["type"] not in ignored]
    plan = plan_recovery(before, open_changes, project)
    blocking = {change.urn for change in pending(before)}
    if unknown := [change for change in plan.unknown if change.urn in blocking]:
        raise UserError(manual_repair(unknown))
    _announce(say, plan, open_changes)
    remember(open_changes)
    if plan.creates or blocking:
        # If this process ends between here and the refresh, any later refresh has the same result.
        _replace(pulumi, plan.state)
    after = _refresh(pulumi, before, plan)
    there, were = ids_by_urn(after), ids_by_urn(before)
    adopted = [urn for urn in plan.creates if urn in there and there[urn] != were.get(urn)]
    settled = {*adopted, *(urn for urn, resource_id in plan.creates.items() if there.get(urn) == resource_id)}
    missing = [change for change in open_changes if change.urn in plan.creates and change.urn not in settled]
    remember([change for change in missing if not change.exists])
    for urn in adopted:
        say(f"  created, now in the state: {there[urn]}")
    for change in missing:
        say(f"  {'does not exist' if change.exists else 'was not created'}: {plan.creates[change.urn]}")
    return Recovered(tuple(adopted), tuple(missing), len(open_changes), bool(blocking))


def _announce(say: Say, plan: Recovery, open_changes: Sequence[OpenChange]) -> None:
    for change in plan.unknown:
        say(f"  unknown whether {change.resource['type']} {change.name} was created: delete it by hand if it exists")
    for resource_id in plan.orphans:
        say(f"  cannot be adopted, as its parent or provider is gone: delete {resource_id} by hand if it exists")
    lost = sum(not change.read for change in open_changes)
    if lost:
        say(f"outcome of {_count(lost, 'change')} of an earlier run unknown: reading the resources from the cloud")
    if len(open_changes) > lost:
        say(f"the state of {_count(len(open_changes) - lost, 'resource')} may differ from the cloud: reading them")


def _refresh(pulumi: Pulumi, before: State, plan: Recovery) -> State:
    """The state after a refresh from the cloud; the planned state where nothing can have been made."""
    if plan.targets:
        targets = [option for urn in dict.fromkeys(plan.targets) for option in ("--target", urn)]
        pulumi(["refresh", "--yes", "--skip-preview", "--non-interactive", *targets])
    if not plan.creates:
        return plan.state
    after: State = json.loads(pulumi(["stack", "export"]))
    corrected = undo_replacement(after, before, plan.creates)
    if corrected:
        _replace(pulumi, corrected)
    return corrected or after


def _replace(pulumi: Pulumi, state: State) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.json"
        file.write_text(json.dumps(state))
        pulumi(["stack", "import", "--file", str(file)])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def manual_repair(unknown: Sequence[OpenChange]) -> Problem:
    """What a person does about resources whose ids do not follow from their inputs."""
    return Problem(
        "resources of a killed run",
        None,
        "their ids do not follow from their settings, so it is unknown whether they exist; the state is unchanged:\n   "
        + "\n   ".join(f"{change.resource['type']} {change.name}" for change in unknown),
        "delete those that exist, then `pulumi refresh --clear-pending-creates` (on localcloud after "
        '`eval "$(.venv/bin/bezel local env)"`). If the id of a type does follow from its settings, add a row to '
        "bezel/engine/state/resource_ids.py.",
    )
