"""Request for advice to the stack's own model: one message, no tools, a bounded answer, and how far it can be trusted.

A simulated server's words are no advice, nor are those of a model that fails a control question, as one with random
weights does. Nothing of an answer is executed or interpreted.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.diagnosis.prompt import MAX_CHARACTERS, request_text, secrets_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.serving.server import DeployedServer, ServerError
from bezel.operations.serving.streams import Stream, read_stream
from bezel_base.text.printable import printable
from bezel_base.text.redaction import redact

_PATH = "/v1/chat/completions"
_MAX_MODELS = 1 << 20
_MAX_ANSWER = 12_000
_QUESTION, _EXPECTED = "What is 17 + 25? Answer with the number only.", re.compile(r"(?<!\d)42(?!\d)")
_CONTROL_TOKENS, _CONTROL_SECONDS = 32, 60.0
_FRAME_TOKENS = 500  # of the message without its data
_CHARACTERS_OF_A_TOKEN = 1.5  # of log lines, which have many digits; prose has four
_LEAST, _TRIES = 500, 4
_TOO_LONG = re.compile(r"(?i)context length|max_model_len|maximum model length|too long|input tokens")

Standing = Literal["advice", "noise", "simulated"]
_WORDS: dict[Standing, str] = {
    "advice": "advice of the stack's own model: nothing was executed, and it may be wrong",
    "noise": "noise: this model fails the control question (17 + 25), so its words mean nothing",
    "simulated": "noise: the server is simulated, and its words mean nothing",
}


class Advice(Result):
    """Answer of the stack's own model: data, never an instruction. Nothing of it was executed."""

    standing: Standing = Field(description="advice; noise of a model that fails a control question; or of a simulation")
    explanation: str = Field(description="what the standing means")
    answer: str = Field(description="text of the answer, credentials hidden, control characters removed")
    model: str | None = Field(description="model that answered, as the server names it")
    finish_reason: str | None = Field(description="why it ended, e.g. stop or length; null if it broke off")
    sent_characters: int = Field(description="size of the message that was sent")
    sent_lines: int = Field(description="lines of data in it")
    notes: tuple[str, ...]


def advice_of(
    context: Context,
    deployment: Deployment,
    server: DeployedServer,
    kind: Literal["analyze", "advise"],
    data: Callable[[int, Sequence[str]], Sequence[str]],
    *,
    max_tokens: int,
    seconds: float,
) -> Advice:
    """Ask the stack's model.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        server: Its server.
        kind: What is asked.
        data: Makes the lines of data for a number of characters, without the given secrets.
        max_tokens: Longest answer.
        seconds: Time limit of each request.

    Raises:
        ServerError: The server refused, or did not answer.
        RestError: There is no identity token for it.
    """
    hidden = secrets_of(context.environ)
    limit = _limit(server, max_tokens)
    standing: Standing = "simulated" if deployment.is_simulated else "advice"
    if standing == "advice":
        context.show("asks the model a control question")
        control = _ask(server, deployment.model, _QUESTION, max_tokens=_CONTROL_TOKENS, seconds=seconds)
        standing = "advice" if _EXPECTED.search(control.text) else "noise"
    context.show("asks the model")
    for attempt in range(_TRIES):
        lines = data(limit, hidden)
        message = request_text(kind, lines, secrets.token_hex(8))
        try:
            stream = _ask(server, deployment.model, message, max_tokens=max_tokens, seconds=seconds)
            break
        except ServerError as error:
            if attempt == _TRIES - 1 or limit <= _LEAST or not _TOO_LONG.search(str(error)):
                raise
            limit = max(_LEAST, limit // 2)
    return Advice(
        standing=standing,
        explanation=_WORDS[standing],
        answer=redact(printable(stream.text), *hidden)[:_MAX_ANSWER],
        model=None if stream.model is None else clean_text(stream.model, 300),
        finish_reason=stream.finish_reason,
        sent_characters=len(message),
        sent_lines=len(lines),
        notes=stream.notes,
    )


def _ask(server: DeployedServer, model: str, message: str, *, max_tokens: int, seconds: float) -> Stream:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": message}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return read_stream(server, _PATH, body, seconds=seconds, max_characters=_MAX_ANSWER)


def _limit(server: DeployedServer, max_tokens: int) -> int:
    """Characters of data that the model has room for, by the context that the server states."""
    reply = server.ask("/v1/models", max_bytes=_MAX_MODELS, seconds=_CONTROL_SECONDS)
    entries = reply.json().get("data")
    lengths = (
        [entry.get("max_model_len") for entry in entries if isinstance(entry, dict)]
        if isinstance(entries, list)
        else []
    )
    valid_lengths = [length for length in lengths if isinstance(length, int) and not isinstance(length, bool)]
    if reply.status != 200:
        raise server.refusal_error("/v1/models", reply)
    if not valid_lengths:
        return MAX_CHARACTERS
    room = int((min(valid_lengths) - max_tokens - _FRAME_TOKENS) * _CHARACTERS_OF_A_TOKEN)
    return min(MAX_CHARACTERS, max(_LEAST, room))
