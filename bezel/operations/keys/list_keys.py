"""Keys of a stack's door: whose they are, what they may do, whether they are admitted, and their use."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from pydantic import Field

from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.context import Context
from bezel.operations.keys.door_bucket import DoorBucket, UseOfDays, utc_day
from bezel.operations.keys.key_text import is_admitted, limits_text, state_text, team_of
from bezel.operations.keys.use import Use, door_use, use_result
from bezel.operations.results import Result, format_count
from bezel_base.terminal.blocks import Block, Line, Table, mark
from bezel_base.text.shell import shell_word
from bezel_door.key_file import Key
from bezel_door.usage_file import KeyUsage

# A command asks one instance for its latest counts.
_DELAY = "where the door has several instances, some count their last seconds with their next request"


class ListKeysArguments(Arguments):
    """Which stack."""

    stack: Stack


class ListedKey(Result):
    """A key without its text, which the door does not have."""

    id: str
    team: str = Field(description='"(no team)" without one')
    state: str = Field(description="active, active until, expired or revoked, with the time in UTC")
    is_admitted: bool
    created_at: datetime
    expires_at: datetime | None = Field(description="null without an end")
    revoked_at: datetime | None = Field(description="null where it is not revoked")
    requests_per_minute: int | None = Field(description="null without a limit")
    tokens_per_minute: int | None = Field(description="null without a limit")
    tokens_per_day: int | None = Field(description="null without a limit")
    models: tuple[str, ...] = Field(description="models that it may ask for; () for all")
    limits: str = Field(description="the limits in words")
    today: Use = Field(description="its use since midnight, UTC")
    month: Use = Field(description="its use since the first of the month, UTC")


class Keys(Result):
    """Keys of a stack's door."""

    stack: str
    door: str | None = Field(description="address that clients send keys to; null if it is not recorded")
    bucket: str = Field(description="bucket that holds the keys' hashes and their use")
    keys: tuple[ListedKey, ...] = Field(description="those that are admitted first, by team")
    notes: tuple[str, ...] = Field(description="what limits the figures")

    def page(self) -> Iterator[Block]:
        """A table of the keys."""
        yield Line(f"{self.stack}: {format_count(len(self.keys), 'key')}" + (f", {self.door}" if self.door else ""))
        yield from (Line(f"note: {text}") for text in self.notes)
        if not self.keys:
            yield Line(f"`bezel keys create {shell_word(self.stack)} --team TEAM` makes one.")
            return
        heads = ("key", "team", "state", "limits", "today", "this month")
        rows = [
            (each.id, each.team, mark(each.state), each.limits, each.today.short_line(), each.month.short_line())
            for each in self.keys
        ]
        yield Table(heads, rows)


def list_keys(context: Context, arguments: ListKeysArguments) -> Keys:
    """The keys of a stack's door.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: It has no door, or the keys or their use cannot be read.
    """
    now = context.clock.now()
    with DoorBucket.of_stack(context, arguments.stack) as bucket:
        keys, _ = bucket.keys()
        use = bucket.use_of_days(utc_day(now).replace(day=1), utc_day(now))
        return keys_result(arguments.stack, bucket.name, bucket.door_url, keys, use, now)


def keys_result(stack: str, bucket: str, door_url: str, keys: Mapping[str, Key], use: UseOfDays, moment: float) -> Keys:
    """Keys with their use. Pure.

    Args:
        stack: Name of the stack.
        bucket: Bucket of the door.
        door_url: Address of the door, "" if it is not recorded.
        keys: The keys by their ids.
        use: The use of the days of the month.
        moment: The time, unix seconds.
    """
    now, today = datetime.fromtimestamp(moment, UTC), utc_day(moment)
    of_month = door_use(keys, use.by_day, today.replace(day=1), today, use.unread)
    of_today = door_use(keys, use.by_day, today, today)
    month, day = ({each.key: each for each in part.keys} for part in (of_month, of_today))
    listed = sorted(keys.items(), key=lambda item: (not is_admitted(item[1], now), item[1].team, item[1].created))
    none = use_result(KeyUsage())
    return Keys(
        stack=stack,
        door=door_url or None,
        bucket=bucket,
        keys=tuple(
            _listed_key(each, key, now, _plain(day.get(each, none)), _plain(month.get(each, none)))
            for each, key in listed
        ),
        notes=(*of_month.notes, *((_DELAY,) if keys else ())),
    )


def _plain(use: Use) -> Use:
    return Use(**{name: getattr(use, name) for name in Use.model_fields})


def _listed_key(identifier: str, key: Key, now: datetime, today: Use, month: Use) -> ListedKey:
    return ListedKey(
        id=identifier,
        team=team_of(key),
        state=state_text(key, now),
        is_admitted=is_admitted(key, now),
        created_at=key.created,
        expires_at=key.expires,
        revoked_at=key.revoked,
        requests_per_minute=key.requests_per_minute,
        tokens_per_minute=key.tokens_per_minute,
        tokens_per_day=key.tokens_per_day,
        models=key.models,
        limits=limits_text(key),
        today=today,
        month=month,
    )
