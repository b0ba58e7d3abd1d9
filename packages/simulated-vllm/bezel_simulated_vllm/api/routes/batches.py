"""Handler of POST /v1/chat/completions/batch: several conversations in one call, one choice for each.

Tools, streams, beams and several answers for a conversation are refused or ignored, as in vLLM; the parameters of all
conversations are those of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import rendering, streams
from bezel_simulated_vllm.api.bodies import Body, ChatBody, body_of
from bezel_simulated_vllm.api.chat import chat_choice, prompt_tokens
from bezel_simulated_vllm.api.generation import start_call
from bezel_simulated_vllm.api.response_object import plain

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.scheduling.channel import Piece
    from bezel_simulated_vllm.scheduling.engine import Engine


class BatchBody(Body):
    """POST /v1/chat/completions/batch; what is read is in the recorded model."""

    recorded = "chat_batch"
    model: str | None = None


async def answer_batch(engine: Engine, body: BatchBody, receive: Receive) -> Response:
    """Return the response to a batch of conversations.

    Raises:
        ApiError: a conversation or a parameter is refused, or the queue is full.
    """
    shared = {name: value for name, value in plain(body.validated_body).items() if value is not None}
    conversations = shared.pop("messages")
    chats = [body_of(ChatBody, {**shared, "messages": messages}) for messages in conversations]
    first = chats[0]
    first.parallel_rank, first.stream = body.parallel_rank, False
    rendering.check_template(first)
    limit = first.max_completion_tokens if first.max_completion_tokens is not None else first.max_tokens
    name = "max_tokens" if first.max_completion_tokens is None else "max_completion_tokens"
    rendering.check_length(first, limit, engine.settings.max_model_len, name)
    call = start_call(engine, first, [prompt_tokens(engine, chat) for chat in chats], max_tokens=limit)

    def completion(pieces: list[Piece]) -> dict[str, object]:
        keys: dict[str, object] = dict.fromkeys(("prompt_logprobs", "prompt_token_ids", "prompt_text"))
        choices: list[dict[str, Any]] = [chat_choice(call, chats[piece.index], piece) for piece in pieces]
        answer = call.answer("chat.completion", choices, keys)
        return answer | {"usage": call.usage(details=True) | {"completion_tokens_details": None}}

    return await streams.respond(call, receive, None, completion)
