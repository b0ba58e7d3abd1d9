"""HTTP server around an engine: its routes, and the responses that need no tokens from the engine."""

from __future__ import annotations

import json
import re
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route

from bezel_catalog.vllm.servers import recorded_server
from bezel_simulated_vllm.api import rendering
from bezel_simulated_vllm.api.administration import administration_routes, description
from bezel_simulated_vllm.api.bodies import (
    BodyT,
    ChatBody,
    CompletionBody,
    DetokenizeBody,
    TokenizeBody,
    check_json,
    read,
)
from bezel_simulated_vllm.api.chat import answer_chat
from bezel_simulated_vllm.api.completions import ScoringBody, answer_completion, answer_scoring
from bezel_simulated_vllm.api.errors import TEMPLATES, ApiError, api_error, json_response
from bezel_simulated_vllm.api.messages import CountBody, MessagesBody, answer_messages, count_tokens, refusal
from bezel_simulated_vllm.api.middleware import AddHeader, Count, OfRelease, RefuseUpgrades, RequireKey, request_id
from bezel_simulated_vllm.api.responses import ResponsesBody, answer_responses
from bezel_simulated_vllm.api.routes.adapters import adapter_routes
from bezel_simulated_vllm.api.routes.batches import BatchBody, answer_batch
from bezel_simulated_vllm.api.routes.decisions import (
    DecisionBody,
    SystemOneBody,
    answer_decisions,
    answer_system_one,
)
from bezel_simulated_vllm.api.routes.documents import page_routes
from bezel_simulated_vllm.api.routes.pooling import KEPT, described_paths, path_of_invocation, pooling_routes
from bezel_simulated_vllm.configuration.logs import log
from bezel_simulated_vllm.scheduling.engine import EngineDeadError
from bezel_simulated_vllm.scheduling.engine_metrics import TOOL_CALLS, http_families
from bezel_simulated_vllm.scheduling.tokenizer import decode, token_strings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from bezel_simulated_vllm.scheduling.engine import Engine

# Paths of FastAPI, which take HEAD.
_WITH_HEAD = {"/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"}
# What Python says of a body of /invocations that is no object.
_NO_OBJECT = {
    type(None): "argument of type 'NoneType' is not iterable",
    list: "list indices must be integers or slices, not str",
}


class Server:
    """The handlers of one engine.

    Attributes:
        routes: Path and methods of each route of its application.
    """

    routes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._settings = engine.settings
        self._load = 0
        self._registry = CollectorRegistry()

    def application(self) -> ASGIApp:
        """Return the whole server as an ASGI application."""
        routes = [
            Route("/health", self._health, methods=["GET"]),
            Route("/ping", self._health, methods=["GET"]),
            Route("/ping", self._health, methods=["POST"]),
            Route("/version", self._version, methods=["GET"]),
            Route("/load", self._server_load, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/tokenize", self._tokenize, methods=["POST"]),
            Route("/detokenize", self._detokenize, methods=["POST"]),
            Route("/v1/completions", self._generating(CompletionBody, answer_completion), methods=["POST"]),
            Route("/v1/chat/completions", self._generating(ChatBody, answer_chat), methods=["POST"]),
            Route("/v1/chat/completions/batch", self._generating(BatchBody, answer_batch), methods=["POST"]),
            Route("/v1/systemone", self._generating(SystemOneBody, answer_system_one), methods=["POST"]),
            Route("/v1/messages", self._anthropic, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
            Route("/v1/responses", self._generating(ResponsesBody, answer_responses), methods=["POST"]),
            Route("/v1/responses/{response_id}", self._unknown_response, methods=["GET"]),
            Route("/v1/responses/{response_id}/cancel", self._unknown_response, methods=["POST"]),
            Route("/invocations", self._invocations, methods=["POST"]),
            Route("/generative_scoring", self._generating(ScoringBody, answer_scoring), methods=["POST"]),
            Route("/openapi.json", self._description, methods=["GET"]),
            *page_routes(),
            *administration_routes(),
            *adapter_routes(self._settings.changeable_adapters),
        ]
        if "/v1/decisions" in recorded_server(self._settings.release).document["paths"]:
            routes.append(Route("/v1/decisions", self._generating(DecisionBody, answer_decisions), methods=["POST"]))
        if self._settings.pooling is not None:
            pooled = pooling_routes(self._settings.pooling).items()
            routes = [route for route in routes if route.path in KEPT]
            routes += [Route(path, self._generating(kind, answer), methods=["POST"]) for path, (kind, answer) in pooled]
        self._paths = frozenset(route.path for route in routes)
        self.routes = tuple((route.path, tuple(sorted(route.methods or ()))) for route in routes)
        for route in routes:
            # Starlette adds HEAD to GET; vLLM's own routes answer 405.
            if route.methods and route.path not in _WITH_HEAD:
                route.methods.discard("HEAD")
        handlers: dict[Any, Any] = {
            **dict.fromkeys((ValueError, TypeError, OverflowError), _client_error),
            ApiError: _api_error,
            EngineDeadError: self._engine_dead,
            HTTPException: _http_error,
            Exception: _server_error,
        }
        families = dict(self._engine.metrics.families)
        last = families.pop(TOOL_CALLS, None)  # the API process's own family, after those of http
        http = http_families()
        GCCollector(self._registry)
        PlatformCollector(self._registry)
        ProcessCollector(registry=self._registry)
        for family in filter(None, (*families.values(), *http.values(), last)):
            self._registry.register(family)
        inner = Starlette(routes=[*routes, self._mounted_metrics()], exception_handlers=handlers)
        allowed = self._settings.allowed
        app: ASGIApp = CORSMiddleware(
            Count(inner, http, routes),
            allow_origins=allowed.origins,
            allow_methods=allowed.methods,
            allow_headers=allowed.headers,
            allow_credentials=allowed.credentials,
        )
        if self._settings.api_keys:
            app = RequireKey(app, self._settings.api_keys)
        if self._settings.request_id_headers:
            app = AddHeader(app, request_id)
        return OfRelease(RefuseUpgrades(app), self._settings.release)

    def _mounted_metrics(self) -> Mount:
        """Return the metrics for every method and path that begins like theirs, as the real server mounts them."""

        async def metrics(scope: Scope, receive: Receive, send: Send) -> None:
            text = b"" if scope["method"] == "HEAD" else generate_latest(self._registry)
            chunks = StreamingResponse(iter([text]), media_type="text/plain; version=0.0.4")
            await chunks(scope, receive, send)

        mount = Mount("/metrics", app=metrics)
        mount.path_regex = re.compile("^/metrics(?P<path>.*)$")
        return mount

    async def _health(self, _: Request) -> Response:
        return Response(status_code=503 if self._engine.died.is_set() else 200)

    async def _version(self, _: Request) -> Response:
        return json_response({"version": self._settings.release})

    async def _server_load(self, _: Request) -> Response:
        return json_response({"server_load": self._load if self._settings.track_load else 0})

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(self._registry), media_type="text/plain; version=1.0.0")

    async def _models(self, _: Request) -> Response:
        permission = TEMPLATES["model_permission"] | {"created": (now := int(time.time()))}
        settings = self._settings
        rows: list[tuple[str, str, str | None, int | None]] = [
            (name, settings.model_path, None, settings.max_model_len) for name in settings.served_names
        ]
        for each in settings.loaded_adapters:
            named = each.base_model_name in settings.served_names
            rows.append((each.name, each.path, each.base_model_name if named else settings.served_names[0], None))
        data = [
            {
                "id": name,
                "object": "model",
                "created": now,
                "owned_by": "vllm",
                "root": root,
                "parent": parent,
                "max_model_len": length,
                "permission": [permission | {"id": f"modelperm-{secrets.token_hex(8)}"}],
            }
            for name, root, parent, length in rows
        ]
        return json_response({"object": "list", "data": data})

    async def _tokenize(self, request: Request) -> Response:
        body = await self._body(TokenizeBody, request)
        if body.messages is not None:
            rendering.check_template(body)
            messages = body.validated_body.messages
            text = rendering.messages_text(messages, self._settings, generate=body.add_generation_prompt)
            if body.continue_final_message and body.add_generation_prompt:
                raise api_error("continued")
        else:
            text = body.prompt or ""
        tokens = rendering.encode_prompt(text)
        strings = token_strings(tokens) if body.return_token_strs else None
        return json_response({
            "count": len(tokens),
            "max_model_len": self._settings.max_model_len,
            "tokens": tokens,
            "token_strs": strings,
        })  # fmt: skip

    async def _detokenize(self, request: Request) -> Response:
        body = await self._body(DetokenizeBody, request)
        return json_response({"prompt": decode(body.tokens)})

    async def _anthropic(self, request: Request) -> Response:
        body = await self._read(MessagesBody, request)
        try:
            self._check_model(body.model)
            self._check_alive()
            return await self._count_call(answer_messages(self._engine, body, request.receive))
        except (ApiError, EngineDeadError) as error:
            return refusal(error)

    async def _count_tokens(self, request: Request) -> Response:
        body = await self._read(CountBody, request)
        try:
            self._check_model(body.model)
            return count_tokens(self._engine, body)
        except ApiError as error:
            return refusal(error)

    async def _unknown_response(self, request: Request) -> Response:
        raise api_error("unknown-response", name=request.path_params["response_id"])

    async def _description(self, _: Request) -> Response:
        document = description(self._paths, self._settings.release)
        pooling = self._settings.pooling
        added = {} if pooling is None else described_paths(pooling)
        return json_response({**document, "paths": {**document["paths"], **added}})

    async def _invocations(self, request: Request) -> Response:
        """Dispatch to chat, completions or the endpoints of a model that pools by the body."""
        check_json(request.headers.get("content-type", ""))
        try:
            content = json.loads(await request.body())
        except json.JSONDecodeError as error:
            raise api_error("no-body", error=error) from None
        except RecursionError as error:
            raise api_error("python-500", text=str(error)) from None
        if not isinstance(content, dict):
            raise api_error("python", text=_NO_OBJECT.get(type(content), "object is not iterable"))
        if self._settings.pooling is not None:
            pooled = pooling_routes(self._settings.pooling)
            return await self._generating(*pooled[path_of_invocation(self._settings.pooling, content)])(request)
        # A body that fits neither is refused as a completion, which the real server tries first.
        completion = "prompt" in content or "messages" not in content
        generating = (CompletionBody, answer_completion) if completion else (ChatBody, answer_chat)
        return await self._generating(*generating)(request)

    def _generating(
        self, kind: type[BodyT], answer: Callable[[Engine, BodyT, Receive], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler that reads a body of that kind and has the engine answer it."""

        async def handle(request: Request) -> Response:
            return await self._count_call(answer(self._engine, await self._body(kind, request), request.receive))

        return handle

    async def _count_call(self, answer: Awaitable[Response]) -> Response:
        """Count a call in /load until its response begins to be sent."""
        self._load += 1
        try:
            return await answer
        finally:
            self._load -= 1

    async def _read(self, kind: type[BodyT], request: Request) -> BodyT:
        body = read(kind, request.headers.get("content-type", ""), await request.body())
        with suppress(ValueError):
            body.parallel_rank = int(request.headers.get("x-data-parallel-rank", ""))
        return body

    async def _body(self, kind: type[BodyT], request: Request) -> BodyT:
        """Read a body of the requested kind, for a model that is served."""
        body = await self._read(kind, request)
        body.check_support(self._settings)
        self._check_model(getattr(body, "model", None))
        if not isinstance(body, TokenizeBody | DetokenizeBody):
            self._check_alive()
        return body

    def _check_alive(self) -> None:
        if self._engine.died.is_set():
            raise EngineDeadError

    def _check_model(self, name: str | None) -> None:
        if name and name not in self._settings.callable_names:
            kind = "unknown-model" if self._settings.pooling is None else "unknown-pooled-model"
            error = api_error(kind, name=name, aliases=", ".join(self._settings.served_names))
            log("model-refused", message=str(error))
            raise error

    async def _engine_dead(self, _: Request, __: Exception) -> Response:
        self._engine.death_reported.set()
        return api_error("engine-dead").response()


async def _api_error(_: Request, error: ApiError) -> Response:
    return error.response()


async def _client_error(_: Request, error: Exception) -> Response:
    """Return an exception that the real server, too, takes for the fault of the client."""
    return ApiError(str(error)).response()


async def _server_error(_: Request, error: Exception) -> Response:
    """Return an unexpected exception in the shape of every other error."""
    return ApiError(str(error) or type(error).__name__, "InternalServerError", status=500).response()


async def _http_error(_: Request, error: HTTPException) -> Response:
    return json_response({"detail": error.detail}, error.status_code, error.headers)
