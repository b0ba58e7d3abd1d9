"""POST /v1/completions: from prompts (text or token ids, one or several) to an answer or a stream of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel.localcloud.vllm import streams
from bezel.localcloud.vllm.call import Call, check_length, check_max_tokens, start_call, tokens_of
from bezel.localcloud.vllm.choices import Piece, completion_logprobs
from bezel.localcloud.vllm.errors import ApiError, json_response
from bezel.localcloud.vllm.tokenizer import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive

    from bezel.localcloud.vllm.bodies import CompletionBody
    from bezel.localcloud.vllm.engine import Engine


async def answer_completion(engine: Engine, body: CompletionBody, fingerprint: str, receive: Receive) -> Response:
    """Answer a completion call.

    Raises:
        ApiError: the call is refused.
    """
    longest = engine.settings.max_model_len
    check_max_tokens(body.max_tokens, longest)
    call = start_call(engine, body, _prompts(body, longest), max_tokens=body.max_tokens)
    if body.stream:
        return CompletionStream(call, body, fingerprint)
    pieces = await streams.whole(call, receive)
    if pieces is None:
        return Response()
    choices = [_choice(call, body, piece) for piece in pieces]
    return json_response(call.answer("text_completion", choices, fingerprint))


def _prompts(body: CompletionBody, longest: int) -> list[Sequence[int]]:
    prompt = body.prompt
    if not prompt:
        raise ApiError("You must pass at least one prompt")
    many: list[Any] = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
    result: list[Sequence[int]] = []
    for one in many:
        if isinstance(one, str):
            result.append(tokens_of(one, longest))
        else:
            check_length(len(one), longest)
            result.append(one)
    return result


def _choice(call: Call, body: CompletionBody, piece: Piece) -> dict[str, Any]:
    echoed = decode(call.choices[piece.index].request.prompt) if body.echo else ""
    return {
        "index": piece.index,
        "text": echoed + piece.text,
        "logprobs": _logprobs(call, body, piece, len(echoed)),
        "finish_reason": piece.finish,
        "stop_reason": piece.stop_reason,
        "token_ids": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "routed_experts": None,
    }


def _logprobs(call: Call, body: CompletionBody, piece: Piece, offset: int) -> dict[str, object] | None:
    if body.logprobs is None:
        return None
    choice = call.choices[piece.index]
    start = piece.produced - len(piece.tokens)
    before = offset + len(decode(choice.tokens[:start], skip_special=True))
    return completion_logprobs(choice.request.key, piece.tokens, body.logprobs, start, before)


class CompletionStream(streams.EventStream):
    """The chunks of a completion call: text from the first one on."""

    kind = "text_completion"

    def __init__(self, call: Call, body: CompletionBody, fingerprint: str) -> None:
        super().__init__(call, fingerprint)
        self._body = body

    def choice(self, piece: Piece) -> dict[str, Any]:
        """Some text."""
        return {
            "index": piece.index,
            "text": piece.text,
            "logprobs": _logprobs(self.call, self._body, piece, 0),
            "finish_reason": piece.finish,
            "stop_reason": piece.stop_reason,
            "prompt_token_ids": None,
            "token_ids": None,
        }
