"""JSON around the texts of a load's requests, and the requests as they are sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bezel_bench.load.plan import GENERATING, Bodies, Load

_RANKED = b', "query": "Which of these texts is about the harbour?", "documents": ["'
_USER, _MODEL, _END = b'{"role":"user","content":"', b'{"role":"assistant","content":"', b'"}'


@dataclass(frozen=True)
class Frame:
    """JSON around the texts of every request of a load; picklable, for workers.

    Attributes:
        begin: The JSON before the texts.
        end: The JSON after them.
        chat: Whether texts are messages, alternately of the user and of the model; else one prompt, a text a line.
        asked_tokens: The requested `max_tokens`; 0 where nothing is generated.
        between: The JSON between two texts, unless they are messages.
    """

    begin: bytes
    end: bytes
    chat: bool
    asked_tokens: int
    between: bytes = b"\\n"

    def body(self, texts: Sequence[bytes]) -> bytes:
        """Return the request with these texts, each escaped as in a JSON string."""
        if not self.chat:
            return self.begin + self.between.join(texts) + self.end
        if len(texts) == 1:
            return self.begin + _USER + texts[0] + _END + self.end
        messages = b",".join((_MODEL if at % 2 else _USER) + text + _END for at, text in enumerate(texts))
        return self.begin + messages + self.end

    def of_messages(self, messages: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the request with these messages; of a chat."""
        return self.begin + json.dumps(list(messages))[1:-1].encode() + self.end


def frame(load: Load) -> Frame:
    """Return the frame of a load's requests: streamed, with `usage`, of an exact length unless overridden."""
    if load.target.endpoint not in GENERATING:
        opening = json.dumps({"model": load.target.model, **load.extra_body})[:-1].encode()
        if load.target.endpoint == "rerank":
            return Frame(opening + _RANKED, b'"]}', chat=False, asked_tokens=0, between=b'","')
        return Frame(opening + b', "input": "', b'"}', chat=False, asked_tokens=0)
    fields: dict[str, Any] = {
        "model": load.target.model,
        "max_tokens": load.prompts.output_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **load.extra_body,
    }
    asked = fields.get("max_completion_tokens", fields["max_tokens"])
    begin = json.dumps(fields)[:-1].encode()
    chat = load.target.endpoint == "chat"
    return Frame(begin + (b', "messages": [' if chat else b', "prompt": "'), b"]}" if chat else b'"}', chat, int(asked))


def json_escape(text: str) -> bytes:
    """Return a text escaped as in a JSON string."""
    return json.dumps(text)[1:-1].encode()


@dataclass(frozen=True)
class Prompts:
    """The requests of a load, ready to be sent.

    Attributes:
        bodies: By number; picklable.
        notes: Notes for the reader of the figures; empty where the server counted the requested length.
    """

    bodies: Bodies
    notes: tuple[str, ...]
