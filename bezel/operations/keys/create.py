"""A new key of a stack's door in two steps: what it may do, then the key, which is shown once."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Plan, PlannedChange
from bezel.operations.context import Context
from bezel.operations.keys.door_bucket import DoorBucket
from bezel.operations.keys.fields import Limit, Model, Team, seconds_of
from bezel.operations.keys.key_text import limits_text
from bezel.operations.keys.new_key import (
    KeyOutcome,
    KeyText,
    how_it_is_given,
    keys_with_room,
    outcome_of,
    time_of,
    with_new_key,
)
from bezel.operations.keys.served_names import check_models
from bezel_door.key_file import MOST_MODELS, Key

NAME = "keys_create"
TYPE = "bezel:door:Key"
_SHORTEST_LIFE = 60


class CreateKeyArguments(Arguments):
    """Whose key it is, and what it may do."""

    stack: Stack
    team: Annotated[Team, Option("TEAM")] = Field(None, description="whose key it is, for use and cost")
    expires: Annotated[str | None, Reach.INSIDE, Option("TIME")] = Field(
        None, max_length=40, description="time until it ends, e.g. 30d (default: never)"
    )
    requests_per_minute: Limit = Field(None, description="limit (default: none)")
    tokens_per_minute: Limit = Field(None, description="limit, in and out (default: none)")
    tokens_per_day: Limit = Field(None, description="limit, in and out, of a day in UTC (default: none)")
    models: Annotated[tuple[Model, ...], Reach.INSIDE, Option("NAME")] = Field(
        (), max_length=MOST_MODELS, description="only these models (default: all)"
    )


def plan_create(context: Context, arguments: CreateKeyArguments) -> Plan:
    """Plan a new key.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: It has no door, the door has too many keys, or an argument is of no use.
    """
    expires = _life(arguments)
    with DoorBucket.of_stack(context, arguments.stack) as bucket:
        keys, _ = bucket.keys()
        keys_with_room(keys, time_of(context.clock.now()))
        unknown = check_models(context, arguments.stack, arguments.models)
        basis = {**place_of(context), "door": bucket.url}
    whose = f"of the team {arguments.team}" if arguments.team else "of no team"
    end = "without an end" if expires is None else f"until {_end(context, expires):%Y-%m-%d %H:%M} UTC"
    return Plan(
        operation=NAME,
        target=arguments.stack,
        summary=f"a key {whose}, {end}, {limits_text(_template(arguments))}",
        arguments=arguments.model_dump(mode="json"),
        changes=(PlannedChange(op="create", name=f"key {whose}", type=TYPE),),
        notes=(how_it_is_given(context, arguments.stack),),
        warnings=(*unknown, *_warnings(arguments)),
        basis=basis,
    )


def apply_create(context: Context, plan: Plan) -> KeyOutcome:
    """Make the key that was planned.

    Raises:
        ChangedError: The stack's door is another one since; nothing was done.
        UserError: The keys cannot be read or written; no key was made.
    """
    arguments = CreateKeyArguments.model_validate(plan.arguments)
    check_place(context, plan)
    life = _life(arguments)
    with DoorBucket.of_stack(context, arguments.stack) as bucket, KeyText(context, arguments.stack) as made:
        check(plan, {**place_of(context), "door": bucket.url})
        now, expires = time_of(context.clock.now()), None if life is None else _end(context, life)
        template = _template(arguments)
        bucket.change_keys(lambda keys: (with_new_key(keys, made, template, now, expires), None))
        return outcome_of(NAME, arguments.stack, made, f"key {made.id} is admitted within 10 s")


def _life(arguments: CreateKeyArguments) -> int | None:
    return None if arguments.expires is None else seconds_of("--expires", arguments.expires, least=_SHORTEST_LIFE)


def _end(context: Context, life: int) -> datetime:
    return time_of(context.clock.now()) + timedelta(seconds=life)


def _template(arguments: CreateKeyArguments) -> Key:
    return Key(
        hash="",
        team=arguments.team or "",
        created=time_of(0),
        requests_per_minute=arguments.requests_per_minute,
        tokens_per_minute=arguments.tokens_per_minute,
        tokens_per_day=arguments.tokens_per_day,
        models=tuple(dict.fromkeys(arguments.models)),
    )


def _warnings(arguments: CreateKeyArguments) -> Iterator[str]:
    minute, day = arguments.tokens_per_minute, arguments.tokens_per_day
    if minute is not None and day is not None and minute > day:
        yield f"{minute} tokens a minute are never reached: the day has {day}"
    if arguments.team is None:
        yield "no team is named: use and cost are shown by the key's id alone"
