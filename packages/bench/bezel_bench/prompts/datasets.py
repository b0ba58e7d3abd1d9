"""Prompts from a file: plain texts, JSON lines, lists of messages, and conversations as ShareGPT has them.

Owns what each form means. Of a recorded conversation the first question is sent, as `vllm bench serve` does; of
messages everything up to the last one of the user. Leaves out how they are sent (`bezel_bench.prompts.prompts`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count

_SPEAKERS: Mapping[str, str] = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
    "bing": "assistant", "bard": "assistant", "system": "system",
}  # fmt: skip
_FORMS = "`prompt`, `messages` or `conversations`"
_SHOWN_PROBLEMS = 5
_TABLES = {".csv", ".tsv"}


@dataclass(frozen=True)
class Entry:
    """What one request asks.

    Attributes:
        messages: Messages in OpenAI's form: role and content; the content may have parts, such as images.
    """

    messages: tuple[Mapping[str, Any], ...]

    @property
    def text(self) -> str | None:
        """The only message's text; None for several messages, or for one of several parts."""
        (first, *others) = self.messages
        return first["content"] if not others and isinstance(first["content"], str) else None


def read_entries(file: Path) -> list[Entry]:
    """The entries of a file, in their order; what is empty is left out.

    Raises:
        UserError: It cannot be read, holds none, or an entry is of no known form; the error has the first problems.
    """
    text = read_text(file, str(file))
    if file.suffix.lower() in _TABLES:
        consequence = "a table would be sent line by line as text, with its header and its separators."
        repair = (
            'write JSON lines with the column of the prompts, {"prompt": "TEXT"}, e.g. by csv.DictReader of Python.'
        )
        raise UserError(Problem(str(file), None, consequence, repair))
    entries: list[Entry] = []
    problems: list[Problem] = []
    for place, item in _items(file, text):
        try:
            entry = _entry(item)
        except ValueError as error:
            problems.append(Problem(f"{file}, {place}", None, f"{error}.", f"write {_FORMS}, or plain text."))
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
        return Entry(_messages(item))
    if isinstance(item, dict):
        if isinstance(item.get("messages"), list):
            return Entry(_messages(item["messages"]))
        if isinstance(item.get("conversations"), list):
            return Entry(_question(item["conversations"]))
        item = item.get("prompt")
    if not isinstance(item, str):
        raise ValueError(f"the JSON has no text under {_FORMS}")  # noqa: TRY004 - a value of a file
    return Entry(({"role": "user", "content": item},)) if item else None


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
