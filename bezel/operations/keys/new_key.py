"""A new key: its text, which is shown once or put into a file of the user's own, and the record that the door gets.

No plan, log or answer to an agent holds the text: where the face is no person's terminal, the file has it
(`Context.shows_secrets`). Leaves the keys' file to `door_bucket`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import Field

from bezel.operations.changes.plan import Outcome
from bezel.operations.context import Context
from bezel.operations.keys.door_bucket import MOST_KEYS
from bezel_base.errors import Problem, UserError
from bezel_base.state_folder import state_folder
from bezel_base.terminal.blocks import Block, Line
from bezel_base.text.shell import shell_word
from bezel_door.key_file import Key, create_key_text, hash_key, key_id

KEPT_DAYS = 90
"""Days after its end in which a key is still listed."""


class KeyOutcome(Outcome):
    """What became of a plan that makes a key."""

    key_id: str | None = Field(None, description="id of the new key, by which it is listed and revoked")
    key: str | None = Field(None, repr=False, description="the new key, this once; null where a file has it")
    key_file: str | None = Field(None, description="file that has the new key; null where it is shown")

    def page(self) -> Iterator[Block]:
        """The outcome, and the key on a line of its own, so that it can be copied."""
        yield from super().page()
        if self.key is not None:
            yield Line(self.key, is_verbatim=True)


class KeyText:
    """The text of a new key until it has reached its reader. A context manager: after a failure no file is left.

    Attributes:
        text: The text.
        id: Its id.
        file: The file that has it; None where it is shown.
    """

    def __init__(self, context: Context, stack: str) -> None:
        self.text = create_key_text()
        self.id = key_id(self.text) or ""
        self.file = None if context.shows_secrets else file_of(context, stack, self.id)

    def __enter__(self) -> Self:
        if self.file is not None:
            _write(self.file, self.text)
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is not None and self.file is not None:
            self.file.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(f"{text}\n", encoding="ascii")
    except OSError as error:
        consequence = f"the key's file cannot be written ({error.strerror}), so no key was made."
        repair = "make the folder writable, or set XDG_STATE_HOME."
        raise UserError(Problem(str(file.parent), None, consequence, repair)) from None


def file_of(context: Context, stack: str, identifier: str) -> Path:
    """The file that gets a key which is not shown."""
    return state_folder("keys", context.environ) / f"{stack}-{identifier}"


def how_it_is_given(context: Context, stack: str) -> str:
    """How the user gets the key, as a note of a plan."""
    if context.shows_secrets:
        return "the key is shown once; the door keeps its hash alone"
    file = file_of(context, stack, "ID")
    return f"the key is in no answer: the user finds it in {file}, and the door keeps its hash alone"


def outcome_of(operation: str, stack: str, made: KeyText, *details: str) -> KeyOutcome:
    """The outcome of a plan that made a key."""
    shown = () if made.file is None else (f"the new key is in {made.file}, which this user alone can read",)
    return KeyOutcome(
        operation=operation,
        target=stack,
        verdict="done",
        details=(
            *details,
            *shown,
            f"clients send it as their API key to the door: `bezel endpoint {shell_word(stack)}` shows its address",
        ),
        key_id=made.id,
        key=made.text if made.file is None else None,
        key_file=None if made.file is None else str(made.file),
    )


def with_new_key(
    keys: Mapping[str, Key], made: KeyText, template: Key, now: datetime, expires: datetime | None
) -> dict[str, Key]:
    """The keys with a new one, without those that ended long ago.

    Args:
        keys: The keys.
        made: Its text.
        template: Team, limits and models that it gets.
        now: The time.
        expires: Its end; None for never.

    Raises:
        UserError: There are too many.
    """
    if made.id in keys:
        if keys[made.id].hash == hash_key(made.text):
            return dict(keys)  # it was written, and the answer was lost
        consequence = "another key has this id already; no key was made."
        raise UserError(
            Problem("id", made.id, consequence, "run the same command again: each key gets an id of its own.")
        )
    kept = keys_with_room(keys, now)
    new = replace(template, hash=hash_key(made.text), created=now, expires=expires, revoked=None)
    return {**kept, made.id: new}


def keys_with_room(keys: Mapping[str, Key], now: datetime) -> dict[str, Key]:
    """The keys without those that ended long ago.

    Raises:
        UserError: There is no room for a further one.
    """
    kept = {identifier: key for identifier, key in keys.items() if not _ended_long_ago(key, now)}
    if len(kept) >= MOST_KEYS:
        consequence = f"a door has {MOST_KEYS} keys at most, those that ended in the last {KEPT_DAYS} days included."
        raise UserError(Problem("keys", len(kept), consequence, "let callers of one team share a key."))
    return kept


def end_of(key: Key) -> datetime | None:
    """The moment from which a key is not admitted; None for never."""
    return min((end for end in (key.expires, key.revoked) if end is not None), default=None)


def time_of(moment: float) -> datetime:
    """A moment in unix seconds as the keys' file has times: in UTC, whole seconds."""
    return datetime.fromtimestamp(int(moment), UTC)


def _ended_long_ago(key: Key, now: datetime) -> bool:
    end = end_of(key)
    return end is not None and (now - end).days >= KEPT_DAYS
