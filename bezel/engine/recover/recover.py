"""Recovery of a stack after a killed run: the work of `bezel recover`, and a step of `bezel local up` and of deploys.

Uses the engine's commands and its providers only, so that it works on any backend and any cloud. Leaves out the lock
and the processes of a dead run, known only on the machine that it ran on: see `stale_locks` and `runs`.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel.engine.events.open_changes import OpenChange
from bezel.engine.recover.plan import Recovery, State, held, pending, planned, undo_replacement
from bezel_base.errors import Problem, UserError

# Time limit for one command of the engine; a refresh waits for the cloud.
SECONDS = 900

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
    pulumi: Pulumi,
    project: str | None,
    say: Say,
    changes: Sequence[OpenChange] = (),
    remember: Remember = lambda _: None,
) -> Recovered:
    """Reconcile every change whose outcome is unknown.

    Args:
        pulumi: Runs a command of the engine on the stack and returns its output.
        project: The Google Cloud project of resources that name none.
        say: Prints a line for the user.
        changes: Changes besides the pending operations of the state.
        remember: Stores the open changes: all of them before the first step, at the end those with a missing resource.

    Raises:
        UserError: A resource's id does not follow from its inputs; nothing was done.
    """
    before: State = json.loads(pulumi(["stack", "export"]))
    # The state's entries replace the log's: they have the dependencies.
    known = list({change.urn: change for change in [*changes, *pending(before)]}.values())
    if not known:
        return Recovered()
    plan = planned(before, known, project)
    blocking = {change.urn for change in pending(before)}
    if unknown := [change for change in plan.unknown if change.urn in blocking]:
        raise UserError(_manual(unknown))
    _announce(say, plan, known)
    remember(known)
    if plan.creates or blocking:
        # If this process ends between here and the refresh, any later refresh has the same result.
        _replace(pulumi, plan.state)
    after = _refreshed(pulumi, before, plan)
    there, were = held(after), held(before)
    adopted = [urn for urn in plan.creates if urn in there and there[urn] != were.get(urn)]
    settled = {*adopted, *(urn for urn, resource_id in plan.creates.items() if there.get(urn) == resource_id)}
    missing = [change for change in known if change.urn in plan.creates and change.urn not in settled]
    remember([change for change in missing if not change.exists])
    for urn in adopted:
        say(f"  created, now in the state: {there[urn]}")
    for change in missing:
        say(f"  {'does not exist' if change.exists else 'was not created'}: {plan.creates[change.urn]}")
    return Recovered(tuple(adopted), tuple(missing), len(known), bool(blocking))


def _announce(say: Say, plan: Recovery, known: Sequence[OpenChange]) -> None:
    for change in plan.unknown:
        say(f"  unknown whether {change.resource['type']} {change.name} was created: delete it by hand if it exists")
    for resource_id in plan.orphans:
        say(f"  cannot be adopted, as its parent or provider is gone: delete {resource_id} by hand if it exists")
    lost = sum(not change.read for change in known)
    if lost:
        say(f"outcome of {_count(lost, 'change')} of an earlier run unknown: reading the resources from the cloud")
    if len(known) > lost:
        say(f"the state of {_count(len(known) - lost, 'resource')} may differ from the cloud: reading them")


def _refreshed(pulumi: Pulumi, before: State, plan: Recovery) -> State:
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


def _manual(unknown: Sequence[OpenChange]) -> Problem:
    return Problem(
        "resources of a killed run",
        None,
        "their ids do not follow from their settings, so it is unknown whether they exist; the state is unchanged:\n   "
        + "\n   ".join(f"{change.resource['type']} {change.name}" for change in unknown),
        "delete those that exist, then `pulumi refresh --clear-pending-creates` (on localcloud after "
        '`eval "$(.venv/bin/bezel local env)"`). If the id of a type does follow from its settings, add a row to '
        "bezel/engine/state/resource_ids.py.",
    )
