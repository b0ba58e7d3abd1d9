"""Administrative routes, which no client of a model needs but which respond to every caller.

`--api-key` guards only those under /v1 and /inference. Scaling of experts fails as it does on one engine; the scale-out
routes return the error of a disabled feature (the option that enables them is not simulated).
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from bezel_catalog.vllm.servers import recorded_server
from bezel_simulated_vllm.api.bodies import content_of
from bezel_simulated_vllm.api.errors import TEMPLATES, api_error, json_response
from bezel_simulated_vllm.release import has_change

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_SCALE_OUT = (
    *("/inference/v1/generate", "/inference/v1/abort_requests"),
    *("/v1/chat/completions/render", "/v1/chat/completions/derender", "/v1/completions/render"),
    *("/v1/completions/derender", "/v1/messages/render", "/v1/responses/render"),
)


def administration_routes() -> list[Route]:
    """Return the routes of this module."""
    return [
        Route("/scale_elastic_ep", _scale, methods=["POST"]),
        Route("/is_scaling_elastic_ep", _is_scaling, methods=["POST"]),
        Route("/kv_event_sources", _kv_event_sources, methods=["GET"]),
        *(Route(path, _scale_out, methods=["POST"]) for path in _SCALE_OUT),
    ]


async def _scale(request: Request) -> Response:
    body = content_of(request.headers.get("content-type", ""), await request.body())
    size = body.get("new_data_parallel_size") if isinstance(body, dict) else None
    if size is None:
        raise api_error("no-size")
    if not isinstance(size, int) or size <= 0:
        raise api_error("size")
    raise api_error("scale")


async def _is_scaling(_: Request) -> Response:
    status = TEMPLATES["scaling_status"] if has_change("scaling-status") else {}
    return json_response({"is_scaling_elastic_ep": False, **status})


async def _kv_event_sources(_: Request) -> Response:
    return json_response({})


async def _scale_out(_: Request) -> Response:
    raise api_error("scale-out")


@cache
def description(paths: frozenset[str], release: str) -> dict[str, Any]:
    """Return the release's OpenAPI document, reduced to the paths that are served here and the schemas they use."""
    document = recorded_server(release).document
    served = {path: item for path, item in document["paths"].items() if path in paths}
    schemas, needed, left = document["components"]["schemas"], set[str](), _references(served)
    while left:
        needed |= left
        left = set().union(*(_references(schemas[name]) for name in left)) - needed
    used = {name: schema for name, schema in schemas.items() if name in needed}
    return {**document, "paths": served, "components": {"schemas": used}}


def _references(part: object) -> set[str]:
    return set(re.findall(r'"\$ref": "[^"]*/([^"/]*)"', json.dumps(part)))
