"""Request bodies for chat and completions: a frame made once, with the words of each request put between."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bezel.bench.load.plan import Load

_USER, _MODEL, _END = b'{"role":"user","content":"', b'{"role":"assistant","content":"', b'"}'


@dataclass(frozen=True)
class Frame:
    """JSON around the texts of every request of a load; picklable, for workers.

    Attributes:
        begin: The JSON before the texts.
        end: The JSON after them.
        chat: Whether texts are messages, alternately of the user and of the model; else one prompt, a text a line.
        asked_tokens: The requested ``max_tokens``.
    """

    begin: bytes
    end: bytes
    chat: bool
    asked_tokens: int

    def body(self, texts: Sequence[bytes]) -> bytes:
        """Return the request with these texts, each escaped as in a JSON string."""
        if not self.chat:
            return self.begin + b"\\n".join(texts) + self.end
        if len(texts) == 1:
            return self.begin + _USER + texts[0] + _END + self.end
        said = b",".join((_MODEL if at % 2 else _USER) + text + _END for at, text in enumerate(texts))
        return self.begin + said + self.end


def frame(load: Load) -> Frame:
    """Return the frame of a load's requests: streamed, with ``usage``, of an exact length unless overridden."""
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
    return Frame(
        begin + (b', "messages": [' if chat else b', "prompt": "'),
        b"]}" if chat else b'"}',
        chat,
        int(asked),
    )


def quoted(text: str) -> bytes:
    """Return a text escaped as in a JSON string."""
    return json.dumps(text)[1:-1].encode()
