"""Handler of POST /v1/completions: from prompts (text or token ids) to a response or a stream of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel.simulated_vllm.api import streams
from bezel.simulated_vllm.api.errors import ApiError, compact, json_response
from bezel.simulated_vllm.api.generation import (
    Call,
    check_length,
    check_logprobs,
    check_max_tokens,
    start_call,
    tokens_of,
)
from bezel.simulated_vllm.api.structured import scripted_answer
from bezel.simulated_vllm.scheduling.detokenize import completion_logprobs
from bezel.simulated_vllm.scheduling.tokenizer import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive

    from bezel.simulated_vllm.api.bodies import CompletionBody
    from bezel.simulated_vllm.scheduling.channel import Piece
    from bezel.simulated_vllm.scheduling.engine import Engine


async def answer_completion(engine: Engine, body: CompletionBody, fingerprint: str, receive: Receive) -> Response:
    """Return the response to a completion call.

    Raises:
        ApiError: the call is refused.
    """
    longest = engine.settings.max_model_len
    if body.suffix:
        raise ApiError("suffix is only supported for models with FIM completion rendering", param="suffix")
    check_max_tokens(body.max_tokens, longest)
    check_logprobs(body.logprobs)
    prompts = _prompts(body, longest)
    scripted = scripted_answer(body)
    call = start_call(engine, body, prompts, max_tokens=body.max_tokens, scripted=scripted)
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

    def __init__(self, call: Call, body: CompletionBody, fingerprint: str) -> None:
        super().__init__(call, fingerprint)
        self._body = body
        self._echoes = set(range(len(call.choices))) if body.echo else set()

    def events(self, piece: Piece) -> str:
        """Return the chunk of a piece; its text is empty where the tokens have none."""
        echoed = self._echoed(piece.index)
        text = streams.quoted(decode(echoed) + piece.text if echoed else piece.text)
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
