"""Use of a stack's door: requests, tokens and failures by key, team and day (UTC), from what the door wrote.

Owns the sums and whose they are. Leaves the files to `door_bucket`, and what the use costs to `team_cost`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployed_door import door_of
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.keys.door_bucket import DoorBucket, utc_day
from bezel.operations.keys.key_text import NO_TEAM, team_of
from bezel.operations.results import Result, format_count
from bezel_base.errors import UserError, one_line
from bezel_base.terminal.blocks import Block, Line, Table
from bezel_door.key_file import Key
from bezel_door.usage_file import KeyUsage, sum_usage


class Use(Result):
    """Requests by key, their tokens and their failures."""

    requests: int = Field(description="requests that went on to the server")
    failures: int = Field(description="those of them that failed: a status of 400 or more, or a broken answer")
    refused: int = Field(description="requests that a limit of the key refused; they reached no server")
    prompt_tokens: int = Field(description="tokens in")
    completion_tokens: int = Field(description="tokens out")
    estimated_requests: int = Field(description="requests whose tokens are an estimate, as the server reported none")

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.prompt_tokens + self.completion_tokens

    def short_line(self) -> str:
        """Requests and tokens in words."""
        if not self.requests and not self.refused:
            return "none"
        return f"{self.requests:,} request{'' if self.requests == 1 else 's'}, {self.tokens:,} tokens"

    def line(self) -> str:
        """The use in words."""
        if not self.requests and not self.refused:
            return "none"
        parts = [f"{self.short_line()} ({self.prompt_tokens:,} in, {self.completion_tokens:,} out)"]
        others = ((self.failures, "failed"), (self.refused, "refused"), (self.estimated_requests, "estimated"))
        return ", ".join([*parts, *(f"{number:,} {word}" for number, word in others if number)])


class KeyUse(Use):
    """Use of one key."""

    key: str = Field(description="id of the key")
    team: str = Field(description='team of the key, "(no team)" without one')


class TeamUse(Use):
    """Use of all keys of a team."""

    team: str = Field(description='the team, "(no team)" for keys without one')


class DayUse(Use):
    """Use of a day (UTC) by a team."""

    day: date
    team: str


@dataclass(frozen=True)
class DoorUse:
    """Use of a door from one day to another, both whole and in UTC.

    Attributes:
        first: The first day.
        last: The last day.
        keys: Use by key: that of the most tokens first.
        teams: Use by team, likewise.
        days: Use by day and team.
        total: All of it.
        notes: What limits it.
    """

    first: date
    last: date
    keys: tuple[KeyUse, ...]
    teams: tuple[TeamUse, ...]
    days: tuple[DayUse, ...]
    total: Use
    notes: tuple[str, ...]


def use_of(context: Context, stack: str, since: float, until: float | None = None) -> DoorUse:
    """The use of a stack's door.

    Args:
        context: The context.
        stack: Name of the stack.
        since: A moment of the first day, unix seconds.
        until: A moment of the last day; now by default.

    Raises:
        NotDeployedError: The backend has no such stack.
        NoDoorError: It has no door.
        UserError: The keys or their use cannot be read.
    """
    last = utc_day(context.clock.now() if until is None else until)
    with DoorBucket.of_stack(context, stack) as bucket:
        keys, _ = bucket.keys()
        of_days = bucket.use_of_days(utc_day(since), last)
    return door_use(keys, of_days.by_day, utc_day(since), last, of_days.unread)


def use_of_today(context: Context, deployment: Deployment) -> tuple[tuple[KeyUse, ...], tuple[str, ...]]:
    """Use of each key since midnight (UTC), and what limits it; of a stack without a door none, without a request."""
    if door_of(deployment) is None:
        return (), ()
    try:
        use = use_of(context, deployment.stack, context.clock.now())
    except UserError as error:
        return (), (f"the use of keys is not known: {one_line(error)}",)
    return use.keys, use.notes


def use_table(keys: Sequence[KeyUse]) -> Iterator[Block]:
    """A table of the use of keys; nothing without any."""
    if keys:
        heads = ("key", "team", "requests today", "failed", "refused", "tokens in", "out")
        counts = ("requests", "failures", "refused", "prompt_tokens", "completion_tokens")
        rows = [(each.key, each.team, *(f"{getattr(each, name):,}" for name in counts)) for each in keys]
        yield from (Line(), Table(heads, rows))


def door_use(
    keys: Mapping[str, Key],
    by_day: Mapping[date, Mapping[str, KeyUsage]],
    first: date,
    last: date,
    unread: Iterable[str] = (),
) -> DoorUse:
    """Sums of use by key, team and day. Pure.

    Args:
        keys: The door's keys, for their teams.
        by_day: Day -> use by a key's id.
        first: The first day that counts.
        last: The last day that counts.
        unread: Files of use that could not be read, each with the reason.
    """
    counted = {day: usage for day, usage in by_day.items() if first <= day <= last}
    by_key = sum_usage(counted.values())
    by_team = _of_teams(keys, by_key)
    of_keys = [KeyUse(key=each, team=team_of(keys.get(each)), **_counts(usage)) for each, usage in by_key.items()]
    days = [
        DayUse(day=day, team=team, **_counts(usage))
        for day in sorted(counted)
        for team, usage in sorted(_of_teams(keys, counted[day]).items())
    ]
    return DoorUse(
        first=first,
        last=last,
        keys=tuple(sorted(of_keys, key=lambda each: (-each.tokens, -each.requests, each.key))),
        teams=tuple(
            sorted(
                (TeamUse(team=team, **_counts(usage)) for team, usage in by_team.items()),
                key=lambda each: (-each.tokens, -each.requests, each.team),
            )
        ),
        days=tuple(days),
        total=use_result(sum(by_key.values(), KeyUsage())),
        notes=tuple(_notes(keys, by_key, unread)),
    )


def use_result(usage: KeyUsage) -> Use:
    """What was counted, as a result shows it."""
    return Use(**_counts(usage))


def _of_teams(keys: Mapping[str, Key], by_key: Mapping[str, KeyUsage]) -> dict[str, KeyUsage]:
    return sum_usage({team_of(keys.get(each)): usage} for each, usage in by_key.items())


def _counts(usage: KeyUsage) -> dict[str, int]:
    return {name: getattr(usage, name) for name in Use.model_fields}


def _notes(keys: Mapping[str, Key], by_key: Mapping[str, KeyUsage], unread: Iterable[str]) -> list[str]:
    notes = [f"not counted: {each}" for each in unread]
    if estimated := sum(usage.estimated_requests for usage in by_key.values()):
        notes.append(f"the tokens of {format_count(estimated, 'request')} are an estimate: the server reported none")
    if gone := sorted(set(by_key) - set(keys)):
        notes.append(f"{NO_TEAM} holds {', '.join(gone)}, which are not listed any more")
    return notes
