"""Endpoints of a model that pools: embeddings, classes, scores and ranks, of pseudo-random numbers.

Which of them there are follows from the model's class (`bezel_catalog.architectures.pooling`); those that generate are
not there at all, as with the real server. A call's prompts run in the engine as those of other models do, and count no
token of an answer.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel_catalog.architectures.pooling import CLASSIFY, EMBEDDINGS, POOLING
from bezel_simulated_vllm.api import rendering, streams
from bezel_simulated_vllm.api.bodies import CompletionBody
from bezel_simulated_vllm.api.errors import ApiError, api_error, invalid
from bezel_simulated_vllm.api.generation import Call, start_call
from bezel_simulated_vllm.api.routes.pooling_bodies import (
    ClassificationBody,
    EmbedBody,
    EmbeddingBody,
    InputBody,
    PairBody,
    PooledBody,
    PoolingBody,
    RerankBody,
    ScoreBody,
    TokenEmbeddingBody,
)
from bezel_simulated_vllm.api.routes.pooling_invocations import invoked_path
from bezel_simulated_vllm.api.routes.pooling_numbers import (
    class_probabilities,
    octets_of,
    packed_bits,
    unit_vector,
)
from bezel_simulated_vllm.scheduling.fake_text import chance, key_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import Receive

    from bezel_catalog.architectures.pooling import Pooling
    from bezel_simulated_vllm.api.bodies import Body
    from bezel_simulated_vllm.scheduling.engine import Engine

    Answer = Callable[[Engine, Any, Receive], Awaitable[Response]]

KEPT = frozenset({
    *("/health", "/ping", "/version", "/load", "/metrics", "/v1/models", "/tokenize", "/detokenize", "/invocations"),
    *("/kv_event_sources", "/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"),
})  # fmt: skip
"""Paths that such a server has beside those of its task."""
_ONLY_PLUGIN = (
    "The 'embed&token_classify' pooling task is only available through an IO processor plugin. Send a plugin request "
    "with a 'data' field, or select a concrete task with --pooler-config.task."
)
_NO_PLUGIN = (
    "No IOProcessor plugin installed. Please refer to the documentation and to the "
    "'prithvi_geospatial_mae_io_processor' offline inference example for more details."
)


def pooling_routes(pooling: Pooling) -> dict[str, tuple[type[Body], Answer]]:
    """Return the bodies and the answers of a model's endpoints by path."""
    routes: dict[str, tuple[type[Body], Answer]] = {
        POOLING: (PoolingBody, _pool),
        EMBEDDINGS: (TokenEmbeddingBody if pooling.task == "token_embed" else EmbeddingBody, _embed),
        CLASSIFY: (ClassificationBody, _classify),
        "/v2/embed": (EmbedBody, _embed_texts),
        **dict.fromkeys(("/score", "/v1/score"), (ScoreBody, _score)),
        **dict.fromkeys(("/rerank", "/v1/rerank", "/v2/rerank"), (RerankBody, _rerank)),
    }
    return {path: routes[path] for path in pooling.endpoints}


def described_paths(pooling: Pooling) -> dict[str, object]:
    """Return the endpoints as the OpenAPI document names them; the forms of their bodies are not recorded."""
    answer = {"description": "Successful Response"}
    return {path: {"post": {"responses": {"200": answer}}} for path in pooling.endpoints}


def path_of_invocation(pooling: Pooling, content: object) -> str:
    """Return the endpoint that /invocations takes for a body.

    Raises:
        ApiError: no endpoint of the model has such bodies.
    """
    bodies = {path: body for path, (body, _) in pooling_routes(pooling).items()}
    if pooling.task == "token_embed":
        bodies.pop(EMBEDDINGS, None)  # vLLM tries it for vectors of whole prompts only
    return invoked_path(bodies, content)


async def _pool(engine: Engine, body: PoolingBody, receive: Receive) -> Response:
    pooling = _pooling(engine)
    if body.is_for_plugin:
        raise invalid(_NO_PLUGIN, "task")
    if body.dimensions is not None:
        raise invalid("dimensions is currently not supported", "dimensions")
    task = body.task or pooling.task
    if task == "plugin":
        raise invalid(_NO_PLUGIN, "task")
    if task != pooling.task:
        if task in pooling.tasks:
            raise invalid(f"Try switching the model's pooling_task via --pooler-config.task {task}.", "task")
        raise invalid(f"Unsupported task: {task!r} Supported tasks: {list(pooling.tasks)}", "task")
    if task == "embed&token_classify":
        raise ApiError(_ONLY_PLUGIN)
    call = _start(engine, body, _prompts(engine, body))
    return await _vectors(call, body, receive, "pooling", "data")


async def _embed(engine: Engine, body: InputBody, receive: Receive) -> Response:
    _check_width(engine, body.dimensions)
    call = _start(engine, body, _prompts(engine, body))
    return await _vectors(call, body, receive, "embedding", "embedding", "embd")


async def _classify(engine: Engine, body: ClassificationBody, receive: Receive) -> Response:
    call = _start(engine, body, _prompts(engine, body))
    names = engine.settings.model.config.get("id2label") or {}

    def answer(_: object) -> dict[str, object]:
        rows = []
        for index, choice in enumerate(call.choices):
            probabilities = class_probabilities(choice.request.key, _pooling(engine).labels)
            best = probabilities.index(max(probabilities))
            label = names.get(str(best), f"LABEL_{best}")
            count = len(probabilities)
            rows.append({"index": index, "label": label, "probs": probabilities, "num_classes": count})
        return _list_of(call, "classify", rows)

    return await streams.respond(call, receive, None, answer)


async def _embed_texts(engine: Engine, body: EmbedBody, receive: Receive) -> Response:
    if body.input_type is not None:
        raise ApiError(
            f"Unsupported input_type '{body.input_type}'. This model does not define any input_type task instructions."
        )
    _check_width(engine, body.output_dimension)
    call = _start(engine, body, _cohere_prompts(engine, body))
    if body.truncate == "NONE" and body.max_tokens is not None:
        for choice in call.choices:
            if len(choice.request.prompt) > body.max_tokens:
                raise api_error("cohere-length", tokens=len(choice.request.prompt), limit=body.max_tokens)

    def answer(_: object) -> dict[str, object]:
        vectors = [unit_vector(choice.request.key, engine.settings.model.hidden_size) for choice in call.choices]
        forms: dict[str, object] = {
            "float": vectors,
            "binary": [packed_bits(vector, signed=True) for vector in vectors],
            "ubinary": [packed_bits(vector, signed=False) for vector in vectors],
            "base64": [base64.b64encode(octets_of(vector, order="little")).decode() for vector in vectors],
        }
        wanted = body.embedding_types or ("float",)
        return {
            "id": f"embd-{secrets.token_hex(8)}",
            "embeddings": {name: forms[name] for name in forms if name in wanted},
            **({} if body.texts is None else {"texts": body.texts}),
            "meta": {
                "api_version": {"version": "2"},
                "billed_units": {"input_tokens": call.prompt_tokens, "image_tokens": 0},
            },
            "response_type": "embeddings_by_type",
        }

    return await streams.respond(call, receive, None, answer)


def _cohere_prompts(engine: Engine, body: EmbedBody) -> list[Sequence[int]]:
    """Return the prompts of a body in Cohere's form: texts, or conversations of one message each."""
    cut = PooledBody(model=body.model)
    if body.truncate != "NONE":
        cut.truncate_prompt_tokens = -1 if body.max_tokens is None else body.max_tokens
        cut.truncation_side = "left" if body.truncate == "START" else None
    if body.texts is not None:
        return [_tokens(engine, cut, text) for text in body.texts]
    images = [{"content": [{"type": "image_url", "image_url": {"url": url}}]} for url in body.images or ()]
    conversations = [[{"role": "user", "content": each["content"]}] for each in body.inputs or images]
    return [
        _tokens(engine, cut, rendering.messages_text(each, engine.settings, generate=False)) for each in conversations
    ]


async def _score(engine: Engine, body: ScoreBody, receive: Receive) -> Response:
    call, scores = _score_pairs(engine, body, body.pair())

    def answer(_: object) -> dict[str, object]:
        rows = [{"index": index, "object": "score", "score": score} for index, score in enumerate(scores)]
        return _list_of(call, "score", rows)

    return await streams.respond(call, receive, None, answer)


async def _rerank(engine: Engine, body: RerankBody, receive: Receive) -> Response:
    documents = body.pair()[1]
    call, scores = _score_pairs(engine, body, body.pair())

    def answer(_: object) -> dict[str, object]:
        order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n or None]
        results = [
            {"index": index, "document": _document(documents[index]), "relevance_score": scores[index]}
            for index in order
        ]
        usage = {"prompt_tokens": call.prompt_tokens, "total_tokens": call.prompt_tokens}
        return {"id": f"score-{secrets.token_hex(8)}", "model": call.model, "usage": usage, "results": results}

    return await streams.respond(call, receive, None, answer)


def _document(document: str | dict[str, Any]) -> dict[str, object]:
    if isinstance(document, str):
        return {"text": document, "multi_modal": None}
    return {"text": None, "multi_modal": document.get("content")}


def _score_pairs(
    engine: Engine, body: PairBody, pair: tuple[Sequence[str | dict[str, Any]], Sequence[str | dict[str, Any]]]
) -> tuple[Call, list[float]]:
    """Start a call for pairs of texts: a cross-encoder reads each pair, the others read each text once.

    Raises:
        ApiError: there are no pairs, or their numbers do not fit.
    """
    first, second = pair
    if not first or not second:
        raise ApiError(
            "At least one text element must be given" if not first else "At least one text_pair element must be given"
        )
    if len(first) not in (1, len(second)):
        raise ApiError("Input lengths must be either 1:1, 1:N or N:N")
    if any(isinstance(each, dict) for each in (*first, *second)):
        raise api_error("no-media-of-class", architecture=engine.settings.model.architecture)
    texts = [[_tokens(engine, body, str(each)) for each in side] for side in (first, second)]
    left = texts[0] * len(second) if len(first) == 1 else texts[0]
    pairs = [[*a, *b] for a, b in zip(left, texts[1], strict=True)]
    prompts = pairs if _pooling(engine).task == "classify" else [*texts[0], *texts[1]]
    return _start(engine, body, prompts), [chance(key_of(tokens, 0, 0), 0) for tokens in pairs]


def _pooling(engine: Engine) -> Pooling:
    pooling = engine.settings.pooling
    if pooling is None:
        raise ApiError("The model does not support Pooling API", "NotImplementedError", status=501)
    return pooling


def _prompts(engine: Engine, body: InputBody) -> list[Sequence[int]]:
    """Return the prompts of a body as token ids.

    Raises:
        ApiError: there are none, one is empty or too long.
    """
    if not body.has_prompts:
        rendering.check_template(body)
        texts = [rendering.messages_text(each, engine.settings, generate=False) for each in body.conversations or [[]]]
        return [_tokens(engine, body, text) for text in texts]
    prompts = body.input
    if isinstance(prompts, str):
        return [_tokens(engine, body, prompts)]
    if not prompts:
        raise ApiError("You must pass at least one prompt")
    ids = [each for each in prompts if isinstance(each, int)]
    if ids:
        return [_tokens(engine, body, ids)]
    return [_tokens(engine, body, prompt) for prompt in prompts if not isinstance(prompt, int)]


def _check_width(engine: Engine, dimensions: int | None) -> None:
    """Refuse vectors of another length.

    Raises:
        ApiError: the model has no such vectors.
    """
    if dimensions is not None:
        raise api_error("no-matryoshka", name=engine.settings.served_names[0], value=dimensions)


def _tokens(engine: Engine, body: PooledBody, prompt: str | Sequence[int]) -> Sequence[int]:
    if not prompt:
        raise api_error("no-tokens")
    unknown_ids = (
        [] if isinstance(prompt, str) else [each for each in prompt if each >= engine.settings.model.vocabulary]
    )
    if unknown_ids:
        raise api_error("unknown-token", token=max(unknown_ids))
    longest = engine.settings.max_model_len
    if body.truncate_prompt_tokens is not None and body.truncate_prompt_tokens > longest:
        raise ApiError(
            "truncate_prompt_tokens value is greater than max_model_len. Please request a smaller truncation size."
        )
    return rendering.tokens_of(prompt, longest, body.truncate_prompt_tokens, body.truncation_side)


def _start(engine: Engine, body: PooledBody, prompts: Sequence[Sequence[int]]) -> Call:
    return start_call(engine, CompletionBody(model=body.model, temperature=0), prompts, max_tokens=1, pools=True)


def _list_of(call: Call, prefix: str, rows: list[dict[str, Any]]) -> dict[str, object]:
    return {
        "id": f"{prefix}-{secrets.token_hex(8)}",
        "object": "list",
        "created": call.created,
        "model": call.model,
        "data": rows,
        "usage": _usage(call),
    }


def _usage(call: Call) -> dict[str, object]:
    tokens = call.prompt_tokens
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    return {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0, **details}


async def _vectors(
    call: Call, body: InputBody, receive: Receive, kind: str, field: str, prefix: str = "pooling"
) -> Response:
    """Answer with what the pooler makes of each prompt, in the form that the body asks for."""

    def data() -> list[list[Any]]:
        return [_pooler_output(call.engine, choice.request.key, len(choice.request.prompt)) for choice in call.choices]

    def answer(_: object) -> dict[str, object]:
        coded = body.encoding_format == "base64"
        shown = [base64.b64encode(_octets_of(body, each)).decode() if coded else each for each in data()]
        rows = [{"index": index, "object": kind, field: each} for index, each in enumerate(shown)]
        return _list_of(call, prefix, rows)

    if not body.encoding_format.startswith("bytes"):
        return await streams.respond(call, receive, None, answer)
    done = await streams.respond(call, receive, None, lambda _: None)
    return done if not done.body else _octets(call, body, data(), prefix)


def _octets_of(body: InputBody, numbers: list[Any]) -> bytes:
    return octets_of(numbers, body.embed_dtype, body.endianness)


def _octets(call: Call, body: InputBody, data: list[list[Any]], prefix: str) -> Response:
    """Return all numbers in one body, and their places in a header."""
    parts = [_octets_of(body, each) for each in data]
    items, begin = [], 0
    for index, (part, each) in enumerate(zip(parts, data, strict=True)):
        shape = [len(each), len(each[0])] if isinstance(each[0], list) else [len(each)]
        place = {"start": begin, "end": begin + len(part), "shape": shape}
        items.append({"index": index, "embed_dtype": body.embed_dtype, "endianness": body.endianness, **place})
        begin += len(part)
    head = {"id": f"{prefix}-{secrets.token_hex(8)}", "created": int(time.time()), "model": call.model, "data": items}
    headers = (
        None if body.encoding_format == "bytes_only" else {"metadata": json.dumps({**head, "usage": _usage(call)})}
    )
    return Response(b"".join(parts), 200, headers, media_type="application/octet-stream")


def _pooler_output(engine: Engine, key: int, tokens: int) -> list[Any]:
    """Return what the pooler makes of a prompt: one vector, or one for each of its tokens."""
    pooling, width = _pooling(engine), engine.settings.model.hidden_size
    match pooling.task:
        case "classify":
            return class_probabilities(key, pooling.labels)
        case "token_classify":
            return [class_probabilities(key + index, pooling.labels) for index in range(tokens)]
        case "token_embed":
            return [unit_vector(key + index, width) for index in range(tokens)]
    return unit_vector(key, width)
