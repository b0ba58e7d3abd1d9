"""Handler of POST /generative_scoring: pseudo-random scores of given tokens after a query and each of some items.

The route matters because --api-key does not guard it: any caller who reaches the port can load the accelerator with it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from starlette.responses import Response

from bezel.simulated_vllm.api import streams
from bezel.simulated_vllm.api.bodies import Body, CompletionBody
from bezel.simulated_vllm.api.errors import json_response
from bezel.simulated_vllm.api.generation import start_call, tokens_of
from bezel.simulated_vllm.scheduling.fake_text import chance

if TYPE_CHECKING:
    from starlette.types import Receive

    from bezel.simulated_vllm.scheduling.engine import Engine


class ScoringBody(Body):
    """POST /generative_scoring."""

    model: str | None = None
    query: str | list[int]
    items: list[str] | list[list[int]]
    label_token_ids: list[int]


async def answer_scoring(engine: Engine, body: ScoringBody, receive: Receive) -> Response:
    """Compute one token for each item and score it.

    Raises:
        ApiError: a prompt is refused, or the queue is full.
    """
    longest = engine.settings.max_model_len
    query, *items = (
        tokens_of(part, longest) if isinstance(part, str) else list(part) for part in (body.query, *body.items)
    )
    call = start_call(
        engine, CompletionBody(model=body.model, ignore_eos=True), [query + item for item in items], max_tokens=1
    )
    if await streams.whole(call, receive) is None:
        return Response()
    scores = [
        {"index": choice.index, "object": "score", "score": chance(choice.request.key, 0)} for choice in call.choices
    ]
    return json_response({
        "id": f"generative-scoring-{secrets.token_hex(8)}",
        "object": "list",
        "created": call.created,
        "model": call.model,
        "data": scores,
        "usage": call.usage(details=True),
    })  # fmt: skip
