"""Bucket of a stack's door: its file of keys, changed only at the generation that was read, and its files of use.

Owns which bucket it is, and why a stack has none. Leaves out what a change does to the keys: it is passed in, and tried
again on the keys of another writer who came first. No text holds a key or a hash.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Self, TypeVar

from bezel.engine.state.bucket import PreconditionError, StateBucket
from bezel.operations.context import Context
from bezel.operations.deployment.deployed_door import door_of
from bezel.operations.keys.latest_use import ask_for_latest_use
from bezel.planner.base.problems import setting
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word
from bezel_door.key_file import KEY_OBJECT, Key, KeyFileError, read_keys, write_keys
from bezel_door.usage_file import USAGE_FOLDER, KeyUsage, UsageFileError, read_usage, sum_usage

MOST_KEYS = 1000
"""Keys of one door: each of its instances reads all of them again every few seconds."""
_TRIES = 20
_READERS = 16
_SETTING = "access.keys"
_Made = TypeVar("_Made")


class NoDoorError(UserError):
    """A stack admits no caller by key."""


@dataclass(frozen=True)
class UseOfDays:
    """Use of keys by day (UTC).

    Attributes:
        by_day: Day -> use by a key's id.
        unread: Files that are none of use, each with what is wrong, and the last seconds of a door that did not answer.
    """

    by_day: Mapping[date, Mapping[str, KeyUsage]]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class DoorBucket(StateBucket):
    """The bucket of a door. A context manager.

    Attributes:
        stack: Name of the stack.
        door_url: Address of the door, "" if it is not recorded.
    """

    stack: str = ""
    door_url: str = ""

    @classmethod
    def of_stack(cls, context: Context, stack: str) -> Self:
        """The bucket of a deployed stack's door.

        Raises:
            NotDeployedError: The backend has no such stack.
            NoDoorError: It has no door.
        """
        door = door_of(context.deployment(stack))
        if door is None:
            raise NoDoorError(_no_door(context, stack))
        return replace(cls.of(f"gs://{door.bucket}", context.environ), stack=stack, door_url=door.url)

    def keys(self) -> tuple[dict[str, Key], int]:
        """The keys by their ids, and the file's generation; none and 0 where no key was ever made.

        Raises:
            UserError: The file cannot be read, or is none of keys.
        """
        stored = self.read(KEY_OBJECT)
        if stored is None:
            return {}, 0
        content, generation = stored
        try:
            return read_keys(content), generation
        except KeyFileError as error:
            address = f"{self.url}/{KEY_OBJECT}"
            consequence = (
                f"expected a file of keys ({error}); the keys of before hold for 5 minutes, then none is admitted."
            )
            command = f"`gcloud storage rm {shell_word(address)}`"
            repair = f"write an earlier one back, or delete it and make the keys anew: {command}."
            raise UserError(Problem(address, None, consequence, repair)) from None

    def change_keys(self, change: Callable[[dict[str, Key]], tuple[dict[str, Key], _Made]]) -> _Made:
        """Change the keys. Where another writer came first, the change is made again from the keys of then.

        Args:
            change: The keys as they are -> the keys as they are to be, and what the change made.

        Raises:
            UserError: The change is refused, or the keys cannot be read or written.
        """
        for attempt in range(_TRIES):
            keys, generation = self.keys()
            changed, made = change(keys)
            if changed == keys:
                return made
            try:
                content = write_keys(changed)
                _ = self.replace(KEY_OBJECT, content, generation) if generation else self.create(KEY_OBJECT, content)
            except PreconditionError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return made
        raise AssertionError("the last attempt returns or raises")

    def use_of_days(self, first: date, last: date) -> UseOfDays:
        """The use of each day (UTC) from the first to the last, by all instances of the door, up to now.

        Raises:
            RestError: The files cannot be listed, or one cannot be read.
        """
        silence = ask_for_latest_use(self.door_url)
        names = [name for month in _months(first, last) for name in self._names_of_month(month)]
        by_day: dict[date, list[Mapping[str, KeyUsage]]] = {}
        unread = [f"the last seconds of the door, which did not answer: {silence}"] if silence else []
        with ThreadPoolExecutor(_READERS) as readers:
            wanted = [(day, name) for day, name in names if first <= day <= last]
            contents = readers.map(lambda each: self.read(each[1]), wanted)
            for (day, name), stored in zip(wanted, contents, strict=True):
                if stored is None:
                    continue  # it was deleted meanwhile
                try:
                    by_day.setdefault(day, []).append(read_usage(stored[0]).keys)
                except UsageFileError as error:
                    unread.append(f"{name}: {error}")
        return UseOfDays({day: sum_usage(by_day[day]) for day in sorted(by_day)}, tuple(unread))

    def _names_of_month(self, month: str) -> Iterator[tuple[date, str]]:
        """Day and name of each file of use of a month such as `2026-11`."""
        for entry in self.list(f"{USAGE_FOLDER}{month}-"):
            day = entry.name.removeprefix(USAGE_FOLDER).partition("/")[0]
            try:
                yield date.fromisoformat(day), entry.name
            except ValueError:
                continue  # no instance of the door wrote it

    def _repair_of_no_bucket(self) -> str:
        return f"deploy the stack again, which makes it: `bezel deploy {shell_word(self.stack)}`."


def utc_day(moment: float) -> date:
    """The day (UTC) of a moment in unix seconds, by which use is counted."""
    return datetime.fromtimestamp(moment, UTC).date()


def _months(first: date, last: date) -> Iterator[str]:
    """Each month from that of the first day to that of the last, as `2026-11`."""
    for number in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        yield f"{number // 12:04}-{number % 12 + 1:02}"


def _no_door(context: Context, stack: str) -> Problem:
    deploy = f"`bezel deploy {shell_word(stack)}`"
    if _declares_keys(context, stack):
        consequence = "its file asks for a door that admits keys, which is not deployed yet."
        return Problem("STACK", stack, consequence, f"deploy it: {deploy}.")
    consequence = "it has no door that admits callers by key."
    return Problem(
        "STACK", stack, consequence, f"set `{setting(_SETTING)}: true` in Pulumi.{stack}.yaml, then {deploy}."
    )


def _declares_keys(context: Context, stack: str) -> bool:
    try:
        access = context.project.configuration(stack).get("access")
    except UserError:
        return False  # the stack of another folder, or a file that the deploy will refuse
    return isinstance(access, Mapping) and access.get("keys") is True
