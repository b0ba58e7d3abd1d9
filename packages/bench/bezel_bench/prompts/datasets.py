"""Prompts from a file: plain texts, JSON lines, lists of messages, conversations as ShareGPT has them, and tables.

Owns what each form means. Of a recorded conversation the first question is sent, as `vllm bench serve` does; of
messages everything up to the last one of the user. Leaves out how they are sent (`bezel_bench.prompts.prompts`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.prompts.tables import is_binary, is_table, parquet_rows, text_rows

_SPEAKERS: Mapping[str, str] = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
    "bing": "assistant", "bard": "assistant", "system": "system",
}  # fmt: skip
_KEYS = ("prompt", "messages", "conversations")
_FORMS = "`prompt`, `messages` or `conversations`"
_SHOWN_PROBLEMS = 5


@dataclass(frozen=True)
class Entry:
    """What one request asks.

    Attributes:
        messages: Messages in OpenAI's form: role and content; the content may have parts, such as images.
        conversation: All messages up to the last one of the user, where `messages` has fewer.
        output_tokens: Length of the response; None for that of the load.
    """

    messages: tuple[Mapping[str, Any], ...]
    conversation: tuple[Mapping[str, Any], ...] = ()
    output_tokens: int | None = None

    @property
    def questions(self) -> int:
        """The messages of the user in the whole conversation."""
        return sum(message["role"] == "user" for message in self.conversation or self.messages)

    def turn(self, number: int) -> tuple[Mapping[str, Any], ...]:
        """The messages up to the user's message of that number, from 0."""
        whole = self.conversation or self.messages
        places = [place for place, message in enumerate(whole) if message["role"] == "user"]
        return whole[: places[number] + 1]

    def characters(self, turn: int | None = None) -> int:
        """The characters of the texts up to a turn; by default of what is sent as one request."""
        contents = [message["content"] for message in (self.messages if turn is None else self.turn(turn))]
        parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
        return sum(len(part if isinstance(part, str) else str(part.get("text", ""))) for part in parts)

    @property
    def text(self) -> str | None:
        """The only message's text; None for several messages, or for one of several parts."""
        (first, *others) = self.messages
        return first["content"] if not others and isinstance(first["content"], str) else None


def read_entries(file: Path, column: str = "", length_column: str = "") -> list[Entry]:
    """The entries of a file, in their order; what is empty is left out.

    Args:
        file: The file.
        column: The column of a table, or the key of JSON, with the prompts; "" is that of the form.
        length_column: The one with the length of each response; "" for none.

    Raises:
        UserError: It cannot be read, holds none, or an entry is of no known form; the error has the first problems.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    repair = "name another, or correct the entry." if column or length_column else f"write {_FORMS}, or plain text."
    for place, item in _rows(file, column, length_column):
        try:
            entry = _entry(_field(item, column) if column else item)
            if entry is not None and length_column:
                entry = replace(entry, output_tokens=_length(_field(item, length_column), length_column))
        except ValueError as error:
            problems.append(Problem(f"{file}, {place}", None, f"{error}.", repair))
            continue
        if entry is not None:
            entries.append(entry)
    if problems:
        raise UserError(
            *problems[:_SHOWN_PROBLEMS], title=f"{format_count(len(problems), 'entries')} of {file.name} cannot be sent"
        )
    if not entries:
        raise UserError(Problem(str(file), None, "the file holds no text to send.", "write one text per line."))
    return entries


def _rows(file: Path, column: str, length_column: str) -> Iterator[tuple[str, Any]]:
    """Items with their places; a table's row without a named column is the value of its only one."""
    if not is_table(file):
        yield from _items(file, read_text(file, str(file)))
        return
    if is_binary(file):
        rows = parquet_rows(file, [name for name in (column, length_column) if name] if column else None)
    else:
        rows = text_rows(file, read_text(file, str(file)))
    for place, row in rows:
        names = [name for name in row if name != length_column]
        if column or any(name in row for name in _KEYS):
            yield place, row
        elif len(names) == 1:
            yield place, {"prompt": row[names[0]], **row}
        else:
            consequence = f"it has the columns {', '.join(row)}, and none is `prompt`, `messages` or `conversations`."
            raise UserError(Problem(str(file), None, consequence, "name one by --column."))


def _field(item: Any, name: str) -> Any:
    if not isinstance(item, dict) or name not in item:
        there = f"it has {', '.join(item)}" if isinstance(item, dict) and item else "expected an object with it"
        raise ValueError(f"there is no `{name}`: {there}")
    return item[name]


def _length(value: Any, name: str) -> int:
    try:
        length = int(value)
    except (TypeError, ValueError):
        length = 0
    if length < 1:
        raise ValueError(f"expected a number of tokens above 0 in `{name}`, got {value!r:.40}")
    return length


def read_text(file: Path, key: str) -> str:
    """The text of a file.

    Raises:
        UserError: It cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        value = None if key == str(file) else str(file)
        consequence = f"the texts of the prompts cannot be read ({error})."
        raise UserError(Problem(key, value, consequence, "name a file of UTF-8 text.")) from None


def _items(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Items with their places: of a JSON array, else one a line."""
    if text.lstrip()[:1] == "[":
        try:
            listed = json.loads(text)
        except ValueError as error:
            if _is_lines_of_json(text):
                listed = None
            else:
                consequence = f"it begins as a JSON array and is none: {error}."
                raise UserError(
                    Problem(str(file), None, consequence, "repair it, or write one entry a line.")
                ) from None
        if listed is not None:
            yield from ((f"entry {number}", item) for number, item in enumerate(listed, 1))
            return
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped[:1] in {'"', "{", "["}:
            try:
                yield f"line {number}", json.loads(stripped)
                continue
            except ValueError:
                pass  # a plain text that begins with such a sign
        yield f"line {number}", stripped


def _is_lines_of_json(text: str) -> bool:
    """Whether each line is an entry of its own, as a list of messages a line."""
    first = text.strip().splitlines()[0]
    try:
        json.loads(first)
    except ValueError:
        return False
    return True


def _entry(item: Any) -> Entry | None:
    """An entry; None for an empty text.

    Raises:
        ValueError: It is of no known form.
    """
    if isinstance(item, list):
        return _of_list(item)
    if isinstance(item, dict):
        for name in ("messages", "conversations"):
            if isinstance(item.get(name), list):
                return _of_list(item[name])
        item = item.get("prompt")
    if not isinstance(item, str):
        raise ValueError(f"the JSON has no text under {_FORMS}")  # noqa: TRY004 - a value of a file
    return Entry(({"role": "user", "content": item},)) if item else None


def _of_list(items: Sequence[Any]) -> Entry:
    """The entry of messages, or of turns as ShareGPT has them."""
    if items and isinstance(items[0], dict) and "from" in items[0]:
        return Entry(_question(items), _conversation(items))
    return Entry(_messages(items))


def _conversation(turns: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """All turns of a conversation up to the last one of the user, in OpenAI's form."""
    messages = []
    for turn in turns:
        fields = turn if isinstance(turn, dict) else {}
        role = _SPEAKERS.get(str(fields.get("from") or fields.get("role")).lower())
        text = fields.get("value") or fields.get("content")
        if role and isinstance(text, str) and text:
            messages.append({"role": role, "content": text})
    first = next(place for place, message in enumerate(messages) if message["role"] != "assistant")
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    return tuple(messages[first : last + 1])


def _messages(messages: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """Messages up to the last one of the user, which the model answers."""
    for message in messages:
        fields = message if isinstance(message, dict) else {}
        for name, kinds in (("role", str), ("content", str | list)):
            if not isinstance(fields.get(name), kinds):
                raise ValueError(f"a message has no `{name}`")  # noqa: TRY004 - a value of a file
    asked = max((number for number, message in enumerate(messages) if message["role"] == "user"), default=None)
    if asked is None:
        raise ValueError("no message is of the user")
    return tuple(messages[: asked + 1])


def _question(turns: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """The first question of a conversation, after what the system says."""
    messages: list[Mapping[str, Any]] = []
    for turn in turns:
        role = _SPEAKERS.get(str(turn.get("from") or turn.get("role")).lower()) if isinstance(turn, dict) else None
        text = (turn.get("value") or turn.get("content")) if isinstance(turn, dict) else None
        if role == "system" and isinstance(text, str):
            messages.append({"role": "system", "content": text})
        if role == "user" and isinstance(text, str) and text:
            return (*messages, {"role": "user", "content": text})
    raise ValueError("the conversation has no text of a human")
