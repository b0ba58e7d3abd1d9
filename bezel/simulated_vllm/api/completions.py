"""Handlers of POST /v1/completions and /generative_scoring: from prompts (text or token ids) to a response."""

from __future__ import annotations

import secrets
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from bezel.simulated_vllm.api import streams
from bezel.simulated_vllm.api.bodies import Body, CompletionBody
from bezel.simulated_vllm.api.errors import compact, refused
from bezel.simulated_vllm.api.generation import (
    Call,
    check_logprobs,
    check_max_tokens,
    start_call,
    tokens_of,
)
from bezel.simulated_vllm.api.structured import scripted_answer
from bezel.simulated_vllm.scheduling.detokenize import completion_logprobs
from bezel.simulated_vllm.scheduling.fake_text import chance
from bezel.simulated_vllm.scheduling.tokenizer import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response
    from starlette.types import Receive

    from bezel.simulated_vllm.scheduling.channel import Piece
    from bezel.simulated_vllm.scheduling.engine import Engine


async def answer_completion(engine: Engine, body: CompletionBody, receive: Receive) -> Response:
    """Return the response to a completion call.

    Raises:
        ApiError: the call is refused.
    """
    longest = engine.settings.max_model_len
    if body.suffix:
        raise refused("suffix")
    check_max_tokens(body.max_tokens, longest)
    check_logprobs(body.logprobs)
    prompts = _prompts(body, longest)
    call = start_call(engine, body, prompts, max_tokens=body.max_tokens, scripted=scripted_answer(body))

    def completion(pieces: list[Piece]) -> dict[str, object]:
        return call.answer("text_completion", [_choice(call, body, piece) for piece in pieces])

    stream = CompletionStream(call, body) if body.stream else None
    return await streams.respond(call, receive, stream, completion)


def _prompts(body: CompletionBody, longest: int) -> list[Sequence[int]]:
    prompt = body.prompt
    if not prompt:
        raise refused("no-prompts")
    prompts: list[Any] = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
    return [tokens_of(prompt, longest) for prompt in prompts]


def _choice(call: Call, body: CompletionBody, piece: Piece) -> dict[str, Any]:
    prompt = call.choices[piece.index].request.prompt
    echoed = decode(prompt) if body.echo else ""
    return {
        "index": piece.index,
        "text": echoed + piece.text,
        "logprobs": _logprobs(call, body, piece, len(echoed)),
        "finish_reason": piece.finish,
        "stop_reason": piece.stop_reason,
        "token_ids": piece.tokens if body.return_token_ids else None,
        "prompt_logprobs": None,
        "prompt_token_ids": prompt if body.return_token_ids else None,
        "routed_experts": None,
    }


def _logprobs(call: Call, body: CompletionBody, piece: Piece, offset: int) -> dict[str, object] | None:
    if body.logprobs is None:
        return None
    choice = call.choices[piece.index]
    start = piece.produced - len(piece.tokens)
    before = offset + len(decode(choice.tokens[:start], skip_special=True))
    return completion_logprobs(choice.request.key, piece.tokens, body.logprobs, start, before)


class CompletionStream(streams.OpenAiStream):
    """The chunks of a completion call; the first one has text already."""

    kind = "text_completion"

    def __init__(self, call: Call, body: CompletionBody) -> None:
        super().__init__(call)
        self._body = body
        self._echoes = set(range(len(call.choices))) if body.echo else set()

    def events(self, piece: Piece) -> str:
        """Return the chunk of a piece; its text is empty where the tokens have none."""
        echoed = self._echoed(piece.index)
        text = encode_basestring(decode(echoed) + piece.text if echoed else piece.text)
        logprobs = compact(_logprobs(self.call, self._body, piece, 0)) if self._body.logprobs is not None else "null"
        finish = f'"{piece.finish}"' if piece.finish else "null"
        ids = compact(piece.tokens) if self._body.return_token_ids else "null"
        choice = (
            f'{{"index":{piece.index},"text":{text},"logprobs":{logprobs},"finish_reason":{finish},"stop_reason":'
            f'{compact(piece.stop_reason)},"prompt_token_ids":{compact(echoed)},"token_ids":{ids}}}'
        )
        return self.chunk(choice, piece.produced, piece.index, self.finishing() if piece.finish else None)

    def _echoed(self, index: int) -> Sequence[int] | None:
        """Return the prompt, once for each choice, where it is echoed."""
        if index not in self._echoes:
            return None
        self._echoes.remove(index)
        return self.call.choices[index].request.prompt


class ScoringBody(Body):
    """POST /generative_scoring."""

    model: str | None = None
    query: str | list[int]
    items: list[str] | list[list[int]]
    label_token_ids: list[int]


async def answer_scoring(engine: Engine, body: ScoringBody, receive: Receive) -> Response:
    """Compute one token for each item and score it: a pseudo-random number.

    The route matters because --api-key does not guard it: any caller who reaches the port can load the accelerator.

    Raises:
        ApiError: a prompt is refused, or the queue is full.
    """
    longest = engine.settings.max_model_len
    query, *items = (
        [*tokens_of(part, longest)] if isinstance(part, str) else list(part) for part in (body.query, *body.items)
    )
    call = start_call(
        engine, CompletionBody(model=body.model, ignore_eos=True), [query + item for item in items], max_tokens=1
    )

    def scores(_: list[Piece]) -> dict[str, object]:
        return {
            "id": f"generative-scoring-{secrets.token_hex(8)}",
            "object": "list",
            "created": call.created,
            "model": call.model,
            "data": [
                {"index": choice.index, "object": "score", "score": chance(choice.request.key, 0)}
                for choice in call.choices
            ],
            "usage": call.usage(details=True),
        }

    return await streams.respond(call, receive, None, scores)
