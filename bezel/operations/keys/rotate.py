"""Another key in place of one, in two steps: the new one has its team, limits and models, the old one ends later."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Plan, PlannedChange
from bezel.operations.context import Context
from bezel.operations.keys.create import TYPE
from bezel.operations.keys.door_bucket import DoorBucket
from bezel.operations.keys.fields import KeyId, seconds_of
from bezel.operations.keys.key_text import is_admitted, limits_text, state_text, team_of
from bezel.operations.keys.known_keys import no_key
from bezel.operations.keys.new_key import (
    KeyOutcome,
    KeyText,
    end_of,
    how_it_is_given,
    keys_with_room,
    outcome_of,
    time_of,
    with_new_key,
)
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word
from bezel_catalog.quantities import duration_text
from bezel_door.key_file import Key, hash_key

NAME = "keys_rotate"


class RotateArguments(Arguments):
    """Which key, and how long both are admitted."""

    stack: Stack
    id: Annotated[KeyId, Reach.INSIDE] = Field(description="the 8 characters behind bezel- in the key")
    # Long enough to give each caller the new key on a working day.
    overlap: Annotated[str, Reach.INSIDE, Option("TIME")] = Field(
        "24h", max_length=40, description="how long the old key stays, 0s: not at all"
    )


def plan_rotate(context: Context, arguments: RotateArguments) -> Plan:
    """Plan another key in place of one.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: It has no door, or the door admits no such key.
    """
    overlap = seconds_of("--overlap", arguments.overlap)
    with DoorBucket.of_stack(context, arguments.stack) as bucket:
        keys, _ = bucket.keys()
        now = time_of(context.clock.now())
        keys_with_room(keys, now)
        old = _old_key(keys, arguments, now)
        basis = _basis(context, bucket, arguments.id, old)
    expires, end = _end_of_new(old, now), _end_of_old(old, now, overlap)
    until = "without an end" if expires is None else f"until {expires:%Y-%m-%d %H:%M} UTC"
    return Plan(
        operation=NAME,
        target=arguments.stack,
        summary=f"a key in place of {arguments.id} of {team_of(old)}, {until}, {limits_text(old)}",
        arguments=arguments.model_dump(mode="json"),
        changes=(
            PlannedChange(op="create", name=f"key of {team_of(old)}", type=TYPE),
            PlannedChange(op="update", name=f"key {arguments.id}", type=TYPE, properties=("expires",)),
        ),
        notes=(how_it_is_given(context, arguments.stack),),
        warnings=(_end_text(arguments.id, overlap, end),),
        basis=basis,
    )


def apply_rotate(context: Context, plan: Plan) -> KeyOutcome:
    """Make the key that was planned, and set the end of the old one.

    Raises:
        ChangedError: The old key has changed since, or the door is another one; nothing was done.
        UserError: The keys cannot be read or written; nothing was done.
    """
    arguments = RotateArguments.model_validate(plan.arguments)
    check_place(context, plan)
    overlap = seconds_of("--overlap", arguments.overlap)

    def rotate(keys: dict[str, Key]) -> tuple[dict[str, Key], datetime]:
        now = time_of(context.clock.now())
        if made.id in keys and keys[made.id].hash == hash_key(made.text):
            return keys, _end_of_old(keys[arguments.id], now, overlap)  # it was written, and the answer was lost
        old = _old_key(keys, arguments, now)
        check(plan, _basis(context, bucket, arguments.id, old))
        end = _end_of_old(old, now, overlap)
        ending = replace(old, expires=end) if overlap else replace(old, revoked=now)
        return with_new_key({**keys, arguments.id: ending}, made, old, now, _end_of_new(old, now)), end

    with DoorBucket.of_stack(context, arguments.stack) as bucket, KeyText(context, arguments.stack) as made:
        end = bucket.change_keys(rotate)
        ending = _end_text(arguments.id, overlap, end)
        return outcome_of(NAME, arguments.stack, made, f"key {made.id} is admitted within 10 s; {ending}")


def _old_key(keys: Mapping[str, Key], arguments: RotateArguments, now: datetime) -> Key:
    old = keys[arguments.id] if arguments.id in keys else no_key(keys, arguments.id)
    if not is_admitted(old, now):
        team = f" --team {shell_word(old.team)}" if old.team else ""
        consequence = f"this key is no more admitted ({state_text(old, now)}), so there is nothing to replace."
        repair = f"make a new one: `bezel keys create {shell_word(arguments.stack)}{team}`."
        raise UserError(Problem("ID", arguments.id, consequence, repair))
    return old


def _end_of_old(old: Key, now: datetime, overlap: int) -> datetime:
    """The end of the old key: after the overlap, or its own where that is earlier."""
    end = now + timedelta(seconds=overlap)
    own_end = end_of(old)
    return end if own_end is None else min(end, own_end)


def _end_of_new(old: Key, now: datetime) -> datetime | None:
    """The end of the new key: it lives as long as the old one was to."""
    return None if old.expires is None else now + (old.expires - old.created)


def _end_text(identifier: str, overlap: int, end: datetime) -> str:
    if not overlap:
        return f"{identifier} is refused within 10 s"
    return f"{identifier} ends {end:%Y-%m-%d %H:%M} UTC, {duration_text(overlap)} after the change at the latest"


def _basis(context: Context, bucket: DoorBucket, identifier: str, old: Key) -> dict[str, str]:
    return {**place_of(context), "door": bucket.url, "keys": f"{identifier} {old.expires} {limits_text(old)}"}
