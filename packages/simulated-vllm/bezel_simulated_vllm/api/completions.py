"""Handlers of POST /v1/completions and /generative_scoring: from prompts (text or token ids) to a response."""

from __future__ import annotations

import secrets
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import rendering, streams
from bezel_simulated_vllm.api.bodies import Body, CompletionBody
from bezel_simulated_vllm.api.errors import api_error, compact
from bezel_simulated_vllm.api.generation import Call, start_call
from bezel_simulated_vllm.scheduling.detokenize import completion_logprobs
from bezel_simulated_vllm.scheduling.fake_text import chance
from bezel_simulated_vllm.scheduling.tokenizer import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.scheduling.channel import Piece
    from bezel_simulated_vllm.scheduling.engine import Engine


async def answer_completion(engine: Engine, body: CompletionBody, receive: Receive) -> Response:
    """Return the response to a completion call.

    Raises:
        ApiError: the call is refused.
    """
    if body.stream and body.use_beam_search:
        raise api_error("beam-stream")
    _check_prompt(body)
    rendering.check_length(body, body.max_tokens, engine.settings.max_model_len, "max_tokens")
    call = start_call(engine, body, _prompts(engine, body), max_tokens=body.max_tokens)

    def completion(pieces: list[Piece]) -> dict[str, object]:
        return call.answer("text_completion", [_choice(call, body, piece) for piece in pieces])

    stream = CompletionStream(call, body) if body.stream else None
    return await streams.respond(call, receive, stream, completion)


def _check_prompt(body: CompletionBody) -> None:
    """Refuse what this server's models cannot have beside or instead of a text."""
    if body.suffix is not None:
        texts = isinstance(body.prompt, str) or all(isinstance(part, str) for part in body.prompt or ())
        if body.echo:
            raise api_error("suffix-echo")
        if body.prompt_embeds is not None:
            raise api_error("suffix-with", what="prompt_embeds")
        if body.truncate_prompt_tokens is not None:
            raise api_error("suffix-with", what="truncate_prompt_tokens")
        raise api_error("suffix" if texts else "suffix-text")
    if body.prompt_embeds is None:
        return
    if body.echo:
        raise api_error("echo-embeddings")
    if body.prompt_logprobs is not None:
        raise api_error("logprobs-embeddings")
    if body.prompt_embeds != []:
        raise api_error("no-embeddings")


def _prompts(engine: Engine, body: CompletionBody) -> list[Sequence[int]]:
    prompt = body.prompt
    if not prompt:
        raise api_error("no-prompts")
    prompts: list[Any] = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
    longest = engine.settings.max_model_len
    cut, side = body.truncate_prompt_tokens, body.truncation_side
    return [rendering.tokens_of(part, longest, cut, side) for part in prompts]


def _choice(call: Call, body: CompletionBody, piece: Piece) -> dict[str, Any]:
    prompt = call.choices[piece.index].request.prompt
    echoed = decode(prompt) if body.echo and not body.return_token_ids else ""
    return {
        "index": piece.index,
        "text": echoed + ("" if _only_echo(body) else piece.text),
        "logprobs": _logprobs(call, body, piece, prompt if body.echo else ()),
        "finish_reason": piece.finish,
        "stop_reason": piece.stop_reason,
        "token_ids": piece.tokens if body.return_token_ids else None,
        "prompt_logprobs": call.prompt_logprobs(prompt),
        "prompt_token_ids": prompt if body.return_token_ids else None,
        "routed_experts": None,
        **call.versions_of(piece.produced),
    }


def _only_echo(body: CompletionBody) -> bool:
    """Whether only the prompt is returned, without an answer."""
    return bool(body.echo) and body.max_tokens == 0


def _logprobs(call: Call, body: CompletionBody, piece: Piece, echoed: Sequence[int]) -> dict[str, object] | None:
    """Return the probabilities of a piece's tokens, after those of the echoed prompt."""
    if body.logprobs is None:
        return None
    choice = call.choices[piece.index]
    start = piece.produced - len(piece.tokens)
    before = len(decode(choice.tokens[:start], skip_special=True))
    if body.echo and not echoed:
        before += len(decode(choice.request.prompt))
    tokens = [*echoed, *(() if _only_echo(body) else piece.tokens)]
    as_ids = bool(body.return_tokens_as_token_ids)
    first = bool(echoed)
    return completion_logprobs(choice.request.key, tokens, body.logprobs, start, before, first=first, as_ids=as_ids)


class CompletionStream(streams.OpenAiStream):
    """The chunks of a completion call; the first one has text already."""

    kind = "text_completion"

    def __init__(self, call: Call, body: CompletionBody) -> None:
        super().__init__(call)
        self._body = body
        self._echoes = set(range(len(call.choices))) if body.echo or body.return_token_ids else set()

    def events(self, piece: Piece) -> str:
        """Return the chunk of a piece; its text is empty where the tokens have none."""
        echoed = self._echo(piece.index)
        generated = "" if _only_echo(self._body) else piece.text
        shown = echoed and self._body.echo and not self._body.return_token_ids
        text = encode_basestring(decode(echoed) + generated if echoed and shown else generated)
        before = echoed if echoed and self._body.echo else ()
        logprobs = "null"
        if self._body.logprobs is not None:
            logprobs = compact(_logprobs(self.call, self._body, piece, before))
        finish = f'"{piece.finish}"' if piece.finish else "null"
        ids = compact(piece.tokens) if self._body.return_token_ids else "null"
        versions = ""
        if self.call.weight_versions:
            of_choice = self.call.versions_of(piece.produced)["weight_versions"] if piece.finish else None
            versions = f',"weight_versions":{compact(of_choice)}'
        choice = (
            f'{{"index":{piece.index},"text":{text},"logprobs":{logprobs},"finish_reason":{finish},"stop_reason":'
            f'{compact(piece.stop_reason)},"prompt_token_ids":{compact(echoed)},"token_ids":{ids}{versions}}}'
        )
        ends = (self.finishing() if piece.finish else None) or {}
        return self.chunk(choice, piece.produced, piece.index, ends | self.chunk_ends)

    def _echo(self, index: int) -> Sequence[int] | None:
        """Return the prompt, once for each choice, where it is echoed or returned as ids."""
        if index not in self._echoes:
            return None
        self._echoes.remove(index)
        return self.call.choices[index].request.prompt


class ScoringBody(Body):
    """POST /generative_scoring."""

    recorded = "scoring"
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
    longest, vocabulary = engine.settings.max_model_len, engine.settings.model.vocabulary
    for token in body.label_token_ids:
        if not 0 <= token < vocabulary:
            raise api_error("unknown-label", token=token, size=vocabulary)
    if not body.label_token_ids:
        raise api_error("no-labels")
    if not body.items:
        raise api_error("no-items")
    query, *items = (
        [*rendering.tokens_of(part, longest)] if isinstance(part, str) else list(part)
        for part in (body.query, *body.items)
    )
    prompts = [query + item for item in items]
    call = start_call(engine, CompletionBody(model=body.model, ignore_eos=True), prompts, max_tokens=1)

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
