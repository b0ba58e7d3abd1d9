"""End of keys in two steps: which ones, then their end within 10 s at every instance of the door."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach, Word
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange
from bezel.operations.context import Context
from bezel.operations.keys.create import TYPE
from bezel.operations.keys.door_bucket import DoorBucket
from bezel.operations.keys.fields import KeyId, Team
from bezel.operations.keys.key_text import is_admitted, team_of
from bezel.operations.keys.known_keys import no_key, no_team
from bezel.operations.keys.new_key import time_of
from bezel.operations.results import format_count
from bezel_base.errors import NOT_SET, Problem, WrongValueError
from bezel_door.key_file import Key

NAME = "keys_revoke"
_WARNING = "callers with it are refused within 10 s, for good; answers under way end as usual"


class RevokeArguments(Arguments):
    """Which keys."""

    stack: Stack
    id: Annotated[KeyId | None, Reach.INSIDE, Word("ID")] = Field(
        None, description="the 8 characters behind bezel- in the key (or --team)"
    )
    team: Annotated[Team, Option("TEAM")] = Field(None, description="all keys of this team")


def plan_revoke(context: Context, arguments: RevokeArguments) -> Plan:
    """Plan the end of a key, or of all keys of a team.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: It has no door, or the door has no such key.
    """
    _check_arguments(arguments)
    with DoorBucket.of_stack(context, arguments.stack) as bucket:
        keys, _ = bucket.keys()
        named = _named_keys(keys, arguments, time_of(context.clock.now()))
        basis = _basis(context, bucket, named)
    which = f"all keys of the team {arguments.team}" if arguments.id is None else f"the key {arguments.id}"
    summary = f"revoke {which}: {format_count(len(named), 'key')}" if named else f"{which} ended before"
    return Plan(
        operation=NAME,
        target=arguments.stack,
        summary=summary,
        arguments=arguments.model_dump(mode="json"),
        changes=tuple(
            PlannedChange(op="delete", name=f"key {identifier} of {team_of(key)}", type=TYPE)
            for identifier, key in sorted(named.items())
        ),
        warnings=(_WARNING,) if named else (),
        basis=basis,
        is_empty=not named,
    )


def apply_revoke(context: Context, plan: Plan) -> Outcome:
    """Revoke the keys that were planned.

    Raises:
        ChangedError: The team has other keys since, or the door is another one; nothing was done.
        UserError: The keys cannot be read or written.
    """
    arguments = RevokeArguments.model_validate(plan.arguments)
    check_place(context, plan)

    is_written = False

    def revoke(keys: dict[str, Key]) -> tuple[dict[str, Key], tuple[str, ...]]:
        nonlocal is_written
        now = time_of(context.clock.now())
        named = _named_keys(keys, arguments, now)
        if is_written and not named:
            return keys, tuple(change.name for change in plan.changes)  # it was written, and the answer was lost
        check(plan, _basis(context, bucket, named))
        is_written = True
        return {**keys, **{each: replace(key, revoked=now) for each, key in named.items()}}, tuple(named)

    with DoorBucket.of_stack(context, arguments.stack) as bucket:
        revoked = bucket.change_keys(revoke)
    return Outcome(
        operation=NAME,
        target=plan.target,
        verdict="done" if revoked else "unchanged",
        changes=plan.changes,
        details=("refused by every instance of the door within 10 s",) if revoked else (),
    )


def _check_arguments(arguments: RevokeArguments) -> None:
    if (arguments.id is None) == (arguments.team is None):
        consequence = "either a key or a team is revoked."
        value = NOT_SET if arguments.id is None else arguments.id
        raise WrongValueError(Problem("ID", value, consequence, "name the ID of one key, or add --team TEAM."))


def _named_keys(keys: Mapping[str, Key], arguments: RevokeArguments, now: datetime) -> dict[str, Key]:
    """Those of the named keys that are still admitted."""
    if arguments.id is not None:
        if arguments.id not in keys:
            no_key(keys, arguments.id, "--team TEAM")
        named = {arguments.id: keys[arguments.id]}
    else:
        named = {each: key for each, key in keys.items() if key.team == arguments.team}
        if not named:
            no_team(keys, str(arguments.team))
    return {identifier: key for identifier, key in named.items() if is_admitted(key, now)}


def _basis(context: Context, bucket: DoorBucket, named: Mapping[str, Key]) -> dict[str, str]:
    return {**place_of(context), "door": bucket.url, "keys": ", ".join(sorted(named))}
