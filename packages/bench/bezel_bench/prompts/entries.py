"""Entries of a file of prompts: what each form of texts, messages and conversations means.

Of a recorded conversation, as ShareGPT has them or as a list of questions, the first question is sent, as
`vllm bench serve` does; of messages in OpenAI's form everything up to the last one of the user, in its fields alone:
columns of the data set, such as a hash of the user's address, are not sent. Leaves out where the items come from
(`bezel_bench.prompts.datasets`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEYS = ("prompt", "messages", "conversations")
_FORMS = "`prompt`, `messages` or `conversations`"
_SPEAKERS: Mapping[str, str] = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
    "bing": "assistant", "bard": "assistant", "ai": "assistant", "system": "system",
}  # fmt: skip
_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning", "reasoning_content")


@dataclass(frozen=True)
class Entry:
    """What one request asks.

    Attributes:
        messages: Messages in OpenAI's form: role and content; the content may have parts, such as images. None of a
            conversation without a question.
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
        contents = [message.get("content", "") for message in (self.messages if turn is None else self.turn(turn))]
        parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
        return sum(len(part if isinstance(part, str) else str(part.get("text", ""))) for part in parts)

    @property
    def text(self) -> str | None:
        """The only message's text; None for several messages, or for one of several parts."""
        (first, *others) = self.messages
        text = first.get("content")
        return text if not others and isinstance(text, str) else None


def entry_of(item: Any) -> Entry | None:
    """An entry; None for an empty text.

    Args:
        item: A text, a list of messages or turns, or an object with one of these under one of `KEYS`.

    Raises:
        ValueError: It is of no known form.
    """
    if isinstance(item, dict):
        item = _value_of(item)
    if isinstance(item, str):
        item = _turns_of_text(item)
    if isinstance(item, list):
        return _of_turns(item)
    if not isinstance(item, str | None):
        raise ValueError(f"expected a text, messages or a conversation, got {item!r:.40}")  # noqa: TRY004
    return Entry((_question(item),)) if item else None


def _value_of(fields: Mapping[str, Any]) -> Any:
    """What an object has under one of the keys; a list before a text."""
    names = [name for name in ("messages", "conversations", "prompt") if name in fields]
    if not names:
        raise ValueError(f"the JSON has no text under {_FORMS}: it has {', '.join(fields) or 'nothing'}")
    name = next((name for name in names if isinstance(fields[name], list)), names[-1])
    value = _turns_of_text(fields[name]) if isinstance(fields[name], str) else fields[name]
    if name != "prompt" and isinstance(value, str) and value:
        raise ValueError(f"expected a list in JSON in `{name}`, got {value!r:.40}")
    return value


def _turns_of_text(text: str) -> Any:
    """The turns that a cell of a table has as JSON, else the text."""
    if text.lstrip()[:1] == "[":
        try:
            turns = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if turns and isinstance(turns[0], dict) and turns[0].keys() & {"role", "from"}:
            return turns
    return text


def _of_turns(turns: Sequence[Any]) -> Entry:
    """The entry of messages, of turns as ShareGPT has them, or of the questions of a conversation."""
    # A turn with a speaker is no question, whatever it calls its text.
    is_question = [isinstance(turn, dict) and turn.keys() & {"text", "role", "from"} == {"text"} for turn in turns]
    texts = [turn["text"] if has_text else turn for turn, has_text in zip(turns, is_question, strict=True)]
    if all(isinstance(text, str) for text in texts):
        conversation = [_question(text) for text in texts if text]
        return Entry(tuple(conversation[:1]), tuple(conversation))
    if isinstance(turns[0], dict) and "from" in turns[0]:
        return _of_speakers(turns)
    messages = _until_user([_message(turn) for turn in turns])
    if not messages:
        raise ValueError("no message is of the user")
    return Entry(messages)


def _of_speakers(turns: Sequence[Any]) -> Entry:
    """The entry of a recorded conversation: its first question, after what the system says."""
    messages = []
    for turn in turns:
        fields = turn if isinstance(turn, dict) else {}
        role = _SPEAKERS.get(str(fields.get("from") or fields.get("role")).lower())
        text = fields.get("value") or fields.get("content")
        if role and isinstance(text, str) and text:
            messages.append({"role": role, "content": text})
    asked = _until_user(messages)
    begin = next((place for place, message in enumerate(asked) if message["role"] != "assistant"), 0)
    conversation = asked[begin:]
    first = Entry((), conversation).turn(0) if conversation else ()
    return Entry(tuple(message for message in first if message["role"] != "assistant"), conversation)


def _question(text: str) -> Mapping[str, Any]:
    return {"role": "user", "content": text}


def _message(turn: Any) -> Mapping[str, Any]:
    """A message in OpenAI's fields; a table has null for those that a row lacks."""
    fields = _without_null({name: turn[name] for name in _FIELDS if name in turn}) if isinstance(turn, dict) else {}
    for name, kinds in (("role", str), ("content", str | list)):
        if not isinstance(fields.get(name), kinds) and not (name == "content" and fields.get("tool_calls")):
            raise ValueError(f"a message has no `{name}`")
    return fields | {"role": _SPEAKERS.get(fields["role"].lower(), fields["role"])}


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(part) for name, part in value.items() if part is not None}
    return [_without_null(part) for part in value] if isinstance(value, list) else value


def _until_user(messages: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Messages up to the last one of the user, which the model answers; none without one."""
    asked = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=-1)
    return tuple(messages[: asked + 1])
